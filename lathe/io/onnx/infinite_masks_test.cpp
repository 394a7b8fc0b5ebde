// Infinities in the arrays of a file: masks of scores have them, weights must not.

#include <gtest/gtest.h>

#include <limits>

#include "lathe/core/role.h"
#include "lathe/io/model.h"
#include "lathe/io/onnx/onnx_model.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::io::onnx {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// x[n,2] and an array [2,2] that an op joins.
OnnxModel joined_by(const std::string& op, const std::vector<float>& values) {
  OnnxModel model{.opsets = {{"", 17}}};
  model.graph.inputs = {{.name = "x", .shape = {{.name = "rows"}, {.number = 2}, {.number = 2}}}};
  model.graph.initializers = {{"array", Tensor::from<float>({2, 2}, std::span(values))}};
  model.graph.nodes = {{.op = op, .inputs = {"x", "array"}, .outputs = {"scores"}},
                       {.op = "Softmax", .inputs = {"scores"}, .outputs = {"y"}}};
  model.graph.outputs = {{.name = "y", .has_shape = false}};
  return model;
}

std::string refusal_of(const OnnxModel& model) {
  const ScratchDirectory scratch;
  const auto path = scratch.write("m.onnx", serialize_onnx(model));
  return refusal(path.string(), [&] { load_model(path.string()); });
}

TEST(InfiniteMasks, AreBuffersOfAnOnnxModelAndOfItsCheckpoint) {
  const ScratchDirectory scratch;
  const auto path =
      scratch.write("m.onnx", serialize_onnx(joined_by("Add", {0, -kInfinite, 0, 0})));
  const Model model = load_model(path.string());
  EXPECT_EQ(state_role(model.graph, model.graph.at("array")), StateRole::Buffer);
  EXPECT_EQ(model.state.at("array").at(1), -kInfinite);
  write_checkpoint(scratch / "checkpoint", model);
  EXPECT_EQ(load_model((scratch / "checkpoint").string()).state.at("array").at(1), -kInfinite);
}

TEST(InfiniteMasks, AreNoWeights) {
  EXPECT_EQ(refusal_of(joined_by("MatMul", {0, 1, kInfinite, 0})),
            "tensor \"array\" holds inf at index 1: expected finite numbers");
}

TEST(InfiniteMasks, HoldNumbers) {
  EXPECT_EQ(refusal_of(joined_by("Add", {0, -kInfinite, kNaN, 0})),
            "tensor \"array\" holds nan at index 2: expected finite numbers");
}

}  // namespace
}  // namespace lathe::io::onnx
