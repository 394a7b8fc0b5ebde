#include "lathe/core/child_process.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "lathe/core/error.h"

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

std::string read_all(ChildProcess& child) {
  std::string output;
  while (!child.is_finished()) output += child.read(std::chrono::milliseconds(100)).output;
  return output;
}

TEST(ChildProcess, AddsVariablesToTheEnvironmentAndReplacesOurs) {
  setenv("LATHE_TEST_OLD", "old", 1);
  const auto child = ChildProcess::start({"sh", "-c", "echo $LATHE_TEST_OLD $LATHE_TEST_NEW"}, {},
                                         {{"LATHE_TEST_OLD", "replaced"}, {"LATHE_TEST_NEW", "n"}});
  EXPECT_EQ(read_all(*child), "replaced n\n");
}

TEST(ChildProcess, GivesWhatIsWrittenBeforeTheProgramEnds) {
  // The program waits for a signal that it gets only after its line was read.
  const auto child = ChildProcess::start(
      {"sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done"});
  std::string output;
  while (output.empty()) output += child->read(std::chrono::milliseconds(100)).output;
  EXPECT_EQ(output, "ready\n");
  EXPECT_FALSE(child->is_finished());
  child->terminate();
  read_all(*child);
  EXPECT_EQ(child->exit_status(), 7);
}

// An orphan that was killed may stay in the list of processes until somebody collects it.
void wait_until_gone(const std::string& process) {
  const auto is_alive = [&] {
    FILE* file = fopen(("/proc/" + process + "/stat").c_str(), "r");
    if (file == nullptr) return false;
    char state = 0;
    const bool is_read = fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
    fclose(file);
    return is_read && state != 'Z' && state != 'X';
  };
  while (is_alive()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(ChildProcess, EndsWhatTheProgramStarted) {
  const auto child = ChildProcess::start({"sh", "-c", "sleep 1000 & echo $!; wait"});
  std::string output;
  while (output.find('\n') == std::string::npos)
    output += child->read(std::chrono::milliseconds(100)).output;
  child->terminate();
  wait_until_gone(output.substr(0, output.find('\n')));
}

TEST(RunProgram, EndsTheProgramAndWhatItStartedWhenAskedToStop) {
  const std::string path = testing::TempDir() + "run_program_child";
  std::remove(path.c_str());
  std::string process;
  const auto has_begun = [&] { return static_cast<bool>(std::ifstream(path) >> process); };
  EXPECT_THROW(
      (void)run_program({"sh", "-c", "sleep 1000 & echo $! >$0.new; mv $0.new $0; wait", path}, "",
                        has_begun),
      Interrupted);
  wait_until_gone(process);
}

TEST(ChildProcess, CountsASignalAsShellsDo) {
  const auto child = ChildProcess::start({"sh", "-c", "kill -KILL $$"});
  read_all(*child);
  EXPECT_EQ(child->exit_status(), 128 + SIGKILL);
}

TEST(ChildProcess, SaysWhyAProgramCannotBeRun) {
  EXPECT_THROW(ChildProcess::start({"/"}), UserError);
  EXPECT_EQ(ChildProcess::start({"lathe-no-such-program"}), nullptr);
}

}  // namespace
}  // namespace lathe
