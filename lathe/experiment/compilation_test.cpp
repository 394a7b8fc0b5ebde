#include "lathe/experiment/compilation.h"

#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/io/onnx/onnx_model.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::experiment {
namespace {

// A table of 8 rows that is looked up by ids of a fixed or any length.
std::string write_lookup(const io::ScratchDirectory& scratch, const char* name,
                         io::onnx::OnnxSize length) {
  io::onnx::OnnxModel model{.opsets = {{"", 17}}};
  model.graph.initializers = {{"table", Tensor(DType::F32, {8, 4})}};
  model.graph.inputs = {
      {.name = "input_ids", .dtype = DType::I64, .shape = {{.name = "rows"}, length}}};
  model.graph.outputs = {{.name = "y", .has_shape = false}};
  model.graph.nodes = {{.op = "Gather", .inputs = {"table", "input_ids"}, .outputs = {"y"}}};
  return scratch.write(name, io::onnx::serialize_onnx(model)).string();
}

std::string refusal(const CompilationOptions& options) {
  return error_text([&] { load_for_compilation(options); });
}

TEST(LoadForCompilation, NamesALengthThatIsFixed) {
  const io::ScratchDirectory scratch;
  const std::string fixed = write_lookup(scratch, "fixed.onnx", {.number = 16});
  const std::string any = write_lookup(scratch, "any.onnx", {.name = "length"});
  EXPECT_EQ(refusal({.model = fixed, .length = 7}),
            "length 7: the inputs of " + fixed + " have a fixed length, which is 16");
  EXPECT_EQ(refusal({.model = fixed, .length = 16}), "no error");
  EXPECT_EQ(refusal({.model = fixed}), "no error");
  EXPECT_EQ(refusal({.model = any, .length = 7}), "no error");
  EXPECT_EQ(refusal({.model = "mlp:8,4", .length = 7}),
            "length 7: the inputs of mlp:8,4 have no length");
}

TEST(LoadForCompilation, RefusesNumbersThatCannotBe) {
  EXPECT_EQ(refusal({.model = "mlp:8,4", .rows = 0}), "rows 0: expected 1 or more");
  EXPECT_EQ(refusal({.model = "mlp:8,4", .length = -1}), "length -1: expected 0 or more");
}

}  // namespace
}  // namespace lathe::experiment
