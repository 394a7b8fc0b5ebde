#pragma once

#include <string>

#include "lathe/cli/study_arguments.h"
#include "lathe/cli/study_plots.h"

namespace lathe::cli {

/// A page about a study: its best trials, every plot that it has something for, its settings.
std::string study_page(const StoredStudy& study, const PlotSource& source);

}  // namespace lathe::cli
