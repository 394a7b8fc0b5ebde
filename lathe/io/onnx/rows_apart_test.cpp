// Files that were exported for one row, and whether they are read for any number.

#include <gtest/gtest.h>

#include "lathe/io/onnx/load_onnx.h"
#include "lathe/io/onnx/onnx_model.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::io::onnx {
namespace {

using Sizes = std::vector<std::int64_t>;

// The type of what the nodes make of x : f32[1,4,6], the last of them y.
std::string type_of(std::vector<OnnxNode> nodes) {
  OnnxModel model{.opsets = {{"", 13}}};
  const auto list = [](const Sizes& sizes) {
    return Tensor::from<std::int64_t>({static_cast<std::int64_t>(sizes.size())},
                                      std::span<const std::int64_t>(sizes));
  };
  model.graph.initializers = {{"first", list({0})},
                              {"open,6", list({-1, 6})},
                              {"1,4,6", list({1, 4, 6})},
                              {"w", Tensor(DType::F32, {6, 3})}};
  model.graph.inputs = {{.name = "x", .shape = {{.number = 1}, {.number = 4}, {.number = 6}}}};
  model.graph.outputs = {{.name = "y", .has_shape = false}};
  model.graph.nodes = std::move(nodes);
  const ScratchDirectory scratch;
  const Model read = read_onnx_model(scratch.write("m.onnx", serialize_onnx(model)));
  return to_text(read.graph.type(*read.graph.output("y")));
}

OnnxNode node(std::string op, std::vector<std::string> inputs, std::string output,
              std::map<std::string, AttributeValue, std::less<>> attributes = {}) {
  return {.op = std::move(op),
          .inputs = std::move(inputs),
          .outputs = {std::move(output)},
          .attributes = std::move(attributes)};
}

TEST(OneRow, MeansAnyNumberWhereEachIsComputedAlone) {
  EXPECT_EQ(type_of({node("Relu", {"x"}, "y")}), "f32[B,4,6]");
  EXPECT_EQ(type_of({node("MatMul", {"x", "w"}, "y")}), "f32[B,4,3]");
  EXPECT_EQ(type_of({node("Softmax", {"x"}, "y", {{"axis", std::int64_t{1}}})}), "f32[B,4,6]");
}

TEST(OneRow, StaysOneWhereRowsWouldMeet) {
  EXPECT_EQ(
      type_of({node("ReduceMean", {"x"}, "m", {{"axes", Sizes{0}}}), node("Sub", {"x", "m"}, "y")}),
      "f32[1,4,6]");
  EXPECT_EQ(type_of({node("ReduceMax", {"x"}, "m"), node("Div", {"x", "m"}, "y")}), "f32[1,4,6]");
  EXPECT_EQ(type_of({node("Softmax", {"x"}, "y", {{"axis", std::int64_t{0}}})}), "f32[1,4,6]");
  EXPECT_EQ(type_of({node("CumSum", {"x", "first"}, "y")}), "f32[1,4,6]");
  EXPECT_EQ(type_of({node("DynamicQuantizeLinear", {"x"}, "codes"),
                     node("Cast", {"codes"}, "y", {{"to", std::int64_t{1}}})}),
            "f32[1,4,6]");
}

TEST(OneRow, StaysOneWhereAReshapeWouldCutRowsAnotherWay) {
  EXPECT_EQ(
      type_of({node("Transpose", {"x"}, "turned", {{"perm", Sizes{1, 0, 2}}}),
               node("Reshape", {"turned", "open,6"}, "flat"), node("MatMul", {"flat", "w"}, "y")}),
      "f32[4,3]");
}

TEST(OneRow, IsDroppedWhereEveryAxisOfOneIs) {
  EXPECT_EQ(type_of({node("Squeeze", {"x"}, "s"),
                     node("Softmax", {"s"}, "p", {{"axis", std::int64_t{0}}}),
                     node("Reshape", {"p", "1,4,6"}, "y")}),
            "f32[1,4,6]");
  EXPECT_EQ(type_of({node("Squeeze", {"x"}, "y")}), "f32[4,6]");
}

}  // namespace
}  // namespace lathe::io::onnx
