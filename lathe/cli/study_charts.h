#pragma once

#include <string>
#include <vector>

#include "lathe/cli/study_arguments.h"
#include "lathe/report/study_charts/study_data.h"
#include "lathe/report/study_charts/study_page.h"

namespace lathe::cli {

/// The study as charts see it, for one of its objectives. `parameters` are those to draw, where a
/// chart has no room for all (none: the most important). Fails when there is no such parameter.
report::StudyData chart_data(const StoredStudy& study, std::size_t objective = 0,
                             const std::vector<std::string>& parameters = {});

/// The study as a page shows it: its result, its best trials, its settings.
report::StudyPage page_data(const StoredStudy& study, report::StudyData data);

}  // namespace lathe::cli
