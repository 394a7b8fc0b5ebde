#include "lathe/cli/trial_process.h"

#include "lathe/core/error.h"

namespace lathe::cli {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;  // of a program that writes no new lines

bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t\r") == std::string::npos;
}

// The lines that are complete with what came now; the rest stays in `partial` until the end.
std::vector<std::string> take_lines(std::string& partial, std::string_view text, bool is_end) {
  std::vector<std::string> lines;
  const auto end_line = [&] {
    if (!is_blank(partial)) lines.push_back(partial);
    partial.clear();
  };
  for (const char c : text) {
    if (c == '\n')
      end_line();
    else if (partial.size() < kLongestLine)
      partial += c;
  }
  if (is_end) end_line();
  return lines;
}

}  // namespace

TrialProcess::TrialProcess(const std::vector<std::string>& command,
                           const std::vector<std::pair<std::string, std::string>>& environment)
    : child_(ChildProcess::start(command, {}, environment)) {
  if (!child_) fail("cannot run {}: No such file or directory", command[0]);
}

std::vector<std::string> TrialProcess::read_lines(std::chrono::milliseconds timeout) {
  const ChildProcess::Written written = child_->read(timeout);
  const std::vector<std::string> errors =
      take_lines(partial_errors_, written.errors, is_finished());
  if (!errors.empty()) last_error_ = errors.back();
  return take_lines(partial_output_, written.output, is_finished());
}

}  // namespace lathe::cli
