#include "lathe/report/waveform.h"

#include <gtest/gtest.h>

namespace lathe::report {
namespace {

TEST(Waveform, DrawsALevelForEachChangeOfAWireAndTextsOfABus) {
  const std::string svg =
      waveform("waves",
               {{.name = "clk", .changes = {{0, "0"}, {5, "1"}, {10, "0"}}},
                {.name = "x", .is_bus = true, .changes = {{0, "4"}, {10, "-7"}}}},
               20, 10);
  EXPECT_NE(svg.find(">clk<"), std::string::npos);
  EXPECT_NE(svg.find(">4<"), std::string::npos);
  EXPECT_NE(svg.find(">-7<"), std::string::npos);
  EXPECT_NE(svg.find(">20<"), std::string::npos);
}

TEST(Waveform, LeavesOutWhatComesBehindTheEnd) {
  const std::string svg =
      waveform("waves", {{.name = "x", .is_bus = true, .changes = {{0, "4"}, {30, "9"}}}}, 20, 10);
  EXPECT_EQ(svg.find(">9<"), std::string::npos);
}

}  // namespace
}  // namespace lathe::report
