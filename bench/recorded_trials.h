// Trials of a search that was run once, to ask samplers about them again: read from a study's
// storage, or from a small table that anybody can have.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "lathe/core/error.h"
#include "lathe/search/candidate_space.h"
#include "lathe/study/space_point.h"
#include "lathe/study/study.h"

namespace lathe::bench {

inline constexpr std::array kRungs{1, 3, 9};

struct RecordedTrial {
  std::string study;
  int number = 0;
  study::Assignment point;
  std::array<double, kRungs.size()> reports = {};
  std::size_t num_reports = 0;  ///< the first so many are there; it was given up behind
};

inline std::vector<RecordedTrial> read_study(const std::string& path) {
  const auto storage = study::open_storage("sqlite:///" + path);
  std::vector<RecordedTrial> result;
  for (const study::StudyRecord& record : storage->studies()) {
    std::vector<study::TrialRecord> trials;
    storage->refresh(record.id, trials);
    for (const study::TrialRecord& trial : trials) {
      if (trial.state != study::TrialState::Complete && trial.state != study::TrialState::Pruned)
        continue;
      RecordedTrial each{.study = record.name, .number = trial.number, .point = trial.parameters};
      for (const int rung : kRungs) {
        const auto found = trial.intermediate_values.find(rung);
        if (found == trial.intermediate_values.end()) break;
        each.reports[each.num_reports++] = found->second;
      }
      if (each.num_reports > 0) result.push_back(std::move(each));
    }
  }
  return result;
}

// A line of the table: study, trial, its reports, and which choice it made of each of the space's
// parameters, a digit each, - for those it does not have.
inline void write_table(const std::string& path, const std::vector<RecordedTrial>& trials,
                        const study::Space& space) {
  std::ofstream file(path);
  file << fmt::format("study,trial,{},choices\n", fmt::join(kRungs, ","));
  for (const RecordedTrial& trial : trials) {
    file << fmt::format("{},{}", trial.study, trial.number);
    for (std::size_t rung = 0; rung < kRungs.size(); ++rung)
      file << (rung < trial.num_reports ? fmt::format(",{:.4f}", trial.reports[rung]) : ",");
    std::string choices;
    for (const study::SpaceParameter& each : space) {
      const study::Parameter* found = study::find_parameter(trial.point, each.name);
      choices += found == nullptr ? "-" : fmt::format("{}", static_cast<int>(found->value));
    }
    file << "," << choices << "\n";
  }
  if (!file) fail("{}: cannot be written", path);
}

inline std::vector<RecordedTrial> read_table(const std::string& path, const study::Space& space) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || !line.starts_with("study,trial,"))
    fail("{}: is no table of trials", path);
  std::vector<RecordedTrial> result;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    RecordedTrial& trial = result.emplace_back();
    std::string text;
    std::getline(fields, trial.study, ',');
    std::getline(fields, text, ',');
    trial.number = std::atoi(text.c_str());
    for (std::size_t rung = 0; rung < kRungs.size(); ++rung) {
      std::getline(fields, text, ',');
      if (!text.empty()) trial.reports[trial.num_reports++] = std::atof(text.c_str());
    }
    std::getline(fields, text);
    if (text.size() != space.size())
      fail("{}: line {}: has {} choices, the space has {}", path, result.size() + 1, text.size(),
           space.size());
    for (std::size_t i = 0; i < space.size(); ++i)
      if (text[i] != '-')
        trial.point.push_back(
            {space[i].name, space[i].distribution, static_cast<double>(text[i] - '0')});
  }
  return result;
}

// The least-squares line of y over x.
struct Line {
  double slope = 0, offset = 0;
  explicit Line(const std::vector<std::pair<double, double>>& points) {
    double x = 0, y = 0, xx = 0, xy = 0;
    const auto count = static_cast<double>(points.size());
    for (const auto& [a, b] : points) {
      x += a / count;
      y += b / count;
    }
    for (const auto& [a, b] : points) {
      xx += (a - x) * (a - x);
      xy += (a - x) * (b - y);
    }
    slope = xx > 0 ? xy / xx : 0;
    offset = y - slope * x;
  }
};

// Gives trials that were given up the reports they would have had, on the line through those that
// went on.
inline void complete_reports(std::vector<RecordedTrial>& trials) {
  for (std::size_t rung = 1; rung < kRungs.size(); ++rung) {
    std::vector<std::pair<double, double>> points;
    for (const RecordedTrial& each : trials)
      if (each.num_reports > rung) points.emplace_back(each.reports[rung - 1], each.reports[rung]);
    const Line line(points);
    for (RecordedTrial& each : trials)
      if (each.num_reports <= rung)
        each.reports[rung] =
            std::max(each.reports[rung - 1], line.offset + line.slope * each.reports[rung - 1]);
  }
}

}  // namespace lathe::bench
