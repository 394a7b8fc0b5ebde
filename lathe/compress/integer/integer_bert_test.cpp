// A small BERT by the hardware profile: its integer graph beside the quantized one, quantizer by
// quantizer on equal inputs, so that a difference is of one op alone.

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/hardware_profile.h"
#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/integer/lower_to_integer.h"
#include "lathe/compress/quantizers.h"
#include "lathe/core/pass.h"
#include "lathe/core/select_outputs.h"
#include "lathe/engine/executor.h"
#include "lathe/engine/reference_executor.h"
#include "lathe/engine/symbol_binding.h"
#include "lathe/io/model.h"
#include "lathe/ops/elements.h"

namespace lathe::compress {
namespace {

class IntegerBert : public testing::Test {
 protected:
  IntegerBert() {
    model_ = io::load_model("bert-tiny", {.task = "classify",
                                          .config = {{"vocab_size", std::int64_t{30}},
                                                     {"hidden_size", std::int64_t{16}},
                                                     {"num_hidden_layers", std::int64_t{2}},
                                                     {"num_attention_heads", std::int64_t{2}},
                                                     {"intermediate_size", std::int64_t{32}},
                                                     {"max_position_embeddings", std::int64_t{12}},
                                                     {"initializer_range", 0.3}},
                                          .seed = 3});
    model_.graph = select_outputs(model_.graph, {"logits"});
    run_pass("remove-dropout", model_.graph);
    std::vector<std::int32_t> ids, mask;
    for (int row = 0; row < 6; ++row)
      for (int i = 0; i < 12; ++i) {
        ids.push_back((row * 7 + i * 11 + row * i) % 30);
        mask.push_back(i < 5 + row ? 1 : 0);
      }
    feed_["input_ids"] = Tensor::from<std::int32_t>({6, 12}, std::span<const std::int32_t>(ids));
    feed_["attention_mask"] =
        Tensor::from<std::int32_t>({6, 12}, std::span<const std::int32_t>(mask));
  }

  // Quantizers with the least power of two that covers what the float model computes.
  void quantize(const HardwareFormats& formats) {
    std::map<std::string, double> largest;
    engine::run_reference(model_.graph, model_.state, feed_,
                          [&](Value value, const Tensor& tensor) {
                            for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
                              double& most = largest[model_.graph.name(value.node)];
                              most = std::max(most, std::fabs(tensor.at(i)));
                            }
                          });
    insert_quantizers(model_.graph, model_.state, hardware_rules(model_.graph, formats));
    set_parameter_scales(model_.graph, model_.state, {});
    for (const Quantizer& quantizer : find_quantizers(model_.graph)) {
      if (quantizer.is_parameter) continue;
      Value behind = model_.graph.input(quantizer.node, 0);
      while (model_.graph.is(behind.node, "quantize")) behind = model_.graph.input(behind.node, 0);
      const double most = largest.at(model_.graph.name(behind.node));
      const double high = parse_format(quantizer.format)->facts().maximum;
      const std::string scale = model_.graph.name(model_.graph.input(quantizer.node, 1).node);
      model_.state.at(scale) = Tensor::from<float>({}, {static_cast<float>(most / high)});
    }
  }

