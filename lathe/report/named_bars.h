#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lathe::report {

/// Lying bars, one under the other as they are given, with their names on the left and their values
/// behind them: for names too long to stand below upright bars. The picture grows with the number
/// of bars. Values are not negative; one that is not finite is written without a bar.
std::string named_bars(const std::string& title, const std::string& label,
                       const std::vector<std::pair<std::string, double>>& bars, int width = 720);

}  // namespace lathe::report
