#include "lathe/compress/packed_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/quantizers.h"
#include "lathe/compress/trained_parameters.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/passes/profile.h"
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
  return engine::make_executor(model.graph, model.state, {.device = executor})
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
  EXPECT_EQ(num_parameters(simulated.graph), 6 * 4 + 3 * 4 + 3);
  EXPECT_EQ(num_parameters(model.graph), 6 * 4 + 3 * 4 + 3);
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
w.scale = state() {role="scale"} : f32[3]
ids = input() : i32[B]
table.codes = state() {role="codes"} : u8[6,4]
table.local_scales = state() {role="scale"} : u8[6,2]
table/quantized = decode(table.codes, table.local_scales) {columns=4, format="mxint:8,block=2", of="table"} : f32[6,4]
rows = embedding(ids, table/quantized) : f32[B,4]
w.codes = state() {role="codes"} : u8[3,2]
b = state() : f32[3]
w/quantized = decode(w.codes, none, w.scale) {columns=4, format="int:4,channel", of="w"} : f32[3,4]
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
  // Graphs written before decode said whose codes it reads go by the codes' name.
  Quantized unnamed = model;
  unnamed.graph.remove_attribute(unnamed.graph.at("w/quantized"), "of");
  EXPECT_EQ(refusal(unnamed, {}), "no error");
  unnamed.graph.rename(unnamed.graph.at("w.codes"), "c");
  unnamed.state["c"] = unnamed.state["w.codes"];
  EXPECT_EQ(
      refusal(unnamed, {}),
      "node \"w/quantized\": says of no parameter that it holds its codes (attribute \"of\")");
  EXPECT_EQ(
      error_text([&] { make_float(unnamed.graph, unnamed.state); }),
      "node \"w/quantized\": says of no parameter that it holds its codes (attribute \"of\")");
}

TEST(UnpackWeights, KnowsTheParameterWhateverItsCodesAreCalled) {
  Quantized model = quantize(kLookupAndLinear, {{TensorRole::Weights, "int:4,channel"}});
  const std::string before = print(model.graph);
  pack_weights(model.graph, model.state);
  model.graph.rename(model.graph.at("w.codes"), "c");
  model.state["c"] = model.state["w.codes"];
  unpack_weights(model.graph, model.state);
  EXPECT_EQ(print(model.graph), before);
}

const char* const kMaskedLayers = R"(lathe-ir 2
symbols B
ids = input() : i32[B]
table = state() : f32[6,4]
table.mask = state() {role="mask"} : f32[6,4]
table/masked = mul(table.mask, table) : f32[6,4]
rows = embedding(ids, table/masked) : f32[B,4]
w = state() : f32[3,4]
w.mask = state() {role="mask"} : f32[3,4]
w/masked = mul(w, w.mask) : f32[3,4]
y = linear(rows, w/masked, none) : f32[B,3]
output y <- y
)";

TEST(PackWeights, KeepsMasksAndGivesThemBack) {
  for (const char* const format : {"int:4,channel", "mxint:8,block=2", "int:8", "fixed:8,4"}) {
    SCOPED_TRACE(format);
    Quantized model =
        quantize(kMaskedLayers, {{TensorRole::Weights, format}, {TensorRole::Embeddings, format}});
    for (const char* const mask : {"w.mask", "table.mask"})
      for (float& value : model.state.at(mask).mutable_data<float>()) value = value > 0 ? 1 : 0;
    set_parameter_scales(model.graph, model.state, {});
    const Quantized simulated = model;
    EXPECT_EQ(pack_weights(model.graph, model.state), 2);
    EXPECT_FALSE(model.state.contains("w"));
    EXPECT_TRUE(identical(model.state.at("w.mask"), simulated.state.at("w.mask")));
    EXPECT_TRUE(identical(answer("reference", model), answer("reference", simulated)));

    model.graph = parse_graph(print(model.graph));
    Quantized plain = model;
    unpack_weights(model.graph, model.state, simulated.state);
    EXPECT_EQ(print(model.graph), print(simulated.graph));
    make_float(plain.graph, plain.state);
    EXPECT_EQ(print(plain.graph), kMaskedLayers);
    EXPECT_TRUE(identical(answer("reference", plain), answer("reference", simulated)));
  }
}

TEST(PackWeights, KeepsMasksBehindFormatsWithoutAZero) {
  for (const char* const format : {"binary", "binary:scaled", "binary:residual,2"}) {
    SCOPED_TRACE(format);
    Quantized model =
        quantize(kMaskedLayers, {{TensorRole::Weights, format}, {TensorRole::Embeddings, format}});
    for (const char* const mask : {"w.mask", "table.mask"})
      for (float& value : model.state.at(mask).mutable_data<float>()) value = value > 0 ? 1 : 0;
    const Quantized simulated = model;
    EXPECT_EQ(pack_weights(model.graph, model.state), 2);
    EXPECT_TRUE(identical(answer("reference", model), answer("reference", simulated)));
    model.graph = parse_graph(print(model.graph));
    Quantized plain = model;
    unpack_weights(model.graph, model.state, simulated.state);
    EXPECT_EQ(print(model.graph), print(simulated.graph));
    make_float(plain.graph, plain.state);
    EXPECT_TRUE(identical(answer("reference", plain), answer("reference", simulated)));
  }
}

