#include "lathe/hardware/netlist.h"

#include <gtest/gtest.h>

#include "lathe/core/registry.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/hardware/rtl_library.h"
#include "lathe/hardware/testing/lab_design.h"

namespace lathe::hardware {
namespace {

TEST(Netlist, RefusesWhatABlockCannotTakeByName) {
  Netlist netlist("design");
  const StreamId x = netlist.add_input("x", {.element = {.width = 8}, .lanes = 2, .size = 6});
  const auto error = [&](Instance instance) {
    return error_text([&] { netlist.add(std::move(instance)); });
  };
  EXPECT_EQ(error({.name = "x", .block = "relu", .inputs = {x}}),
            "netlist \"design\": two parts \"x\"");
  EXPECT_EQ(error({.name = "y", .block = "relu", .inputs = {}}),
            "y: block relu reads 1 streams, not 0");
  EXPECT_EQ(
      error({.name = "y", .block = "requantize", .parameters = {{"witdh", 3}}, .inputs = {x}}),
      "y: unknown parameter of block requantize \"witdh\"; known: width, signed, multiplier, "
      "shift, mode, symmetric\nhint: did you mean \"width\"?");
  EXPECT_EQ(error({.name = "y", .block = "requantize", .inputs = {x}}),
            "y: block requantize needs the parameter \"width\"");
  EXPECT_EQ(error({.name = "y",
                   .block = "matrix_vector",
                   .parameters = {{"outputs", 2}, {"lanes", 1}, {"width", 8}},
                   .tables = {{"weight", {1, 2, 3}}},
                   .inputs = {x}}),
            "y: weight has 3 elements, not 12");
  EXPECT_TRUE(netlist.instances().empty());
}

TEST(Netlist, RefusesStreamsWithoutExactlyOneReader) {
  Netlist netlist = testing::lab_design();
  EXPECT_NO_THROW(verify(netlist));
  netlist.add_output(netlist.outputs()[0]);
  EXPECT_EQ(error_text([&] { verify(netlist); }), "stream \"act1\" has 2 readers, not one");
}

TEST(Netlist, RefusesInputsOutsideTheirFormat) {
  const Netlist netlist = testing::lab_design();
  EXPECT_EQ(error_text([&] {
              evaluate(netlist, {{1, 2, 3, 128}});
            }),
            "input \"x\": 128 is no s8 (fixed:8,3)");
  EXPECT_EQ(error_text([&] {
              evaluate(netlist, {{1, 2, 3}});
            }),
            "input \"x\": 3 elements are no whole frames of 4");
}

TEST(EveryBlock, HasItsModuleAndItsParts) {
  for (const auto& [name, block] : Registry<Block>::instance().all()) {
    EXPECT_NE(rtl_source(name).find("module " + name + " "), std::string_view::npos) << name;
    for (const std::string& part : block.parts) EXPECT_FALSE(rtl_source(part).empty()) << part;
    EXPECT_FALSE(block.summary.empty()) << name;
  }
}

}  // namespace
}  // namespace lathe::hardware
