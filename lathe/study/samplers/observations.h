#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lathe/study/history.h"
#include "lathe/study/samplers/sampler.h"

namespace lathe::study {

/// The trials that a model learns from (complete, pruned and, if asked, running ones) as columns,
/// one per parameter. Each finished trial is read once, when it is new.
class Observations {
 public:
  struct Row {
    int number = 0;
    bool is_running = false;
    /// Complete trials first (-infinity), then pruned ones by how far they came (-step).
    double rank = 0;
    double loss = 0;                  ///< less is better; the last report of a pruned trial
    std::vector<double> losses = {};  ///< of several objectives
    /// What a finished trial reported on its way, by step, less is better; of one objective.
    std::vector<std::pair<int, double>> reports = {};
    double violation = 0;
  };
  struct Column {
    std::string name;
    DistributionPtr distribution;     ///< of the first trial that had it
    std::vector<double> values = {};  ///< by row, internal form; NaN where a trial has none
    std::size_t num_present = 0;      ///< among the finished
    bool is_fixed = true;             ///< every trial chose from the same distribution
  };

  /// Reads what is new. With `with_running`, the other running trials become rows until next time.
  void update(const History& history, int own_number, bool with_running);

  std::size_t num_finished() const { return num_finished_; }
  const std::vector<Row>& rows() const { return rows_; }
  /// All rows by trial number, which is what the age of an observation is.
  std::span<const std::size_t> by_number() const { return by_number_; }
  const std::vector<Column>& columns() const { return columns_; }
  std::optional<std::size_t> find(std::string_view name) const;
  /// Whether any trial said how well it keeps constraints. Where some do, the others are taken for
  /// the worst.
  bool has_constraints() const { return has_constraints_; }
  /// Changes whenever the rows do.
  std::size_t version() const { return version_; }

  /// Parameters that every finished trial has, chosen from the same distribution, in the order of
  /// the last trial of the first update.
  const std::vector<std::size_t>& shared_columns() const { return shared_; }
  /// Parameters in groups that always occur together: the finest such partition, by first
  /// occurrence.
  const std::vector<std::vector<std::size_t>>& groups() const { return groups_; }

 private:
  bool append(const TrialRecord& trial, const std::vector<Direction>& directions);
  std::size_t column_of(const Parameter& parameter);
  void refine_groups(std::span<const std::size_t> present);
  void order_rows();

  std::vector<Row> rows_;
  std::vector<Column> columns_;
  std::map<std::string, std::size_t, std::less<>> column_by_name_;
  std::vector<std::size_t> finished_by_number_;
  std::vector<std::size_t> by_number_;
  std::vector<std::size_t> shared_;
  std::vector<std::vector<std::size_t>> groups_;
  std::size_t num_read_ = 0;  // of history.finished()
  std::size_t num_finished_ = 0;
  int own_number_ = -1;
  bool has_constraints_ = false;
  std::size_t version_ = 0;
};

}  // namespace lathe::study
