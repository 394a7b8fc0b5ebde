#pragma once

#include <string>
#include <vector>

#include "lathe/report/study_charts/study_data.h"

namespace lathe::report {

/// Every trial in its order, whatever became of it, and the best so far; an objective above the
/// other.
std::string history_chart(const StudyData& data);
/// Objectives against each other, two by two, with the front.
std::string pareto_chart(const StudyData& data);
/// The shares of the parameters as bars.
std::string importance_chart(const StudyData& data);
/// Each complete trial a line through its parameters; one that lacks a parameter passes below its
/// axis.
std::string parallel_chart(const StudyData& data);
/// One small chart a parameter.
std::string slice_charts(const StudyData& data);
/// Two parameters and the result as colour, for each pair of those asked for.
std::string contour_chart(const StudyData& data);
/// What trials reported on the way; a single report is a point.
std::string intermediate_chart(const StudyData& data);

/// A kind of chart that a study may have.
struct StudyChart {
  std::string name;
  std::string title;
  std::string (*draw)(const StudyData& data);  ///< SVG
  /// Why the study has nothing for it; empty when it has.
  std::string (*missing)(const StudyData& data);
};
/// All kinds in the order of a report.
const std::vector<StudyChart>& study_charts();

/// Points get smaller and fainter where they are many.
double point_size(std::size_t count);
double point_opacity(std::size_t count);
/// " (3 far worse at the edge)" for the end of an axis' label, or nothing.
std::string edge_text(std::size_t num_beyond);
/// " (3 far worse left out)" for the end of an axis' label, or nothing.
std::string beyond_text(std::size_t num_beyond);
/// What a chart leaves out, for a line below its title: parameters, trials, or nothing.
std::string left_out_text(const StudyData& data, std::size_t num_parameters,
                          std::size_t num_beyond);

}  // namespace lathe::report
