#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe::report {

/// One line of a waveform: what a signal shows from each time on. A bus shows its texts, another
/// signal is low where the text is "0" and high elsewhere.
struct WaveSignal {
  std::string name;
  bool is_bus = false;
  std::vector<std::pair<std::int64_t, std::string>> changes = {};
};

/// Signals over time as a logic analyser shows them, up to `end`, with a line for each `period`.
std::string waveform(std::string_view title, const std::vector<WaveSignal>& signals,
                     std::int64_t end, std::int64_t period);

}  // namespace lathe::report
