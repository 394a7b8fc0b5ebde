#pragma once

#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "lathe/study/samplers/tpe_model.h"

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
  /// Next to what is drawn from the density of good trials, the samples of a group hold all points
  /// one change away from the `num_elites` best trials. All arguments must outlive this.
  TpeCandidates(const TpeModel& model, const Space& space, const Proposal& proposal,
                std::size_t num_elites);

  /// The best points that `is_wanted`, at most `count` of them, best first.
  std::vector<Assignment> best(std::size_t count,
                               const std::function<bool(const Assignment&)>& is_wanted);

 private:
  struct Group {
    std::vector<TpeAxis> axes = {};
    Points points = {};                     // empty until a point needs them
    std::vector<std::size_t> ranking = {};  // of the points, best first
    std::vector<double> losses = {};        // by rank: how much worse than the best
  };
  // A parameter of the space: its group and axis, and where its parent stands.
  struct Place {
    std::size_t group = kNone;  // none where there is only one value
    std::size_t axis = 0;
    std::size_t parent = kNone;
  };
  // A point: what each group's sample ranks, where that is not the first.
  struct Entry {
    double loss = 0;
    std::vector<std::pair<std::size_t, std::size_t>> ranks = {};  // group, rank; by group
    bool operator>(const Entry& other) const {
      return std::tie(loss, ranks) > std::tie(other.loss, other.ranks);
    }
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void make_groups();
  void fill(Group& group) const;
  void add_neighbors(Group& group) const;
  Assignment point(const Entry& entry, std::vector<bool>& is_active);

  const TpeModel& model_;
  const Space& space_;
  const Proposal& proposal_;
  std::size_t num_elites_;
  std::vector<Group> groups_;  // a parent's before its children's
  std::vector<Place> places_;  // by parameter of the space
};

}  // namespace lathe::study
