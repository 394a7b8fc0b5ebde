#include "lathe/hardware/design_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "lathe/hardware/testing/lab_design.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::hardware {
namespace {

Design lab() {
  return {.netlist = testing::lab_design(),
          .inputs = {{.name = "x", .node = "x/quantized", .dims = {4}, .scale = {0.125}}},
          .outputs = {{.name = "logits", .node = "act1", .dims = {8}, .scale = {0.125}}},
          .parallelism = {{"fc1", {.in = 4, .out = 4}}}};
}

TEST(DesignFile, ReadsBackADesignThatEmitsTheSame) {
  const io::ScratchDirectory folder;
  const Design design = lab();
  write_design(design, folder.path() / "d");
  const Design read = read_design(folder.path() / "d");
  EXPECT_EQ(emit(read.netlist).files, emit(design.netlist).files);
  EXPECT_EQ(read.parallelism, design.parallelism);
  EXPECT_EQ(read.inputs.at(0).node, "x/quantized");
  EXPECT_EQ(read.outputs.at(0).scale, std::vector<double>{0.125});
}

TEST(DesignFile, TakesTheFilesAsTheyAreNow) {
  const io::ScratchDirectory folder;
  write_design(lab(), folder.path() / "d");
  std::ofstream(folder.path() / "d/rtl/relu.sv", std::ios::app) << "// mine\n";
  const Emission emission = read_emission(read_design(folder.path() / "d"), folder.path() / "d");
  EXPECT_TRUE(emission.files.at("rtl/relu.sv").ends_with("// mine\n"));
}

TEST(DesignFile, SaysThatAnotherDirectoryIsNoDesign) {
  const io::ScratchDirectory folder;
  EXPECT_THROW(read_design(folder.path()), UserError);
}

}  // namespace
}  // namespace lathe::hardware
