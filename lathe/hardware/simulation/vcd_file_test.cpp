#include "lathe/hardware/simulation/vcd_file.h"

#include <gtest/gtest.h>

#include "lathe/core/error.h"

namespace lathe::hardware {
namespace {

TEST(VcdFile, ReadsSignalsAndTheirChanges) {
  const VcdFile file = parse_vcd(
      "$timescale 1ns $end\n$scope module top $end\n$var wire 1 # clk $end\n"
      "$var wire 4 $ x_data [3:0] $end\n$upscope $end\n$enddefinitions $end\n"
      "#0\n0#\nb0101 $\n#5\n1#\n#10\n0#\nb1 $\n");
  EXPECT_EQ(file.end, 10);
  ASSERT_NE(file.find("clk"), nullptr);
  using Changes = std::vector<std::pair<std::int64_t, std::string>>;
  EXPECT_EQ(file.find("clk")->changes, (Changes{{0, "0"}, {5, "1"}, {10, "0"}}));
  EXPECT_EQ(file.find("x_data")->width, 4);
  EXPECT_EQ(file.find("x_data")->changes, (Changes{{0, "0101"}, {10, "1"}}));
  EXPECT_EQ(file.find("y"), nullptr);
}

TEST(VcdFile, NamesTheLineOfAChangeOfNothing) {
  EXPECT_THROW(parse_vcd("#0\n1!\n"), UserError);
}

}  // namespace
}  // namespace lathe::hardware
