#include "lathe/core/child_process.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

TEST(RunProgram, PassesInputThroughAndCollectsOutput) {
  // Larger than a pipe's buffer, which is where a careless implementation would hang.
  const std::string large(1 << 20, 'x');
  const auto result = run_program({"cat"}, large);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 0);
  EXPECT_EQ(result->output, large);
  EXPECT_EQ(result->errors, "");
}

TEST(RunProgram, SurvivesAProgramThatIgnoresItsInput) {
  const auto result = run_program({"false"}, std::string(1 << 20, 'x'));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 1);
}

TEST(RunProgram, GivesArgumentsToTheProgramUntouched) {
  const auto result = run_program({"printf", "%s|", "a b", "$(id)", "'"}, "");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "a b|$(id)|'|");
}

TEST(RunProgram, SaysWhenThereIsNoSuchProgram) {
  EXPECT_FALSE(run_program({"lathe-no-such-program"}, ""));
}

TEST(RunProgram, KeepsStandardErrorApart) {
  const auto result = run_program({"sh", "-c", "echo out; echo bad >&2; exit 3"}, "");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 3);
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->errors, "bad\n");
}

}  // namespace
}  // namespace lathe
