// Every point of the space once. Our own order is computed from keyed permutations of the points'
// numbers, so a grid of billions costs nothing before its points are asked for; the presets keep
// the list of all points that Optuna keeps and draw from it as it does.
#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "lathe/core/registry.h"
#include "lathe/study/json_text.h"
#include "lathe/study/math/numpy_random.h"
#include "lathe/study/math/python_set.h"
#include "lathe/study/option_reader.h"
#include "lathe/study/samplers/grid_order.h"

namespace lathe::study {

namespace {

// Optuna's list of all points and its sets of visited ones are in memory.
constexpr std::uint64_t kMaxListed = 10000000;

std::optional<std::uint64_t> grid_id(const TrialRecord& trial) {
  const auto found = trial.system_attributes.find("grid_id");
  if (found == trial.system_attributes.end()) return {};
  std::uint64_t id = 0;
  const char* end = found->second.data() + found->second.size();
  const auto [stop, error] = std::from_chars(found->second.data(), end, id);
  if (error != std::errc{} || stop != end) return {};
  return id;
}

[[noreturn]] void fail_unknown(std::string_view name) {
  fail("parameter \"{}\" is not in the declared space", name);
}

class GridSampler final : public Sampler {
 public:
  GridSampler(GridPoints points, std::uint64_t seed)
      : points_(std::move(points)), order_(points_, seed) {}

  // The trial's number is the position in the order. Trials that were enqueued take a number but no
  // point, so in the end the points left over are looked for.
  Assignment propose(const History& history, const Proposal& proposal) override {
    update(history);
    const std::uint64_t start = static_cast<std::uint64_t>(proposal.number) % points_.size();
    // A point that is turned down is left to no one: the next is tried.
    std::uint64_t skipped = static_cast<std::uint64_t>(proposal.attempt);
    std::uint64_t id = order_.number(points_, start);
    for (std::uint64_t i = 0; i < points_.size(); ++i) {
      const std::uint64_t candidate = order_.number(points_, (start + i) % points_.size());
      if (is_taken(candidate)) continue;
      id = candidate;
      if (skipped-- == 0) break;
    }
    if (proposal.system_attributes != nullptr)
      (*proposal.system_attributes)["grid_id"] = std::to_string(id);
    return points_.point(id);
  }

  double suggest(const History& /*history*/, const Proposal& /*proposal*/,
                 const Assignment& /*so_far*/, std::string_view name,
                 const Distribution& /*distribution*/) override {
    fail_unknown(name);
  }

  bool is_exhausted(const History& history) override {
    update(history);
    std::uint64_t count = finished_.size();
    for (const std::uint64_t id : running_) count += !finished_.contains(id);
    return count >= points_.size();
  }

 private:
  void update(const History& history) {
    for (; num_read_ < history.finished().size(); ++num_read_) {
      const int number = history.finished()[num_read_];
      const auto id = grid_id(history.trials()[static_cast<std::size_t>(number)]);
      if (id && *id < points_.size()) finished_.insert(*id);
    }
    running_.clear();
    for (const int number : history.unfinished()) {
      const auto id = grid_id(history.trials()[static_cast<std::size_t>(number)]);
      if (id && *id < points_.size()) running_.insert(*id);
    }
  }
  bool is_taken(std::uint64_t id) const { return finished_.contains(id) || running_.contains(id); }

  GridPoints points_;
  GridOrder order_;
  std::unordered_set<std::uint64_t> finished_;
  std::unordered_set<std::uint64_t> running_;
  std::size_t num_read_ = 0;
};

// Optuna 3.1's: points are numbered by sorted names, conditions are unknown to it, and the next is
// drawn from those that no trial has.
class OptunaGridSampler final : public Sampler {
 public:
  OptunaGridSampler(const Space& space, int num_steps, std::uint64_t seed)
      : points_(sorted(space), num_steps), random_(seed) {
    if (points_.size() > kMaxListed)
      fail("{} points are too many for Optuna's order, at most {}", points_.size(), kMaxListed);
    nlohmann::json object = nlohmann::json::object();
    const Space names = sorted(space);
    for (std::size_t i = 0; i < names.size(); ++i) {
      nlohmann::json& list = object[names[i].name] = nlohmann::json::array();
      for (const double value : points_.values(i))
        list.push_back(parse_json(to_json(to_external(*names[i].distribution, value))));
    }
    search_space_ = to_json_text(object);
    search_space_json_ = std::move(object);
  }

