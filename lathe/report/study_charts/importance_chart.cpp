// Which parameters make the difference between good trials and the rest.
#include <fmt/format.h>

#include "lathe/report/named_bars.h"
#include "lathe/report/study_charts/study_charts.h"

namespace lathe::report {
namespace {

constexpr std::size_t kMostBars = 40;

}  // namespace

std::string importance_chart(const StudyData& data) {
  std::vector<std::pair<std::string, double>> bars = data.importance;
  std::string title = fmt::format("Importance of the parameters of {}", data.name);
  if (bars.size() > kMostBars) {
    title = fmt::format("The {} most important of {} parameters of {}", kMostBars, bars.size(),
                        data.name);
    bars.resize(kMostBars);
  }
  return named_bars(
      title, fmt::format("importance for {}, in shares of 1", data.objectives[data.objective].name),
      bars);
}

}  // namespace lathe::report