  io::Model model_;
  Feed feed_;
};

// The values of an integer graph by node name, as what they are worth.
std::map<std::string, std::vector<double>> worths(const Graph& graph, const State& state,
                                                  const Feed& feed) {
  std::map<std::string, std::vector<double>> result;
  engine::run_reference(graph, state, feed, [&](Value value, const Tensor& tensor) {
    const auto scale = graph.attributes(value.node).find("scale");
    if (is_floating(tensor.dtype()) || scale == graph.attributes(value.node).end()) return;
    const double step = std::get<std::vector<double>>(scale->second).front();
    std::vector<double>& values = result[graph.name(value.node)];
    for (const std::int64_t x : ops::read_integers(tensor))
      values.push_back(static_cast<double>(x) * step);
  });
  return result;
}

// docs/integer.md, "What differs": how many codes an op's result may be from the float's, when its
// operands are the same. Scales are powers of two and sums below 2^24, so floats round nothing but
// a bias, by half a step of its sum: that moves a code by one at most. So does a layer norm: its z
// is off by less than 2^-17 of a result that has 2^15 codes, its weight by a part in 2^18.
// Attention averages values within 127 codes: 1.1 % of them, the tail of 12 keys at 127 / 65534
// each, and the last rounding.
double most_codes(const std::string& integer_op) {
  if (integer_op == "integer_attention") return 0.011 * 127 + 12 * 127.0 / 65534 + 1;
  if (integer_op == "integer_table") return 0;
  return 1;
}

TEST_F(IntegerBert, DiffersFromTheQuantizedGraphByWhatTheOpsSay) {
  quantize({});
  Graph graph = model_.graph;
  State state = model_.state;
  lower_to_integer(graph, state);
  const std::map<std::string, std::vector<double>> integers = worths(graph, state, feed_);

  const Graph& quantized = model_.graph;
  const SymbolValues symbols = engine::bind_symbols(quantized, feed_);
  std::map<Value, Tensor> values;
  int compared = 0;
  for (const NodeId id : quantized.topological_order()) {
    if (quantized.is(id, "input")) {
      values[{id, 0}] = feed_.at(quantized.name(id));
      continue;
    }
    if (quantized.is(id, "state")) {
      values[{id, 0}] = model_.state.at(quantized.name(id));
      continue;
    }
    std::vector<const Tensor*> operands;
    for (const Value& value : quantized.inputs(id))
      operands.push_back(value.is_none() ? nullptr : &values.at(value));
    Tensor result = engine::evaluate_node(quantized, id, operands, symbols)[0];
    const auto integer = integers.find(quantized.name(id));
    if (quantized.is(id, "quantize") && integer != integers.end()) {
      SCOPED_TRACE(quantized.name(id));
      const NodeId lowered = graph.at(quantized.name(id));
      const double step =
          std::get<std::vector<double>>(graph.attributes(lowered).at("scale")).front();
      const double bound = most_codes(graph.op(lowered).name);
      ASSERT_EQ(result.num_elements(), std::ssize(integer->second));
      for (std::int64_t i = 0; i < result.num_elements(); ++i) {
        const double codes =
            std::fabs(result.at(i) - integer->second[static_cast<std::size_t>(i)]) / step;
        EXPECT_LE(codes, bound) << i;
        result.mutable_data<float>()[static_cast<std::size_t>(i)] =
            static_cast<float>(integer->second[static_cast<std::size_t>(i)]);
      }
      ++compared;
    }
    values[{id, 0}] = std::move(result);
  }
  // For each layer: q, k, v, attention, two sums of layers, two adds, two norms, both formats of
  // a norm, GELU's input and output; and the embeddings, the pooler and the classifier.
  EXPECT_GE(compared, 30);
}

TEST_F(IntegerBert, GivesTheSameOnTheCpuAsByReference) {
  quantize({.weights = "int:8,channel", .activations = "int:8"});
  lower_to_integer(model_.graph, model_.state);
  const Tensor expected = engine::run_reference(model_.graph, model_.state, feed_).at("logits");
  EXPECT_TRUE(identical(engine::make_executor(model_.graph, model_.state)->run(feed_).at("logits"),
                        expected));
}

TEST_F(IntegerBert, GivesTheSamePackedAsPadded) {
  quantize({});
  lower_to_integer(model_.graph, model_.state);
  const Tensor expected = engine::run_reference(model_.graph, model_.state, feed_).at("logits");
  run_pass("pack-sequences", model_.graph);
  std::vector<std::int32_t> ids, offsets{0};
  for (std::int64_t row = 0; row < 6; ++row) {
    for (std::int64_t i = 0; i < 5 + row; ++i)
      ids.push_back(static_cast<std::int32_t>(feed_.at("input_ids").at(row * 12 + i)));
    offsets.push_back(static_cast<std::int32_t>(ids.size()));
  }
  const Feed packed{
      {"input_ids",
       Tensor::from<std::int32_t>({std::ssize(ids)}, std::span<const std::int32_t>(ids))},
      {"offsets", Tensor::from<std::int32_t>({7}, std::span<const std::int32_t>(offsets))}};
  EXPECT_TRUE(
      identical(engine::run_reference(model_.graph, model_.state, packed).at("logits"), expected));
  EXPECT_TRUE(identical(engine::make_executor(model_.graph, model_.state)->run(packed).at("logits"),
                        expected));
}

TEST_F(IntegerBert, NamesTheIslandsOfAQuantizationOfLayersAlone) {
  QuantizationRule everywhere;
  everywhere.formats = {{TensorRole::Weights, "fixed:8,4"}, {TensorRole::Inputs, "fixed:8,4"}};
  insert_quantizers(model_.graph, model_.state, {everywhere});
  try {
    lower_to_integer(model_.graph, model_.state);
    FAIL() << "it has floats";
  } catch (const UserError& error) {
    EXPECT_EQ(error.message().find('\n'), std::string::npos);
    EXPECT_NE(error.message().find("\"bert.embeddings.word_embeddings\" (embedding)"),
              std::string::npos);
    EXPECT_EQ(error.hint(), "lathe quantize --profile hardware puts quantizers everywhere");
  }
}

}  // namespace
}  // namespace lathe::compress
