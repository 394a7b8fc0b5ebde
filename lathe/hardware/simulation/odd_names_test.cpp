// Layers of imported graphs have any names: what they become must be valid and told apart.
#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "lathe/hardware/passes/insert_forks.h"
#include "lathe/hardware/passes/size_fifos.h"
#include "lathe/hardware/simulation/icarus.h"
#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

const std::vector<std::string> kNames = {"/model/0/MatMul",
                                         "/model/0/MatMul_1",
                                         "model.0.MatMul",
                                         "MODEL/0/matmul",
                                         "//",
                                         "7",
                                         "two words",
                                         "two\nlines */ `define x \\",
                                         "\xc3\xa9t\xc3\xa9",
                                         "module",
                                         "clk",
                                         "matrix_vector",
                                         "verilator lint_on",
                                         "/model/0/MatMul_data"};

// A layer with weights of each name, and the first one's result beside them.
Netlist odd_design() {
  Random random(3);
  Netlist netlist("/odd/");
  const StreamId x = netlist.add_input("/x", {.element = {.width = 4}, .lanes = 1, .size = 2});
  StreamId y = x, first = 0;
  for (const std::string& name : kNames) {
    y = netlist.add_single(
        {.name = name,
         .block = "matrix_vector",
         .parameters = {{"outputs", 2}, {"lanes", 1}, {"shift", 2}, {"width", 4}},
         .tables = {{"weight", draw_values(random, {.width = 3}, 4)}},
         .inputs = {y}});
    if (name == kNames.front()) first = y;
  }
  netlist.add_output(netlist.add_single({.name = "/sum",
                                         .block = "element_wise",
                                         .parameters = {{"width", 5}},
                                         .inputs = {y, first}}));
  return size_fifos(insert_forks(netlist)).netlist;
}

TEST(OddNames, BecomeIdentifiersOfTheirOwn) {
  std::set<std::string> names;
  for (std::string name : emit(odd_design()).stream_names) {
    EXPECT_TRUE(std::isalpha(static_cast<unsigned char>(name[0]))) << name;
    for (char& c : name) {
      EXPECT_TRUE(c == '_' || std::isalnum(static_cast<unsigned char>(c))) << name;
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

TEST(OddNames, AreReadByVerilator) {
  LATHE_NEEDS(verilator);
  const Netlist netlist = odd_design();
  Random random(4);
  const Simulation simulation = Simulator(netlist).run(draw_inputs(random, netlist, 3));
  EXPECT_TRUE(simulation.is_exact()) << simulation.text(netlist);
}

TEST(OddNames, AreReadByIcarus) {
  LATHE_NEEDS(iverilog);
  const Netlist netlist = odd_design();
  Random random(4);
  EXPECT_TRUE(run_icarus(netlist, draw_inputs(random, netlist, 3), 0).is_exact());
}

}  // namespace
}  // namespace lathe::hardware
