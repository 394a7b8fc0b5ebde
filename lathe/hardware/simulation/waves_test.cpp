#include <gtest/gtest.h>

#include <fstream>

#include "lathe/hardware/simulation/simulate.h"
#include "lathe/hardware/simulation/temporary_folder.h"
#include "lathe/hardware/testing/lab_design.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

TEST(Waves, ShowEveryStreamByItsName) {
  LATHE_NEEDS(verilator);
  const TemporaryFolder folder;
  const Netlist netlist = testing::lab_design();
  const Simulator simulator(netlist, Waves::Vcd);
  const std::filesystem::path file = folder.path() / "lab.vcd";
  const Simulation simulation = simulator.run({{8, -16, 3, 127}}, {.waves = file});
  EXPECT_TRUE(simulation.is_exact()) << simulation.text(netlist);
  std::ifstream stream(file);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  for (const char* name : {" x_data ", " fc1_data ", " act1_valid "})
    EXPECT_NE(text.find(name), std::string::npos) << name;
  // Two cycles of reset and seven of work, ten time units each.
  EXPECT_NE(text.find("\n#85\n"), std::string::npos);
  EXPECT_EQ(text.find("\n#90\n"), std::string::npos);
}

TEST(Waves, LieWhereARelativePathSays) {
  LATHE_NEEDS(verilator);
  const TemporaryFolder folder;
  const Simulator simulator(testing::lab_design(), Waves::Fst);
  const std::filesystem::path file = folder.path() / "lab.fst";
  simulator.run({{8, -16, 3, 127}}, {.waves = std::filesystem::relative(file)});
  EXPECT_TRUE(std::filesystem::exists(file));
}

// The compressed form begins with its header's block, number 0, of 329 bytes.
TEST(Waves, AreCompressedWhereTheNameSaysSo) {
  LATHE_NEEDS(verilator);
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "lab.fst";
  const Simulator simulator(testing::lab_design(), Waves::Fst);
  EXPECT_TRUE(simulator.run({{8, -16, 3, 127}}, {.waves = file}).is_exact());
  std::ifstream stream(file, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  ASSERT_GT(text.size(), 330U);
  EXPECT_EQ(text.substr(0, 9), std::string("\0\0\0\0\0\0\0\1\x49", 9));
}

}  // namespace
}  // namespace lathe::hardware
