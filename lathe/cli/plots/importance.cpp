// Which parameters make the difference between good trials and the rest.
#include <fmt/format.h>

#include "lathe/cli/study_plots.h"
#include "lathe/report/named_bars.h"

namespace lathe::cli {
namespace {

constexpr std::size_t kMostBars = 40;

}  // namespace

std::string draw_importance(const PlotSource& source) {
  std::vector<std::pair<std::string, double>> bars = source.importance;
  std::string title = fmt::format("Importance of the parameters of {}", source.name);
  if (bars.size() > kMostBars) {
    title = fmt::format("The {} most important of {} parameters of {}", kMostBars, bars.size(),
                        source.name);
    bars.resize(kMostBars);
  }
  return report::named_bars(
      title,
      fmt::format("importance for {}, in shares of 1", source.objective_name(source.objective)),
      bars);
}

}  // namespace lathe::cli
