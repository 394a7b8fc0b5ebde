#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lathe/report/study_charts/study_data.h"
#include "lathe/report/table.h"

namespace lathe::report {

/// What a page about a study shows, besides every chart that it has something for.
struct StudyPage {
  StudyData data;
  std::vector<std::pair<std::string, std::string>> figures = {};  ///< names and values
  std::optional<Table> best = {};                                 ///< trials, the best first
  Table settings;
  std::optional<Table> parameters = {};  ///< declared ones
};
std::string study_page(const StudyPage& page);

}  // namespace lathe::report
