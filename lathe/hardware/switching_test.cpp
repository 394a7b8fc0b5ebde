#include "lathe/hardware/switching.h"

#include <gtest/gtest.h>

#include "lathe/hardware/lut_model.h"
#include "lathe/hardware/testing/lab_design.h"

namespace lathe::hardware {
namespace {

// Both blocks of the lab's design work in two cycles of an example.
TEST(Switching, IsWhatTheBlocksAreInTheCyclesInWhichTheyWork) {
  const Netlist lab = testing::lab_design();
  const Resources all = resources(lab);
  const double bits = static_cast<double>(all.lut + 48 * all.dsp);
  EXPECT_DOUBLE_EQ(switching_bits(lab, 2), bits);
  EXPECT_DOUBLE_EQ(switching_bits(lab, 8), bits / 4);
  EXPECT_DOUBLE_EQ(switching_bits(lab, 1), bits);
}

}  // namespace
}  // namespace lathe::hardware
