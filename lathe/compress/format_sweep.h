#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lathe::compress {

/// Formats that differ in one number, to be tried one after another.
struct FormatSweep {
  std::string variable;  ///< what differs, such as "width"
  struct Point {
    double value = 0;
    std::string format;
  };
  std::vector<Point> points;
};

/// Reads `fixed:{w},{w/2} w=4,6,8` or `fixed:{f+5},{f} f=1..12`: a format in which braces hold the
/// variable, or the variable and a whole number joined by + - * or /, and the variable's values.
/// Three names stand for the sweeps of the fixed-point labs: `widths`, `integer-bits` and
/// `fraction-bits`. Every format is checked.
FormatSweep parse_format_sweep(std::string_view text);

}  // namespace lathe::compress
