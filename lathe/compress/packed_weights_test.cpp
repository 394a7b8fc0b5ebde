#include "lathe/compress/packed_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/quantizers.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/engine/executor.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/models/initialize.h"

namespace lathe::compress {
namespace {

using testing::ElementsAre;

const char* const kLookupAndLinear = R"(lathe-ir 2
symbols B
ids = input() : i32[B]
table = state() : f32[6,4]
rows = embedding(ids, table) : f32[B,4]
w = state() : f32[3,4]
b = state() : f32[3]
y = linear(rows, w, b) : f32[B,3]
output y <- y
)";

struct Quantized {
  Graph graph;
  State state;
};

Quantized quantize(const char* text, const RoleFormats& formats) {
  Quantized result{parse_graph(text), {}};
  std::uint32_t random = 1;
  for (const NodeId id : result.graph.nodes_of("state")) {
    Tensor tensor(DType::F32, result.graph.types(id)[0].dims({}));
    for (float& value : tensor.mutable_data<float>())
      value = static_cast<float>((random = random * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1;
    result.state[result.graph.name(id)] = tensor;
  }
  insert_quantizers(result.graph, result.state, {{.formats = formats}});
  set_parameter_scales(result.graph, result.state, {});
  return result;
}

Tensor answer(const char* executor, const Quantized& model) {
  return engine::make_executor(executor, model.graph, model.state)
      ->run({{"ids", Tensor::from<std::int32_t>({4}, {5, 0, 3, 3})}})
      .at("y");
}

std::vector<std::string> format_examples() {
  std::vector<std::string> all;
  for (const std::string& name : FormatRegistry::instance().names())
    for (const std::string& example : FormatRegistry::instance().find(name)->examples)
      all.push_back(example);
  return all;
}

class EveryFormat : public testing::TestWithParam<std::string> {};

TEST_P(EveryFormat, ComputesTheSameBitsPackedAndUnpacksToWhatItWas) {
  Quantized model = quantize(kLookupAndLinear, {{TensorRole::Weights, GetParam()},
                                                {TensorRole::Bias, GetParam()},
                                                {TensorRole::Embeddings, GetParam()}});
  const Quantized simulated = model;
  EXPECT_EQ(pack_weights(model.graph, model.state), 3);
  EXPECT_TRUE(model.graph.nodes_of("quantize").empty());
  EXPECT_FALSE(model.state.contains("w"));
  for (const char* const executor : {"reference", "cpu"})
    EXPECT_TRUE(identical(answer(executor, model), answer(executor, simulated))) << executor;

  // From the graph's text on, as a checkpoint is read back.
  model.graph = parse_graph(print(model.graph));
  Quantized from_codes = model;
  unpack_weights(model.graph, model.state, simulated.state);
  EXPECT_EQ(print(model.graph), print(simulated.graph));
  ASSERT_EQ(model.state.size(), simulated.state.size());
  for (const auto& [name, tensor] : simulated.state)
    EXPECT_TRUE(identical(model.state.at(name), tensor)) << name;

  // Without masters, floats are what the codes stand for.
  unpack_weights(from_codes.graph, from_codes.state);
  EXPECT_EQ(print(from_codes.graph), print(simulated.graph));
}

TEST_P(EveryFormat, BecomesAPlainFloatModelWithTheRoundedNumbers) {
  const Quantized simulated = quantize(
      kLookupAndLinear, {{TensorRole::Weights, GetParam()}, {TensorRole::Embeddings, GetParam()}});
  Quantized packed = simulated, plain = simulated;
  pack_weights(packed.graph, packed.state);
  for (Quantized* const model : {&plain, &packed}) {
    make_float(model->graph, model->state);
    EXPECT_EQ(print(model->graph), kLookupAndLinear);
    EXPECT_THAT(model->state,
                ElementsAre(testing::Key("b"), testing::Key("table"), testing::Key("w")));
    for (const char* const executor : {"reference", "cpu"})
      EXPECT_TRUE(identical(answer(executor, *model), answer(executor, simulated))) << executor;
  }
  EXPECT_FALSE(identical(plain.state.at("w"), simulated.state.at("w")));
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryFormat, testing::ValuesIn(format_examples()),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

TEST(PackWeights, WritesCodesInThePlaceOfTheFloats) {
  Quantized model = quantize(kLookupAndLinear, {{TensorRole::Weights, "int:4,channel"},
                                                {TensorRole::Embeddings, "mxint:8,block=2"}});
  pack_weights(model.graph, model.state);
  EXPECT_EQ(print(model.graph), R"(lathe-ir 2
symbols B
w.scale = state() : f32[3]
ids = input() : i32[B]
table.codes = state() : u8[6,4]
table.local_scales = state() : u8[6,2]
table/quantized = decode(table.codes, table.local_scales) {columns=4, format="mxint:8,block=2"} : f32[6,4]
rows = embedding(ids, table/quantized) : f32[B,4]
w.codes = state() : u8[3,2]
b = state() : f32[3]
w/quantized = decode(w.codes, none, w.scale) {columns=4, format="int:4,channel"} : f32[3,4]
y = linear(rows, w/quantized, b) : f32[B,3]
output y <- y
)");
  EXPECT_EQ(model.state.size(), 5u);
}

TEST(PackWeights, KeepsTheFloatsOfAParameterThatSomebodyElseReads) {
  Quantized model = quantize(R"(
    ids = input() : i32[B]
    w = state() : f32[6,4]
    rows = embedding(ids, w)
    y = linear(rows, w)
    output y <- y
  )",
                             {{TensorRole::Weights, "int:8,channel"}});
  const std::string before = print(model.graph);
  EXPECT_TRUE(packable_parameters(model.graph).empty());
  EXPECT_EQ(pack_weights(model.graph, model.state), 0);
  EXPECT_EQ(print(model.graph), before);
  EXPECT_TRUE(model.state.contains("w"));
}

TEST(UnpackWeights, RefusesWhatDoesNotFit) {
  Quantized model = quantize(kLookupAndLinear, {{TensorRole::Weights, "int:4,channel"}});
  pack_weights(model.graph, model.state);
  const auto refusal = [](Quantized copy, const State& masters) {
    return error_text([&] { unpack_weights(copy.graph, copy.state, masters); });
  };
  EXPECT_EQ(refusal(model, {{"w", Tensor::from<float>({2}, {1, 2})}}),
            "tensor \"w\" does not fit its codes: expected f32[3,4]");
  Quantized renamed = model;
  renamed.graph.rename(renamed.graph.at("w.codes"), "c");
  renamed.state["c"] = renamed.state["w.codes"];
  EXPECT_EQ(refusal(renamed, {}),
            "node \"w/quantized\": its codes are called \"c\", which names no parameter");
  EXPECT_EQ(error_text([&] { make_float(renamed.graph, renamed.state); }),
            "node \"w/quantized\": its codes are called \"c\", which names no parameter");
  Quantized computed = model;
  computed.graph = parse_graph(R"(
    x = input() : f32[B,4]
    w.codes = state() : u8[3,2]
    s = state() : f32[3]
    t = relu(s)
    d = decode(w.codes, none, t) {columns=4, format="int:4,channel"}
    y = linear(x, d)
    output y <- y
  )");
  EXPECT_EQ(refusal(computed, {}), "node \"d\": operand 2 is \"t\", but must be a state");
}

TEST(PackModel, KeepsMastersThatTrainingGoesOnFrom) {
  const io::ScratchDirectory scratch;
  const std::string directory = io::write_tiny_bert(scratch, "m");
  io::Model model = io::load_model(directory, {.task = "classify"});
  insert_quantizers(model.graph, model.state, {{.formats = {{TensorRole::Weights, "int:4"}}}});
  set_parameter_scales(model.graph, model.state, {});
  const State floats = model.state;
  pack_model(model);
  EXPECT_EQ(model.masters.size(), 8u);
  io::write_checkpoint(scratch / "q", model);

  const io::Model small = io::load_model((scratch / "q").string());
  EXPECT_TRUE(small.masters.empty());
  EXPECT_FALSE(small.state.contains("classifier.weight"));
  io::Model whole = io::load_model((scratch / "q").string(), {.with_masters = true});
  unpack_model(whole);
  EXPECT_TRUE(whole.masters.empty());
  ASSERT_EQ(whole.state.size(), floats.size());
  for (const auto& [name, tensor] : floats)
    EXPECT_TRUE(identical(whole.state.at(name), tensor)) << name;
}

}  // namespace
}  // namespace lathe::compress