  Assignment propose(const History& history, const Proposal& proposal) override {
    PythonSet open = unvisited(history, proposal.number);
    const std::vector<std::uint64_t> list =
        (open.size() > 0 ? open : PythonSet::range(points_.size())).list();
    const std::uint64_t id = list[random_.below(list.size())];
    if (proposal.system_attributes != nullptr) {
      (*proposal.system_attributes)["search_space"] = search_space_;
      (*proposal.system_attributes)["grid_id"] = std::to_string(id);
    }
    return points_.point(id);
  }

  double suggest(const History& /*history*/, const Proposal& /*proposal*/,
                 const Assignment& /*so_far*/, std::string_view name,
                 const Distribution& /*distribution*/) override {
    fail_unknown(name);
  }

  bool is_exhausted(const History& history) override {
    PythonSet visited;
    for (const TrialRecord& trial : history.trials())
      if (const auto id = own_id(trial)) visited.add(*id);
    return visited.size() >= points_.size();
  }

 private:
  static Space sorted(Space space) {
    for (SpaceParameter& parameter : space) {
      parameter.parent.clear();
      parameter.parent_values.clear();
    }
    std::sort(space.begin(), space.end(),
              [](const SpaceParameter& a, const SpaceParameter& b) { return a.name < b.name; });
    return space;
  }

  // The trial's point, if it is of this grid.
  std::optional<std::uint64_t> own_id(const TrialRecord& trial) const {
    const auto id = grid_id(trial);
    if (!id || *id >= points_.size()) return {};
    const auto space = trial.system_attributes.find("search_space");
    if (space == trial.system_attributes.end()) return {};
    // The text is nearly always our own; another program may write numbers in another way.
    if (space->second != search_space_ && parse_json(space->second) != search_space_json_)
      return {};
    return id;
  }

  PythonSet unvisited(const History& history, int own_number) const {
    PythonSet visited;
    PythonSet running;
    for (const TrialRecord& trial : history.trials()) {
      const auto id = own_id(trial);
      if (!id || trial.number == own_number) continue;
      if (is_finished(trial.state))
        visited.add(*id);
      else if (trial.state == TrialState::Running)
        running.add(*id);
    }
    const PythonSet all = PythonSet::range(points_.size());
    PythonSet open = all.minus(visited).minus(running);
    // Before the end, what others are still at is done once more rather than left out.
    return open.size() > 0 ? open : all.minus(visited);
  }

  GridPoints points_;
  NumpyRandom random_;
  std::string search_space_;
  nlohmann::json search_space_json_;
};

const Register grid_sampler{SamplerKind{
    .name = "grid",
    .summary = "every point of the declared space once, in random order",
    .options = {{"preset", "lathe, or an order like optuna-3, optuna-4 or optuna-5 [lathe]"},
                {"points", "values to try of a range without steps, at least 1"}},
    .make = [](const Options& options, std::uint64_t seed,
               const Space* space) -> std::unique_ptr<Sampler> {
      const OptionReader reader(options);
      const std::string preset =
          reader.word("preset", "lathe", {"lathe", "optuna-3", "optuna-4", "optuna-5"});
      const int num_steps = static_cast<int>(reader.whole("points", 0, 1, 1000000000));
      if (space == nullptr) fail("the study declares no space");
      if (preset != "lathe") return std::make_unique<OptunaGridSampler>(*space, num_steps, seed);
      return std::make_unique<GridSampler>(GridPoints(*space, num_steps), seed);
    },
}};

}  // namespace

}  // namespace lathe::study
