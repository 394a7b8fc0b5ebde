#include "lathe/hardware/resources.h"

#include <gtest/gtest.h>

#include "lathe/hardware/netlist.h"

namespace lathe::hardware {
namespace {

// What synth_xilinx of Yosys 0.23 made of such products and memories.
TEST(Resources, TakeADspForProductsOfNineBits) {
  EXPECT_EQ(dsp_of_product(8, 8), 1);
  EXPECT_EQ(dsp_of_product(5, 4), 1);
  EXPECT_EQ(dsp_of_product(4, 4), 0);
  EXPECT_EQ(dsp_of_product(8, 2, 8), 0);  // of which eight bits are kept
  EXPECT_EQ(dsp_of_product(25, 18), 1);
  EXPECT_EQ(dsp_of_product(26, 18), 2);
  EXPECT_EQ(dsp_of_product(19, 19), 2);
  EXPECT_EQ(dsp_of_product(43, 19), 6);
  EXPECT_EQ(dsp_of_scaling(16, 8), 0);
  EXPECT_EQ(dsp_of_scaling(16, 9), 1);
}

TEST(Resources, TakeADspForEachLaneOfASlope) {
  for (const char* block : {"leaky_relu", "random_leaky_relu"}) {
    Netlist netlist("slopes");
    const StreamId x = netlist.add_input("x", {.element = {.width = 6}, .lanes = 3, .size = 4});
    Instance instance{.name = "act", .block = block, .inputs = {x}};
    if (std::string(block) == "leaky_relu") instance.parameters = {{"slope", 3}, {"shift", 3}};
    netlist.add_output(netlist.add_single(instance));
    EXPECT_EQ(resources(netlist).dsp, 3) << block;
  }
}

TEST(Resources, FoldDeepMemoriesIntoWideBlocks) {
  const auto read_only = [](int width, int depth) {
    return bram18_of_memory(width, depth, MemoryUse::ReadOnly);
  };
  EXPECT_EQ(read_only(24, 16000), 22);
  EXPECT_EQ(read_only(5, 5000), 2);
  EXPECT_EQ(read_only(8, 10080), 5);
  EXPECT_EQ(read_only(144, 150), 4);
  EXPECT_EQ(read_only(36, 600), 2);
  EXPECT_EQ(read_only(40, 2000), 5);
  EXPECT_EQ(read_only(10, 1500), 1);
  EXPECT_EQ(read_only(20, 3000), 4);
  EXPECT_EQ(read_only(72, 1024), 4);
  EXPECT_EQ(read_only(64, 512), 2);
  EXPECT_EQ(read_only(100, 700), 6);
  EXPECT_EQ(read_only(9, 2049), 2);
  EXPECT_EQ(read_only(12, 9000), 6);
  EXPECT_EQ(read_only(16, 4096), 4);
  EXPECT_EQ(read_only(8, 20000), 9);
  EXPECT_EQ(read_only(48, 112), 2);
  EXPECT_EQ(read_only(30, 1000), 2);
}

TEST(Resources, KeepBytesTogetherWherePartsAreWritten) {
  const auto written = [](int width, int depth) {
    return bram18_of_memory(width, depth, MemoryUse::Written);
  };
  EXPECT_EQ(written(48, 600), 3);
  EXPECT_EQ(written(24, 1500), 3);
  EXPECT_EQ(written(8, 3000), 2);
  EXPECT_EQ(written(32, 400), 1);
  EXPECT_EQ(written(12, 2000), 2);
  EXPECT_EQ(written(10, 1500), 2);
  EXPECT_EQ(written(20, 600), 2);
}

}  // namespace
}  // namespace lathe::hardware
