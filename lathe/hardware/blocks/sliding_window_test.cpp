#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"

namespace lathe::hardware {
namespace {

using namespace testing;

TEST(SlidingWindow, GivesThePixelsUnderEachWindow) {
  Netlist netlist("windows");
  const StreamId x = netlist.add_input("x", {.element = {.width = 8}, .vectors = 6});
  netlist.add_single({.name = "y",
                      .block = "sliding_window",
                      .parameters = {{"height", 2},
                                     {"columns", 3},
                                     {"kernel_h", 2},
                                     {"kernel_w", 2},
                                     {"left", 1},
                                     {"pad", -1}},
                      .inputs = {x}});
  EXPECT_EQ(evaluate(netlist, {{1, 2, 3, 4, 5, 6}}).back(),
            (Values{-1, 1, -1, 4, 1, 2, 4, 5, 2, 3, 5, 6}));
  EXPECT_EQ(error_text([&] {
              netlist.add_single(
                  {.name = "z",
                   .block = "sliding_window",
                   .parameters = {{"height", 3}, {"columns", 3}, {"kernel_h", 2}, {"kernel_w", 2}},
                   .inputs = {x}});
            }),
            "z: an image of 3 x 3 pixels is not 6 vectors");
}

TEST(SlidingWindow, EqualsItsDefinitionForAnyShape) {
  LATHE_NEEDS(verilator);
  Random random(12);
  Netlist netlist("windows");
  for (int i = 0; i < 12; ++i) {
    const std::int64_t height = draw(random, 1, 7), columns = draw(random, 1, 7);
    const std::int64_t kernel_h = draw(random, 1, std::min<std::int64_t>(4, height)),
                       kernel_w = draw(random, 1, std::min<std::int64_t>(4, columns));
    const Element element{.width = static_cast<int>(draw(random, 2, 8))};
    // The first is large enough for block RAM.
    const StreamId x = netlist.add_input(
        fmt::format("x{}", i), {.element = i == 0 ? Element{.width = 32} : element,
                                .lanes = i == 0 ? 8 : static_cast<int>(draw(random, 1, 3)),
                                .size = i == 0 ? 16 : draw(random, 1, 5),
                                .vectors = height * columns});
    netlist.add_output(netlist.add_single({.name = fmt::format("y{}", i),
                                           .block = "sliding_window",
                                           .parameters = {{"height", height},
                                                          {"columns", columns},
                                                          {"kernel_h", kernel_h},
                                                          {"kernel_w", kernel_w},
                                                          {"stride_h", draw(random, 1, 3)},
                                                          {"stride_w", draw(random, 1, 3)},
                                                          {"top", draw(random, 0, kernel_h - 1)},
                                                          {"left", draw(random, 0, kernel_w - 1)},
                                                          {"bottom", draw(random, 0, kernel_h - 1)},
                                                          {"right", draw(random, 0, kernel_w - 1)},
                                                          {"pad", element.lowest()}},
                                           .inputs = {x}}));
  }
  expect_exact(netlist, random);
}

}  // namespace
}  // namespace lathe::hardware
