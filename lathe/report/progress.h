#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lathe::report {

/// How progress is shown. The last three are found out when left empty; tests set them.
struct ProgressOptions {
  bool is_enabled = true;        ///< false: nothing is ever written
  std::string label = {};        ///< what is being done: "train"
  std::string unit = {};         ///< what is counted: "steps"; written behind the rate
  std::int64_t done_before = 0;  ///< when the clock began, so that the rate leaves it out
  std::optional<bool> is_terminal = {};
  std::optional<int> width = {};         ///< columns of the terminal
  std::function<double()> seconds = {};  ///< a clock that never goes back
};

/// Tells a person how far long work has come: on a terminal a bar with rate and time left, redrawn
/// in place at most ten times a second; elsewhere a plain line every ten seconds.
class Progress {
 public:
  /// Writes to `stream`, which must outlive this object; usually stderr.
  explicit Progress(std::FILE* stream, ProgressOptions options = {});
  /// Ends the bar's line if `finish` was not called, so that a message after it starts on its own.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` of `total` are done; a total of 0 means it is not known. The suffix is shown at the
  /// end, such as "loss 0.312". Cheap enough to call at every step.
  void update(std::int64_t done, std::int64_t total, std::string_view suffix = {});
  /// Shows the last state, however recent the one before it, and ends the line. Later calls do
  /// nothing.
  void finish();

 private:
  void draw();
  void write(const std::string& text);

  std::FILE* stream_;
  ProgressOptions options_;
  double start_ = 0;
  double last_drawn_ = 0;
  bool is_drawn_ = false;  ///< the last state is on the screen
  bool has_line_ = false;  ///< a bar stands on the current line
  bool is_finished_ = false;
  bool has_state_ = false;
  std::int64_t done_ = 0, total_ = 0;
  std::string suffix_;
};

/// "1:05" or "2:03:04".
std::string duration_text(double seconds);

}  // namespace lathe::report
