#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/quantization_rules.h"

namespace lathe::compress {

/// How a model is quantized.
struct QuantizeOptions {
  std::vector<QuantizationRule> rules = {};
  RangeRule parameter_range = {};
  RangeRule activation_range = {};
  std::int64_t calibration_examples = 256;
  bool corrects_bias = false;  ///< takes the mean error of each layer's output out of its bias
  bool uses_gptq = false;      ///< rounds weights one by one, each making up for those before it
};

/// What came of it, besides the model.
struct QuantizeResult {
  int quantizers = 0;
  std::vector<std::string> unused_rules;
  std::vector<std::string> notes;  ///< what was asked for and could not be done, layer by layer
  std::map<std::string, Observation> observations;  ///< by quantizer; of activations
};

/// Puts quantizers into the model by the rules and chooses their scales. The model computes with
/// rounded values from then on, and can be trained as it is or packed.
///
/// `calibration` may be null where no activation has a scale to measure and nothing else asks for
/// data; fails otherwise. Fails on a parameter that holds a number that is not finite.
QuantizeResult quantize_model(io::Model& model, const QuantizeOptions& options,
                              train::ExampleSource* calibration,
                              const engine::ExecutionOptions& execution,
                              const std::function<bool(std::int64_t)>& progress = {});

}  // namespace lathe::compress
