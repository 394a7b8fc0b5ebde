#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lathe/report/table.h"

/// The labs' experiments on speed and memory. Each is a file: options in, a result out.
namespace lathe::experiment::bench {

/// Seconds of single executions, warm-up apart.
struct Timing {
  double median = 0, low = 0, high = 0;
  int samples = 0;
};
Timing timing_of(std::vector<double> seconds);

/// What the device can do at most, measured in the same run; 0: not known.
struct Limits {
  double bytes_per_second = 0;  ///< read plus written by a copy
  double flops_per_second = 0;  ///< of the engine's own large product
};

/// One thing that was timed, and what it moved and computed; 0 where that says nothing.
struct Measured {
  std::string name;
  Timing time;
  double bytes = 0, flops = 0;
  std::string note = {};
};

struct Result {
  std::string bench;   ///< "attention"
  std::string title;   ///< with its sizes
  std::string device;  ///< "NVIDIA H200"
  Limits limits = {};
  std::vector<Measured> rows = {};
  std::vector<std::string> notes = {};  ///< what the numbers say together, and what was left out
  std::string drawing = {};             ///< a figure as text; may be empty
  std::string drawing_svg = {};
};

/// A row for each thing: median and spread, rates, shares of the limits.
report::Table to_table(const Result& result);
/// The medians as bars.
std::string to_svg(const Result& result);
nlohmann::ordered_json to_json(const Result& result);

}  // namespace lathe::experiment::bench
