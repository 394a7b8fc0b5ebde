#include "lathe/experiment/sensitivity.h"

#include <gtest/gtest.h>

#include "lathe/experiment/quantize.h"
#include "lathe/experiment/testing/opinions.h"
#include "lathe/train/evaluation.h"
#include "lathe/train/make_source.h"

namespace lathe::experiment {
namespace {

TEST(Sensitivity, RoundsOneLayerAtATime) {
  const io::ScratchDirectory scratch;
  const io::Model model = io::load_model(io::write_tiny_bert(scratch, "m"));
  QuantizeOptions options;
  options.weights = options.activations = "fixed:6,3";
  options.calibrate = write_opinions(scratch, "data");
  const Quantized quantized = quantize(model, options, {});
  const data::Dataset some = calibration_examples(model, options, 40);
  const auto examples = train::make_evaluation_source(model, some, {}, nullptr);
  const Sensitivity result = measure_sensitivity(model, quantized.model, options, 40, {});

  train::Classifier plain(model, {});
  EXPECT_EQ(result.loss, train::evaluate(plain, *examples, 2).loss);
  ASSERT_EQ(result.layers.size(), compress::quantized_layers(quantized.model.graph).size());
  for (std::size_t i = 1; i < result.layers.size(); ++i)
    EXPECT_GE(result.layers[i - 1].loss, result.layers[i].loss);
  EXPECT_NE(result.layers.front().loss, result.loss);
}

}  // namespace
}  // namespace lathe::experiment