TEST(PackWeights, LeavesAMaskBeforeAFormatWithoutAZeroAsItIs) {
  Quantized model{parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[3,4]
    m = state() {role="mask"} : f32[3,4]
    p = mul(w, m)
    q = quantize(p) {format="binary"}
    y = linear(x, q)
    output y <- y
  )"),
                  {{"w", Tensor(DType::F32, {3, 4})}, {"m", Tensor(DType::F32, {3, 4})}}};
  const std::string before = print(model.graph);
  EXPECT_EQ(pack_weights(model.graph, model.state), 0);
  EXPECT_EQ(print(model.graph), before);
}

const char* const kConvolution = R"(lathe-ir 2
symbols B
ids = input() : f32[B,2,4,4]
w = state() : f32[3,2,3,3]
h = conv2d(ids, w, none) : f32[B,3,2,2]
flat = reshape(h) : f32[B,12]
v = state() : f32[12,5]
y = matmul(flat, v) : f32[B,5]
output y <- y
)";

TEST(PackWeights, PacksConvolutionsAndProductsByTheirOutputs) {
  const auto logits = [](const Quantized& model) {
    Tensor x(DType::F32, {2, 2, 4, 4});
    for (std::size_t i = 0; i < 64; ++i) x.mutable_data<float>()[i] = static_cast<float>(i % 7) - 3;
    return engine::make_executor(model.graph, model.state, {.device = "reference"})
        ->run({{"ids", x}})
        .at("y");
  };
  for (const char* const format : {"int:4,channel", "int:4,group=4", "mxint:8,block=4", "nf4"}) {
    SCOPED_TRACE(format);
    Quantized model = quantize(kConvolution, {{TensorRole::Weights, format}});
    const Quantized simulated = model;
    EXPECT_EQ(pack_weights(model.graph, model.state), 2);
    EXPECT_EQ(model.state.at("w.codes").dim(0), 3);
    EXPECT_EQ(model.state.at("v.codes").dim(0), 5);
    EXPECT_TRUE(identical(logits(model), logits(simulated)));
    model.graph = parse_graph(print(model.graph));
    Quantized plain = model;
    unpack_weights(model.graph, model.state, simulated.state);
    EXPECT_EQ(print(model.graph), print(simulated.graph));
    make_float(plain.graph, plain.state);
    EXPECT_EQ(print(plain.graph), kConvolution);
    EXPECT_TRUE(identical(logits(plain), logits(simulated)));
  }
}

TEST(MakeFloat, GivesARoundedReaderOfASharedParameterAStateOfItsOwn) {
  Quantized model = quantize(R"(
    ids = input() : i32[B]
    w = state() : f32[6,4]
    rows = embedding(ids, w)
    y = linear(rows, w)
    output y <- y
  )",
                             {{TensorRole::Weights, "int:4,channel"}});
  const Quantized simulated = model;
  make_float(model.graph, model.state);
  EXPECT_EQ(print(model.graph, "y"), "y = linear(rows, w/quantized) : f32[B,6]");
  EXPECT_TRUE(identical(model.state.at("w"), simulated.state.at("w")));
  EXPECT_TRUE(identical(answer("reference", model), answer("reference", simulated)));
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

// LoRA leaves the weights of a packed model as they are: floats beside their codes would be the
// same.
TEST(PackModel, KeepsNoMastersThatTheCodesSayAlready) {
  const io::ScratchDirectory scratch;
  io::Model model = io::load_model(io::write_tiny_bert(scratch, "m"), {.task = "classify"});
  insert_quantizers(model.graph, model.state, {{.formats = {{TensorRole::Weights, "int:4"}}}});
  set_parameter_scales(model.graph, model.state, {});
  pack_model(model, false);
  unpack_model(model);
  model.state.at("classifier.weight").mutable_data<float>()[0] += 0.001f;
  pack_model(model);
  EXPECT_THAT(model.masters, ElementsAre(testing::Key("classifier.weight")));
}

// Without masters a head that nobody has trained lies there as codes alone, and is as untrained.
TEST(PackModel, RemembersWhatIsFreshBehindItsCodes) {
  const io::ScratchDirectory scratch;
  io::Model model = io::load_model(io::write_tiny_bert(scratch, "m"), {.task = "classify"});
  model.fresh = {"classifier.weight", "classifier.bias"};
  insert_quantizers(model.graph, model.state, {{.formats = {{TensorRole::Weights, "int:4"}}}});
  set_parameter_scales(model.graph, model.state, {});
  pack_model(model, false);
  io::write_checkpoint(scratch / "q", model);

  io::Model read = io::load_model((scratch / "q").string(), {.with_masters = true});
  EXPECT_FALSE(read.state.contains("classifier.weight"));
  EXPECT_THAT(read.fresh, ElementsAre("classifier.weight", "classifier.bias"));
  unpack_model(read);
  EXPECT_THAT(fresh_head(read), ElementsAre("classifier.weight", "classifier.bias"));
  EXPECT_TRUE(read.state.contains("classifier.weight"));

  // Its scale was made for random numbers, and goes with its rounding.
  const std::size_t num_states = read.state.size();
  EXPECT_THAT(unround_parameters(read.graph, read.state, read.fresh),
              ElementsAre("classifier.weight"));
  EXPECT_EQ(read.state.size(), num_states - 1);
  EXPECT_THAT(print(read.graph, "classifier"),
              testing::HasSubstr(", classifier.weight, classifier.bias)"));
}

}  // namespace
}  // namespace lathe::compress
