// What single nodes mean, by the values that constants fold to.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lathe/io/onnx/import_onnx.h"
#include "lathe/io/onnx/onnx_op.h"
#include "lathe/io/onnx/signature.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/run_reference.h"

namespace lathe::io::onnx {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

constexpr std::int64_t kBeyondDoubles = (std::int64_t{1} << 53) + 1;

Tensor i64(std::vector<std::int64_t> values) {
  return Tensor::from<std::int64_t>({static_cast<std::int64_t>(values.size())},
                                    std::span<const std::int64_t>(values));
}
Tensor u8(std::vector<std::uint8_t> values) {
  return Tensor::from<std::uint8_t>({static_cast<std::int64_t>(values.size())},
                                    std::span<const std::uint8_t>(values));
}
Tensor f32(std::vector<float> values) {
  return Tensor::from<float>({static_cast<std::int64_t>(values.size())},
                             std::span<const float>(values));
}

using NodeAttributes = std::map<std::string, AttributeValue, std::less<>>;

OnnxModel model_of(const std::string& op, const std::vector<Tensor>& operands,
                   NodeAttributes attributes) {
  OnnxModel model{.opsets = {{"", 17}}};
  OnnxNode node{.op = op, .outputs = {"y"}, .attributes = std::move(attributes)};
  for (const Tensor& operand : operands) {
    node.inputs.push_back(fmt::format("x{}", node.inputs.size()));
    model.graph.initializers.emplace_back(node.inputs.back(), operand);
  }
  model.graph.nodes = {std::move(node)};
  model.graph.outputs = {{.name = "y", .has_shape = false}};
  return model;
}

Tensor value_of(const std::string& op, const std::vector<Tensor>& operands,
                NodeAttributes attributes = {}) {
  const ImportedGraph imported = import_onnx(model_of(op, operands, std::move(attributes)));
  const NodeId node = imported.graph.output("y")->node;
  if (imported.graph.is(node, "state")) return imported.state.at(imported.graph.name(node));
  return ops::run_reference(imported.graph, node, {}, {})[0];
}

std::string refusal_of(const std::string& op, const std::vector<Tensor>& operands,
                       NodeAttributes attributes = {}) {
  return refusal("", [&] { value_of(op, operands, std::move(attributes)); });
}

std::vector<std::int64_t> integers(const std::string& op, const std::vector<Tensor>& operands,
                                   NodeAttributes attributes = {}) {
  return ops::read_integers(value_of(op, operands, std::move(attributes)));
}

std::vector<float> floats(const std::string& op, const std::vector<Tensor>& operands,
                          NodeAttributes attributes = {}) {
  const Tensor value = value_of(op, operands, std::move(attributes));
  return {value.data<float>().begin(), value.data<float>().end()};
}

TEST(OnnxMappings, ComputeWithWholeNumbersBeyondDoubles) {
  const Tensor a = i64({kBeyondDoubles, -7}), b = i64({3, 2});
  EXPECT_THAT(integers("Add", {a, b}), ElementsAre(kBeyondDoubles + 3, -5));
  EXPECT_THAT(integers("Mul", {a, b}), ElementsAre(3 * kBeyondDoubles, -14));
  EXPECT_THAT(integers("Div", {a, b}), ElementsAre(kBeyondDoubles / 3, -3));
  EXPECT_THAT(integers("Mod", {a, b}), ElementsAre(kBeyondDoubles % 3, 1));
  EXPECT_THAT(integers("Max", {a, b}), ElementsAre(kBeyondDoubles, 2));
  EXPECT_THAT(integers("Pow", {i64({3, -3}), i64({39, 3})}), ElementsAre(4052555153018976267, -27));
  EXPECT_THAT(integers("Identity", {i64({kBeyondDoubles, kBeyondDoubles - 1})}),
              ElementsAre(kBeyondDoubles, kBeyondDoubles - 1));
}

TEST(OnnxMappings, MultiplyMatricesOfWholeNumbersBeyondDoubles) {
  const Tensor a = i64({kBeyondDoubles, -7, 1, 2}).reshaped({2, 2});
  const Tensor b = i64({3, 1, 2, 0}).reshaped({2, 2});
  EXPECT_THAT(integers("MatMul", {a, b}),
              ElementsAre(3 * kBeyondDoubles - 14, kBeyondDoubles, 7, 1));
  EXPECT_THAT(integers("MatMul", {a, i64({1, 1})}), ElementsAre(kBeyondDoubles - 7, 3));
}

TEST(OnnxMappings, MultiplyAndSumByLetters) {
  const auto einsum = [](const std::string& equation, const std::vector<Tensor>& operands) {
    return floats("Einsum", operands, {{"equation", equation}});
  };
  const Tensor a = f32({1, 2, 3, 4}).reshaped({2, 2}), b = f32({5, 6}),
               c = f32({1, 0, 0, 2}).reshaped({2, 2});
  EXPECT_THAT(einsum("ij,j->i", {a, b}), ElementsAre(17, 39));
  EXPECT_THAT(einsum("ij->ji", {a}), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(einsum("ij -> ", {a}), ElementsAre(10));
  EXPECT_THAT(einsum("ij,ij->j", {a, c}), ElementsAre(1, 8));
  EXPECT_THAT(einsum("i,j->ji", {b, b}), ElementsAre(25, 30, 30, 36));
  EXPECT_THAT(einsum("ij,jk,k", {a, c, b}), ElementsAre(29, 63));
  EXPECT_THAT(einsum("...j,j->...", {a, b}), ElementsAre(17, 39));
  EXPECT_THAT(einsum("ba,ca", {a, c}), ElementsAre(1, 4, 3, 8));
  EXPECT_EQ(
      refusal_of("Einsum", {a}, {{"equation", std::string("ii->i")}}),
      "node \"y\" (\"Einsum\"): Einsum (opset 17): \"i\" twice in one term: diagonals are not "
      "supported");
  EXPECT_EQ(refusal_of("Einsum", {a, b}, {{"equation", std::string("ij->i")}}),
            "node \"y\" (\"Einsum\"): Einsum (opset 17): 2 operands, and the equation has 1");
  EXPECT_EQ(refusal_of("Einsum", {a}, {{"equation", std::string("ij->ik")}}),
            "node \"y\" (\"Einsum\"): Einsum (opset 17): \"k\" of the result is in no term");
  EXPECT_EQ(refusal_of("Einsum", {a}, {{"equation", std::string("i->i")}}),
            "node \"y\" (\"Einsum\"): Einsum (opset 17): term \"i\" for f32[2,2]");
  EXPECT_EQ(refusal_of("Einsum", {a}, {{"equation", std::string("i..j->ij")}}),
            "node \"y\" (\"Einsum\"): Einsum (opset 17): \".\" in the equation");
}

TEST(OnnxMappings, RefuseLettersThatStandForTwoSizes) {
  const auto refused = [](const std::string& equation, const std::vector<Tensor>& operands) {
    return refusal_of("Einsum", operands, {{"equation", equation}});
  };
  const Tensor two = f32({1, 2}), three = f32({1, 2, 3}), one = f32({1});
  EXPECT_EQ(refused("i,i->i", {two, three}),
            "node \"y\" (\"Einsum\"): Einsum (opset 17): sizes 2 and 3 of \"i\" differ");
  EXPECT_EQ(
      refused("i,i->i", {one, three}),
      "node \"y\" (\"Einsum\"): Einsum (opset 17): sizes 1 and 3 of \"i\" differ: broadcasting a "
      "size of 1 is not supported");
  EXPECT_EQ(refused("...,...->...", {three, one}),
            "node \"y\" (\"Einsum\"): Einsum (opset 17): sizes 3 and 1 of \"...\" differ: "
            "broadcasting a size of 1 is not supported");
}

// numpy and onnxruntime do not sum what dots stand for.
TEST(OnnxMappings, RefuseAResultWithoutTheDotsOfItsTerms) {
  EXPECT_EQ(
      refusal_of("Einsum", {f32({1, 2, 3, 4}).reshaped({2, 2})},
                 {{"equation", std::string("...j->j")}}),
      "node \"y\" (\"Einsum\"): Einsum (opset 17): the result has no \"...\", which stands for "
      "1 axis of the terms");
  EXPECT_THAT(floats("Einsum", {f32({1, 2})}, {{"equation", std::string("...j->j")}}),
              ElementsAre(1, 2));
}

TEST(OnnxMappings, LetNarrowIntegersWrapAround) {
  EXPECT_THAT(integers("Add", {u8({200, 3}), u8({100, 4})}), ElementsAre(44, 7));
  EXPECT_THAT(integers("Sub", {u8({0, 9}), u8({3, 4})}), ElementsAre(253, 5));
  EXPECT_THAT(integers("Cast", {i64({300, -1, kBeyondDoubles})}, {{"to", std::int64_t{2}}}),
              ElementsAre(44, 255, 1));
}

TEST(OnnxMappings, FindTheLeastOfUnsignedNumbersAndOfTheLeastNumber) {
  const NodeAttributes axes{{"axes", std::vector<std::int64_t>{0}}};
  EXPECT_THAT(integers("ReduceMin", {u8({200, 3, 5})}, axes), ElementsAre(3));
  EXPECT_THAT(integers("ArgMin", {u8({200, 3, 5})}), ElementsAre(1));
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  EXPECT_THAT(integers("ReduceMin", {i64({0, kLeast, 5})}, axes), ElementsAre(kLeast));
}

TEST(OnnxMappings, RefuseToDivideByNothing) {
  EXPECT_EQ(refusal_of("Div", {i64({7}), i64({0})}), "node \"y\" (\"Div\"): 7 is divided by 0");
}

TEST(OnnxMappings, InvertHyperbolicSinesOfLargeAndSmallNumbers) {
  EXPECT_THAT(floats("Asinh", {f32({1e20F, -1e-8F})}),
              ElementsAre(FloatEq(46.744849F), FloatEq(-1e-8F)));
  EXPECT_THAT(floats("Acosh", {f32({1e20F, 1})}), ElementsAre(FloatEq(46.744849F), 0));
}

TEST(OnnxMappings, AddExponentialsOfInfinities) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const NodeAttributes axes{{"axes", std::vector<std::int64_t>{0}}};
  EXPECT_THAT(floats("ReduceLogSumExp", {f32({-kInfinite, -kInfinite})}, axes),
              ElementsAre(-kInfinite));
  EXPECT_THAT(floats("ReduceLogSumExp", {f32({1, kInfinite})}, axes), ElementsAre(kInfinite));
}

TEST(OnnxMappings, NormalizeNothingToNothing) {
  const Tensor rows = f32({0, 0, 3, 4}).reshaped({2, 2});
  EXPECT_THAT(floats("LpNormalization", {rows}), ElementsAre(0, 0, FloatEq(0.6F), FloatEq(0.8F)));
  EXPECT_THAT(floats("LpNormalization", {rows}, {{"p", std::int64_t{1}}}),
              ElementsAre(0, 0, FloatEq(3 / 7.F), FloatEq(4 / 7.F)));
}

// The last window hangs over the end: it is the mean of what it has, and where padding counts, that
// of the file counts and no more.
TEST(OnnxMappings, CountPaddingButNotWhatHangsOver) {
  const Tensor x = f32({1, 2, 3, 4, 6}).reshaped({1, 1, 5});
  NodeAttributes attributes{{"kernel_shape", std::vector<std::int64_t>{2}},
                            {"strides", std::vector<std::int64_t>{2}},
                            {"ceil_mode", std::int64_t{1}},
                            {"count_include_pad", std::int64_t{1}}};
  EXPECT_THAT(floats("AveragePool", {x}, attributes), ElementsAre(1.5F, 3.5F, 6));
  attributes["kernel_shape"] = std::vector<std::int64_t>{3};
  attributes["pads"] = std::vector<std::int64_t>{1, 0};
  EXPECT_THAT(floats("AveragePool", {x}, attributes), ElementsAre(1, 3, 5));
}

TEST(OnnxMappings, RefuseWordsThatOnnxHasNot) {
  const Tensor image(DType::F32, {1, 4, 2, 2}), filters(DType::F32, {1, 4, 2, 2});
  EXPECT_EQ(refusal_of("Conv", {image, filters}, {{"auto_pad", std::string("SAME")}}),
            "node \"y\" (\"Conv\"): Conv (opset 17): auto_pad \"SAME\" is none of ONNX's");
  EXPECT_EQ(
      refusal_of("Conv", {image, filters}, {{"kernel_shape", std::vector<std::int64_t>{3, 3}}}),
      "node \"y\" (\"Conv\"): Conv (opset 17): weight f32[1,4,2,2] and kernel_shape [3,3] differ");
  EXPECT_EQ(
      refusal_of("DepthToSpace", {image},
                 {{"blocksize", std::int64_t{2}}, {"mode", std::string("RCD")}}),
      "node \"y\" (\"DepthToSpace\"): DepthToSpace (opset 17): mode \"RCD\" is not supported");
}

TEST(OnnxMappings, RefuseAFillingThatDoublesCannotHold) {
  EXPECT_EQ(
      refusal_of("Pad", {i64({1}), i64({1, 0}), Tensor::from<std::int64_t>({}, {kBeyondDoubles})}),
      "node \"y\" (\"Pad\"): Pad (opset 17): the constant is 9007199254740993, beyond what "
      "doubles hold exactly");
}

TEST(OnnxMappings, RefuseAttributesThatTheOpsetHasNot) {
  EXPECT_EQ(
      refusal_of("Clip", {f32({1})}, {{"min", 0.0}}),
      "node \"y\" (\"Clip\"): Clip (opset 17): attribute \"min\" is none of this op's in this "
      "opset");
  OnnxModel old = model_of("Clip", {f32({-1, 2})}, {{"min", 0.0}});
  old.opsets[""] = 10;
  EXPECT_NO_THROW(import_onnx(old));
  old.graph.nodes[0].attributes["__note"] = std::string("a tool's own");
  EXPECT_NO_THROW(import_onnx(old));
  // Legal in the schema, and nothing to inference.
  OnnxModel pool = model_of(
      "MaxPool", {Tensor(DType::F32, {1, 1, 4})},
      {{"kernel_shape", std::vector<std::int64_t>{2}}, {"storage_order", std::int64_t{0}}});
  EXPECT_NO_THROW(import_onnx(pool));
}

TEST(OnnxMappings, RefuseMoreOperandsThanTheOpTakes) {
  EXPECT_EQ(refusal_of("Relu", {f32({1}), f32({2})}),
            "node \"y\" (\"Relu\"): Relu (opset 17): 2 operands, expected at most 1");
}

TEST(OnnxMappings, RefuseOpsThatTheOpsetHasNot) {
  EXPECT_EQ(
      refusal_of("Gelu", {f32({1})}),
      "node \"y\" (\"Gelu\"): Gelu (opset 17): this opset has no such op, which came with opset "
      "20");
  EXPECT_EQ(refusal_of("Upsample", {f32({1}), f32({2})}),
            "node \"y\" (\"Upsample\"): Upsample (opset 17): opset 10 took this op back: expected "
            "Resize");
  OnnxModel old = model_of("Upsample", {f32({1}), f32({2})}, {});
  old.opsets[""] = 9;
  EXPECT_NO_THROW(import_onnx(old));
}

// onnxruntime had it in this domain before ONNX did, and its optimized models are written so.
TEST(OnnxMappings, ReadLayerNormsOfOnnxruntimeInOpsetsThatHaveNone) {
  OnnxModel model = model_of("LayerNormalization", {f32({1, 3}), f32({1, 1}), f32({0, 1})},
                             {{"epsilon", 0.0}, {"stash_type", std::int64_t{1}}});
  model.opsets[""] = 11;
  const ImportedGraph imported = import_onnx(model);
  const Tensor& y = imported.state.at(imported.graph.name(imported.graph.output("y")->node));
  EXPECT_THAT(y.data<float>(), ElementsAre(FloatEq(-1), FloatEq(2)));
}

TEST(OnnxMappings, HaveTheSignatureOfEveryOp) {
  for (const std::string& name : OnnxOpRegistry::instance().names())
    EXPECT_TRUE(has_signature(name) || name.find("::") != std::string::npos) << name;
}

// Split without sizes.
OnnxModel parting(std::int64_t opset, std::vector<float> values, int num_parts) {
  OnnxModel model = model_of("Split", {f32(std::move(values))}, {});
  model.opsets[""] = opset;
  if (opset >= 18) model.graph.nodes[0].attributes["num_outputs"] = std::int64_t{num_parts};
  model.graph.nodes[0].outputs.clear();
  model.graph.outputs.clear();
  for (int i = 0; i < num_parts; ++i) {
    model.graph.nodes[0].outputs.push_back(fmt::format("y{}", i));
    model.graph.outputs.push_back(
        {.name = model.graph.nodes[0].outputs.back(), .has_shape = false});
  }
  return model;
}

TEST(OnnxMappings, SplitIntoPartsThatAreNotEqualSinceOpsetEighteen) {
  const ImportedGraph parts = import_onnx(parting(18, {1, 2, 3, 4, 5}, 2));
  EXPECT_EQ(to_text(parts.graph.type(*parts.graph.output("y0"))), "f32[3]");
  EXPECT_EQ(to_text(parts.graph.type(*parts.graph.output("y1"))), "f32[2]");
  EXPECT_EQ(
      refusal("",
              [] {
                import_onnx(parting(17, {1, 2, 3, 4, 5}, 2));
              }),
      "node \"y0\" (\"Split\"): Split (opset 17): axis 0 of f32[5] does not come out even in 2 "
      "parts");
  // 2, 2, 2 and less than nothing.
  EXPECT_EQ(
      refusal("",
              [] {
                import_onnx(parting(18, {1, 2, 3, 4, 5}, 4));
              }),
      "node \"y0\" (\"Split\"): Split (opset 18): axis 0 of f32[5] does not come out even in 4 "
      "parts");
  OnnxModel said = parting(18, {1, 2, 3, 4}, 2);
  said.graph.nodes[0].attributes["num_outputs"] = std::int64_t{4};
  EXPECT_EQ(refusal("", [&] { import_onnx(said); }),
            "node \"y0\" (\"Split\"): Split (opset 18): num_outputs is 4, and there are 2");
}

// What is done to each element is done all the same.
TEST(OnnxMappings, ReduceNothingWhereAFileSaysSo) {
  const auto reduced = [](const std::string& op) {
    OnnxModel model =
        model_of(op, {f32({-2, 3})},
                 {{"noop_with_empty_axes", std::int64_t{1}}, {"keepdims", std::int64_t{0}}});
    model.opsets[""] = 18;
    const ImportedGraph imported = import_onnx(model);
    const Tensor& y = imported.state.at(imported.graph.name(imported.graph.output("y")->node));
    return std::vector<float>(y.data<float>().begin(), y.data<float>().end());
  };
  EXPECT_THAT(reduced("ReduceLogSumExp"), ElementsAre(-2, 3));
  EXPECT_THAT(reduced("ReduceL1"), ElementsAre(2, 3));
  EXPECT_THAT(reduced("ReduceL2"), ElementsAre(2, 3));
  EXPECT_THAT(reduced("ReduceSumSquare"), ElementsAre(4, 9));
  EXPECT_THAT(reduced("ReduceMin"), ElementsAre(-2, 3));
}

// The same of a file of opset 21, or a newer one.
std::string refusal_of_newer(const std::string& op, const std::vector<Tensor>& operands,
                             NodeAttributes attributes = {}, std::int64_t opset = 21) {
  OnnxModel model = model_of(op, operands, std::move(attributes));
  model.opsets[""] = opset;
  return refusal("", [&] { import_onnx(model); });
}

TEST(OnnxMappings, RefuseTypesThatDoNotFit) {
  EXPECT_EQ(refusal_of("Mod", {f32({5}), f32({3})}),
            "node \"y\" (\"Mod\"): Mod (opset 17): f32[1] without fmod, which ONNX has for whole "
            "numbers alone");
  EXPECT_THAT(floats("Mod", {f32({5}), f32({3})}, {{"fmod", std::int64_t{1}}}), ElementsAre(2));
  EXPECT_EQ(
      refusal_of("DequantizeLinear", {i64({5}), f32({3}), u8({1})}),
      "node \"y\" (\"DequantizeLinear\"): DequantizeLinear (opset 17): codes are i64 and zero "
      "points u8");
  EXPECT_EQ(
      refusal_of_newer("QuantizeLinear", {f32({5}), f32({3}), u8({1})},
                       {{"output_dtype", std::int64_t{3}}}),
      "node \"y\" (\"QuantizeLinear\"): QuantizeLinear (opset 21): codes are to be i8, and zero "
      "points are u8");
}

TEST(OnnxMappings, ScaleBlocksOfWhichTheLastIsShorter) {
  OnnxModel model = model_of("DequantizeLinear", {u8({1, 2, 3, 4, 5}), f32({10, 100})},
                             {{"axis", std::int64_t{0}}, {"block_size", std::int64_t{3}}});
  model.opsets[""] = 21;
  const ImportedGraph imported = import_onnx(model);
  const Tensor& y = imported.state.at(imported.graph.name(imported.graph.output("y")->node));
  EXPECT_THAT(y.data<float>(), ElementsAre(10, 20, 30, 400, 500));
  for (const std::int64_t block : {2, 5})
    EXPECT_EQ(
        refusal_of_newer("DequantizeLinear", {u8({1, 2, 3, 4, 5}), f32({10, 100})},
                         {{"axis", std::int64_t{0}}, {"block_size", block}}),
        fmt::format("node \"y\" (\"DequantizeLinear\"): DequantizeLinear (opset 21): 2 scales of "
                    "blocks of {} for 5 elements",
                    block));
}

TEST(OnnxMappings, RefuseBlocksOfScalesThatDoNotFit) {
  const auto refused = [](std::vector<std::int64_t> codes, std::vector<std::int64_t> scales,
                          std::int64_t block) {
    return refusal_of_newer("DequantizeLinear",
                            {Tensor(DType::U8, std::move(codes)), Tensor(DType::F32, scales)},
                            {{"axis", std::int64_t{1}}, {"block_size", block}});
  };
  const std::string place = "node \"y\" (\"DequantizeLinear\"): DequantizeLinear (opset 21): ";
  EXPECT_EQ(refused({4, 6}, {4, 2}, 3), "accepted");
  EXPECT_EQ(refused({4, 6}, {1, 2}, 3),
            place + "scales f32[1,2] of blocks along axis 1 for u8[4,6]: axis 0 differs");
  EXPECT_EQ(refused({1, 6}, {4, 2}, 3),
            place + "scales f32[4,2] of blocks along axis 1 for u8[1,6]: axis 0 differs");
  EXPECT_EQ(refused({4, 6}, {6}, 3),
            place + "block_size 3 and scales f32[6] for u8[4,6]: expected as many axes");
  EXPECT_EQ(refused({4, 6}, {}, 3),
            place + "block_size 3 and scales f32[] for u8[4,6]: expected as many axes");
  EXPECT_EQ(refused({4, 6}, {6}, -3), place + "block_size -3: expected 0 or more");
}

TEST(OnnxMappings, RefuseToComputeInOtherTypesThanThatOfTheScales) {
  const auto refused = [](const std::string& op, const Tensor& x, const char* attribute,
                          std::int64_t type) {
    return refusal_of_newer(op, {x, f32({3})}, {{"axis", std::int64_t{0}}, {attribute, type}}, 23);
  };
  for (const std::int64_t same : {0, 1}) {
    EXPECT_EQ(refused("DequantizeLinear", u8({5}), "output_dtype", same), "accepted");
    EXPECT_EQ(refused("QuantizeLinear", f32({5}), "precision", same), "accepted");
  }
  EXPECT_EQ(refused("DequantizeLinear", u8({5}), "output_dtype", 10),
            "node \"y\" (\"DequantizeLinear\"): DequantizeLinear (opset 23): output_dtype f16: "
            "expected that of the scales, f32");
  EXPECT_EQ(refused("QuantizeLinear", f32({5}), "precision", 99),
            "node \"y\" (\"QuantizeLinear\"): QuantizeLinear (opset 23): precision 99: expected "
            "that of the scales, f32");
}

// Until opset 9 the mask of a Dropout had the operand's type.
TEST(OnnxMappings, GiveTheMaskOfADropoutThatDropsNothing) {
  for (const std::int64_t opset : {7, 10}) {
    OnnxModel model = model_of("Dropout", {f32({1})}, {});
    model.opsets[""] = opset;
    model.graph.nodes[0].outputs = {"x", "y"};
    const ImportedGraph imported = import_onnx(model);
    EXPECT_EQ(to_text(imported.graph.type(*imported.graph.output("y"))),
              opset == 7 ? "f32[1]" : "bool[1]");
  }
}

// 9 of 18 pixels are 7 of 14, and not a little less.
TEST(OnnxMappings, ResizeToThePixelThatLiesThereExactly) {
  std::vector<float> pixels;
  for (int i = 0; i < 14; ++i) pixels.push_back(static_cast<float>(i));
  const NodeAttributes floor{{"mode", std::string("nearest")},
                             {"coordinate_transformation_mode", std::string("asymmetric")},
                             {"nearest_mode", std::string("floor")}};
  OnnxModel model = model_of("Resize", {f32(pixels), f32({}), f32({}), i64({18})}, floor);
  const auto resized = [](const OnnxModel& resize) {
    const ImportedGraph imported = import_onnx(resize);
    const Tensor& y = imported.state.at(imported.graph.name(imported.graph.output("y")->node));
    return std::vector<float>(y.data<float>().begin(), y.data<float>().end());
  };
  EXPECT_EQ(resized(model)[9], 7);
  // The same by a scale, which is rounded to a float.
  model.graph.initializers[3].second = f32({18.0F / 14.0F});
  model.graph.nodes[0].inputs = {"x0", "", "x3"};
  EXPECT_EQ(resized(model)[9], 7);
}

// Tests of ONNX 1.5 and of its shape inference.
TEST(OnnxMappings, ResizeByScalesAsOpsetTenDoes) {
  OnnxModel model = model_of("Resize", {f32({1, 2, 3, 4}), f32({0.6F})}, {});
  model.opsets[""] = 10;
  const ImportedGraph imported = import_onnx(model);
  const Tensor& y = imported.state.at(imported.graph.name(imported.graph.output("y")->node));
  EXPECT_THAT(y.data<float>(), ElementsAre(1, 3));
}

TEST(OnnxMappings, ResizeToTheLengthThatFloatsGive) {
  OnnxModel model = model_of("Resize", {Tensor(DType::F32, {10}), f32({0.7F})}, {});
  model.graph.nodes[0].inputs = {"x0", "", "x1"};
  const ImportedGraph imported = import_onnx(model);
  EXPECT_EQ(to_text(imported.graph.type(*imported.graph.output("y"))), "f32[7]");
}

// Exporters write the largest number of 32 bits for the end.
TEST(OnnxMappings, SliceToTheEndOfAnAxisThatIsNotKnown) {
  OnnxModel model = model_of("Slice",
                             {Tensor(DType::F32, {1}), i64({2}),
                              i64({std::numeric_limits<std::int32_t>::max()}), i64({0})},
                             {});
  model.graph.nodes[0].inputs[0] = "x";
  model.graph.inputs = {{.name = "x", .shape = {{.name = "rows"}, {.number = 3}}}};
  const ImportedGraph imported = import_onnx(model);
  EXPECT_EQ(to_text(imported.graph.type(*imported.graph.output("y"))), "f32[B-2,3]");
}

// ONNX clamps where a slice begins to the axis; numpy would take nothing.
TEST(OnnxMappings, SliceBackwardsFromBeforeTheFront) {
  const auto sliced = [](std::int64_t start, std::int64_t end) {
    return floats("Slice", {f32({1, 2, 3}), i64({start}), i64({end}), i64({0}), i64({-1})});
  };
  constexpr std::int64_t kFront = std::numeric_limits<std::int64_t>::min();
  EXPECT_THAT(sliced(-9, kFront), ElementsAre(1));
  EXPECT_THAT(sliced(kFront, kFront), ElementsAre(1));
  EXPECT_THAT(sliced(9, kFront), ElementsAre(3, 2, 1));
  EXPECT_THAT(sliced(-9, 0), ElementsAre());
  EXPECT_THAT(floats("Slice", {f32({}), i64({-1}), i64({kFront}), i64({0}), i64({-1})}),
              ElementsAre());
}

// Shape, a comparison with a number, and the choice that reads it: [rows,3] of which rows - 2 are
// left where the first are cut off.
OnnxModel comparing(const std::string& op, std::int64_t number, bool is_cut) {
  OnnxModel model{.opsets = {{"", 17}}};
  model.graph.inputs = {{.name = "x", .shape = {{.name = "rows"}, {.number = 3}}}};
  model.graph.initializers = {
      {"number", i64({number})}, {"ten", i64({10})},
      {"two", i64({2})},         {"end", i64({std::numeric_limits<std::int32_t>::max()})},
      {"first", i64({0})},       {"axis", i64({0})}};
  model.graph.nodes = {
      {.op = "Slice", .inputs = {"x", is_cut ? "two" : "first", "end", "axis"}, .outputs = {"cut"}},
      {.op = "Shape", .inputs = {"cut"}, .outputs = {"shape"}},
      {.op = "Gather", .inputs = {"shape", "first"}, .outputs = {"size"}},
      {.op = op, .inputs = {"size", "number"}, .outputs = {"answer"}},
      {.op = "Where", .inputs = {"answer", "ten", "size"}, .outputs = {"chosen"}},
      {.op = "ConstantOfShape", .inputs = {"chosen"}, .outputs = {"y"}}};
  model.graph.outputs = {{.name = "y", .has_shape = false}};
  return model;
}

TEST(OnnxMappings, CompareSizesWhereEveryRunAnswersTheSame) {
  const auto shape = [](const OnnxModel& model) {
    const ImportedGraph imported = import_onnx(model);
    return to_text(imported.graph.type(*imported.graph.output("y")));
  };
  EXPECT_EQ(shape(comparing("Equal", -1, false)), "f32[B]");
  EXPECT_EQ(shape(comparing("Equal", 0, false)), "f32[B]");
  EXPECT_EQ(shape(comparing("Greater", 0, false)), "f32[10]");
  // No axis is -1, whatever was cut off.
  EXPECT_EQ(shape(comparing("Equal", -1, true)), "f32[B-2]");
}

TEST(OnnxMappings, RefuseToSqueezeAnAxisThatMayBeOne) {
  OnnxModel model = model_of("Squeeze", {f32({1})}, {});
  model.graph.nodes[0].inputs = {"x"};
  model.graph.inputs = {{.name = "x", .shape = {{.name = "rows"}, {.number = 1}}}};
  EXPECT_EQ(
      refusal("", [&] { import_onnx(model); }),
      "node \"y\" (\"Squeeze\"): Squeeze (opset 17): no axes are given, and axis 0 of f32[B,1] "
      "may be 1 in one run and more in the next");
  model.graph.inputs[0].shape[0] = {.number = 3};
  const ImportedGraph imported = import_onnx(model);
  EXPECT_EQ(to_text(imported.graph.type(*imported.graph.output("y"))), "f32[3]");
}

TEST(OnnxMappings, RefuseToDecideWhetherAnAxisIsOne) {
  for (const char* op : {"Equal", "Less", "Greater"})
    EXPECT_EQ(refusal("", [&] { import_onnx(comparing(op, op[0] == 'L' ? 2 : 1, false)); }),
              fmt::format("node \"answer\" (\"{}\"): \"size\" holds the size B, which is not known "
                          "before the model runs, and is used as a number",
                          op));
}

}  // namespace
}  // namespace lathe::io::onnx
