#include "lathe/report/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "lathe/report/markup.h"
#include "lathe/report/plot_axis.h"

namespace lathe::report {
namespace {

constexpr double kTerminalInterval = 0.1;
constexpr double kPlainInterval = 10;
constexpr int kWidestBar = 30;
constexpr int kNarrowestBar = 5;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Asked for at every redraw, because a window can be resized.
int terminal_width(std::FILE* stream) {
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string bar(double share, int width) {
  const int full = static_cast<int>(std::floor(share * width));
  std::string text = "[";
  for (int i = 0; i < width; ++i) text += i < full ? '=' : i == full ? '>' : ' ';
  return text + "]";
}

}  // namespace

std::string duration_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

Progress::Progress(std::FILE* stream, ProgressOptions options)
    : stream_(stream), options_(std::move(options)) {
  if (!options_.seconds) options_.seconds = steady_seconds;
  if (!options_.is_terminal) options_.is_terminal = isatty(fileno(stream)) == 1;
  start_ = options_.seconds();
  // A bar appears at once; a plain line only if the work turns out to be long.
  last_drawn_ = *options_.is_terminal ? -std::numeric_limits<double>::infinity() : start_;
}

Progress::~Progress() {
  if (has_line_) std::fputc('\n', stream_);
}

void Progress::update(std::int64_t done, std::int64_t total, std::string_view suffix) {
  if (!options_.is_enabled || is_finished_) return;
  done_ = done;
  total_ = total;
  suffix_ = suffix;
  has_state_ = true;
  is_drawn_ = false;
  const double interval = *options_.is_terminal ? kTerminalInterval : kPlainInterval;
  if (options_.seconds() - last_drawn_ >= interval) draw();
}

void Progress::finish() {
  if (!options_.is_enabled || is_finished_) return;
  is_finished_ = true;
  if (has_state_ && !is_drawn_) draw();
  if (has_line_) std::fputc('\n', stream_);
  has_line_ = false;
  std::fflush(stream_);
}

// A bar that cannot be shown is no reason to end the work.
void Progress::write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream_);
}

void Progress::draw() {
  const double now = options_.seconds();
  last_drawn_ = now;
  is_drawn_ = true;
  const double elapsed = now - start_;
  const auto since = static_cast<double>(done_ - options_.done_before);
  const double rate = elapsed > 0 ? since / elapsed : 0;
  const bool has_total = total_ > 0;
  const double share =
      has_total ? std::clamp(static_cast<double>(done_) / static_cast<double>(total_), 0.0, 1.0)
                : 0;

  const std::string label = options_.label.empty() ? "" : printable_line(options_.label) + " ";
  std::string facts = has_total ? fmt::format("{}/{}", done_, total_) : fmt::format("{}", done_);
  if (rate > 0)
    facts += fmt::format("  {}{}/s", short_number(rate, 3),
                         options_.unit.empty() ? "" : " " + printable_line(options_.unit));
  const bool is_done = has_total && done_ >= total_;
  if (is_done || is_finished_ || !has_total || rate <= 0)
    facts += fmt::format("  {}", duration_text(elapsed));
  else
    facts += fmt::format("  {} left", duration_text(static_cast<double>(total_ - done_) / rate));
  if (!suffix_.empty()) facts += "  " + printable_line(suffix_);

  if (!*options_.is_terminal) {
    write(fmt::format("{}{}\n", label, facts));
    std::fflush(stream_);
    return;
  }
  // One column less than there are: a full last column makes some terminals wrap.
  const int width = std::max(10, options_.width.value_or(terminal_width(stream_)) - 1);
  std::string line = label;
  if (has_total) {
    line += fmt::format("{:3.0f}% ", std::floor(share * 100));
    const int room = width - static_cast<int>(num_characters(line) + num_characters(facts)) - 3;
    if (room >= kNarrowestBar) line += bar(share, std::min(room, kWidestBar)) + " ";
  }
  line = shorten(line + facts, static_cast<std::size_t>(width));
  // Back to the first column, then clear whatever a longer line left behind.
  write(fmt::format("\r{}\x1b[K", line));
  std::fflush(stream_);
  has_line_ = true;
}

}  // namespace lathe::report
