#pragma once

#include <functional>
#include <vector>

#include "lathe/study/tpe_model.h"

namespace lathe::study {

/// The values of a distribution that are one change away: any other choice, the next number up or
/// down where numbers have steps.
std::vector<double> neighbor_values(const Distribution& distribution, double value);
/// The rows of the best trials in both of the model's halves, best first.
std::vector<std::size_t> best_rows(const TpeModel& model, std::size_t count);

/// Points of a whole space, with conditions, that TPE thinks well of.
///
/// Parameters that occur together are sampled together, each such group by itself; a point takes
/// one sample from every group whose condition holds. The best point is made of every group's best
/// sample, the next ones give up as little as possible in one group or another.
class TpeCandidates {
 public:
  /// Samples every group. Next to what is drawn from the density of good trials, the samples hold
  /// all points one change away from the `num_elites` best trials.
  TpeCandidates(const TpeModel& model, const Space& space, const Proposal& proposal,
                std::size_t num_elites);

  /// The best points that `is_wanted`, at most `count` of them, best first.
  std::vector<Assignment> best(std::size_t count,
                               const std::function<bool(const Assignment&)>& is_wanted) const;

 private:
  struct Group {
    std::vector<TpeAxis> axes = {};
    Points points = {};
    std::vector<std::size_t> ranking = {};  // of the points, best first
    std::vector<double> losses = {};        // by rank: how much worse than the best
  };
  // By rank, one of each group.
  using Ranks = std::vector<std::size_t>;

  void make_groups(const TpeModel& model);
  void add_neighbors(const TpeModel& model, Group& group, std::size_t num_elites) const;
  Assignment point(const Ranks& ranks, std::vector<bool>& is_active) const;

  const Space& space_;
  std::vector<Group> groups_;
  // By parameter of the space: its group and axis; the group is past the end where there is only
  // one value.
  std::vector<std::pair<std::size_t, std::size_t>> places_;
};

}  // namespace lathe::study
