#include "lathe/experiment/hardware/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "lathe/experiment/hardware/emit.h"
#include "lathe/experiment/quantize.h"
#include "lathe/hardware/rtl_library.h"
#include "lathe/hardware/testing/needs_tool.h"
#include "lathe/io/safetensors.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::experiment {
namespace {

// The lab's network in fixed:8,3.
void write_lab_model(const std::filesystem::path& path, const std::string& name = "mlp:4,8") {
  const io::Model model = io::load_model(name, {.seed = 1});
  const Quantized quantized = quantize(model,
                                       {.weights = "fixed:8,3",
                                        .activations = "fixed:8,3",
                                        .bias = "fixed:8,3",
                                        .outputs = "fixed:8,3"},
                                       {}, {});
  io::write_checkpoint(path, quantized.model);
}

EmitOptions lab_options(const io::ScratchDirectory& folder) {
  return {.model = (folder / "q").string(), .out = folder / "d", .parallelism = {"layers.0=4x4"}};
}

TEST(Simulate, ShowsTheLabsNetworkBesideTheQuantizedModel) {
  LATHE_NEEDS(verilator);
  const io::ScratchDirectory folder;
  write_lab_model(folder / "q");
  emit(lab_options(folder));
  const SimulateResult one = simulate({.design = folder / "d"}, {});
  EXPECT_TRUE(one.is_exact()) << one.problems;
  EXPECT_LE(one.simulation.cycles, 12);
  EXPECT_EQ(one.simulation.cycles, one.predicted_cycles);

  const SimulateResult many =
      simulate({.design = folder / "d", .examples = 50, .stalls = 0.25, .seed = 2}, {});
  EXPECT_TRUE(many.is_exact()) << many.problems;
  ASSERT_EQ(many.outputs.size(), 1U);
  EXPECT_EQ(many.outputs[0].got.size(), 50U * 8);
  EXPECT_EQ(many.outputs[0].got, many.outputs[0].expected);
  EXPECT_EQ(many.outputs[0].quantized_differences, 0);
  EXPECT_GT(many.outputs[0].largest_deviation, 0);
  EXPECT_GT(std::ranges::count_if(many.outputs[0].got, [](auto y) { return y > 0; }), 50);
}

// Two outputs a cycle, four that share a slope: the lanes of the layer change nothing.
TEST(Simulate, DrawsTheSlopesOfTheIntegerModel) {
  LATHE_NEEDS(verilator);
  const io::ScratchDirectory folder;
  write_lab_model(folder / "q", "mlp:4,8,activation=rrelu");
  EmitOptions options = lab_options(folder);
  options.parallelism = {"layers.0=4x2"};
  emit(options);
  const SimulateResult result =
      simulate({.design = folder / "d", .examples = 30, .stalls = 0.25}, {});
  EXPECT_TRUE(result.is_exact()) << result.problems;
  EXPECT_GT(std::ranges::count_if(result.outputs[0].got, [](auto y) { return y < 0; }), 30);
  EXPECT_GT(result.outputs[0].quantized_differences, 0);  // there the slope is the mean
}

TEST(Simulate, FeedsTheTensorsOfAFile) {
  LATHE_NEEDS(verilator);
  const io::ScratchDirectory folder;
  write_lab_model(folder / "q");
  emit(lab_options(folder));
  io::write_safetensors(folder / "x.safetensors",
                        {{"x", Tensor::from<float>({4}, {1.0f, -2.0f, 0.5f, 3.25f})}});
  const SimulateResult result =
      simulate({.design = folder / "d", .inputs = folder / "x.safetensors"}, {});
  EXPECT_EQ(result.examples, 1);
  EXPECT_TRUE(result.is_exact()) << result.problems;
}

TEST(Simulate, RunsTheFilesAsTheyAre) {
  LATHE_NEEDS(verilator);
  const io::ScratchDirectory folder;
  write_lab_model(folder / "q");
  emit(lab_options(folder));
  std::string text(hardware::rtl_source("relu"));
  const std::size_t zero = text.find("m_data[");
  ASSERT_NE(zero, std::string::npos);
  text.insert(text.find("<=", zero) + 2, " ~");  // somebody's mistake
  std::ofstream(folder / "d" / "rtl" / "relu.sv") << text;
  const SimulateResult result = simulate({.design = folder / "d", .examples = 5}, {});
  EXPECT_FALSE(result.is_exact());
  EXPECT_GT(result.num_wrong(), 0);
}

TEST(Emit, WritesNothingWhereSomethingHasNoHardware) {
  const io::ScratchDirectory folder;
  EXPECT_THROW(emit({.model = "mlp:4,8", .out = folder / "d"}), UserError);
  EXPECT_FALSE(std::filesystem::exists(folder / "d"));
}

TEST(Emit, KeepsToItsGoals) {
  const io::ScratchDirectory folder;
  write_lab_model(folder / "q");
  EmitOptions options{.model = (folder / "q").string(), .out = folder / "d", .cycles = 8};
  EXPECT_LE(emit(options).design.frame_interval, 8);
  options = {.model = (folder / "q").string(), .out = folder / "e", .dsp = 8};
  EXPECT_LE(emit(options).design.resources.dsp, 8);
}

}  // namespace
}  // namespace lathe::experiment
