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

}  // namespace
}  // namespace lathe::hardware
