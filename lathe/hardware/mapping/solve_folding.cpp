#include "lathe/hardware/mapping/solve_folding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "lathe/core/error.h"
#include "lathe/hardware/lut_model.h"

namespace lathe::hardware {
namespace {

using Options = std::vector<FoldingOption>;

// A Zynq 7020.
constexpr Resources kDevice{.dsp = 220, .bram18 = 280, .lut = 53200};
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max() / 4;
constexpr std::int64_t kMostSteps = 2'000'000;  // of the search over several resources

using Vector = std::array<std::int64_t, 3>;
Vector to_vector(const Resources& r) {
  return {r.dsp, r.bram18, r.lut};
}

// Options that no other one beats in every resource, those of least area first.
Options undominated(const Options& options, std::int64_t cycles) {
  Options kept;
  for (const FoldingOption& option : options)
    if (option.cycles <= cycles) kept.push_back(option);
  std::stable_sort(kept.begin(), kept.end(), [](const FoldingOption& a, const FoldingOption& b) {
    return area(a.resources) < area(b.resources);
  });
  Options result;
  for (const FoldingOption& option : kept) {
    const Vector cost = to_vector(option.resources);
    const bool is_beaten = std::ranges::any_of(result, [&](const FoldingOption& other) {
      const Vector better = to_vector(other.resources);
      return better[0] <= cost[0] && better[1] <= cost[1] && better[2] <= cost[2];
    });
    if (!is_beaten) result.push_back(option);
  }
  return result;
}

// The choice of least area within the budget, by depth first with the least that the layers behind
// must take, of each resource and of area, as bounds.
class Search {
 public:
  Search(std::vector<Options> layers, const Vector& budget)
      : layers_(std::move(layers)), budget_(budget), least_(layers_.size() + 1) {
    for (std::size_t i = layers_.size(); i-- > 0;) {
      Vector least = {kNoLimit, kNoLimit, kNoLimit};
      for (const FoldingOption& option : layers_[i])
        for (std::size_t r = 0; r < 3; ++r)
          least[r] = std::min(least[r], to_vector(option.resources)[r]);
      for (std::size_t r = 0; r < 3; ++r) least_[i].cost[r] = least_[i + 1].cost[r] + least[r];
      least_[i].area = least_[i + 1].area + area(layers_[i].front().resources);
    }
  }
  bool can_fit() const { return fits({}, 0); }
  std::optional<std::vector<FoldingOption>> run() {
    if (can_fit()) visit(0, {}, 0);
    return best_;
  }

 private:
  struct Least {
    Vector cost = {};
    double area = 0;
  };
  bool fits(const Vector& spent, std::size_t layer) const {
    for (std::size_t r = 0; r < 3; ++r)
      if (spent[r] + least_[layer].cost[r] > budget_[r]) return false;
    return true;
  }
  void visit(std::size_t layer, const Vector& spent, double so_far) {
    if (layer == layers_.size()) {
      best_ = chosen_;
      best_area_ = so_far;
      return;
    }
    for (const FoldingOption& option : layers_[layer]) {
      if (++steps_ > kMostSteps && best_) return;
      const double now = so_far + area(option.resources);
      if (best_ && now + least_[layer + 1].area >= best_area_ - 1e-12) return;  // sorted by area
      Vector next = spent;
      for (std::size_t r = 0; r < 3; ++r) next[r] += to_vector(option.resources)[r];
      if (!fits(next, layer + 1)) continue;
      chosen_.push_back(option);
      visit(layer + 1, next, now);
      chosen_.pop_back();
      if (steps_ > 4 * kMostSteps) return;
    }
  }

  std::vector<Options> layers_;
  Vector budget_;
  std::vector<Least> least_;
  std::vector<FoldingOption> chosen_;
  std::optional<std::vector<FoldingOption>> best_;
  double best_area_ = 0;
  std::int64_t steps_ = 0;
};

Vector budget_of(const FoldingGoal& goal) {
  return {goal.dsp.value_or(kNoLimit), goal.bram18.value_or(kNoLimit), goal.lut.value_or(kNoLimit)};
}

std::optional<std::vector<FoldingOption>> within(const std::vector<Options>& layers,
                                                 std::int64_t cycles, const Vector& budget) {
  std::vector<Options> kept;
  for (const Options& options : layers) {
    kept.push_back(undominated(options, cycles));
    if (kept.back().empty()) return {};
  }
  return Search(std::move(kept), budget).run();
}

// Improves a choice within a number of cycles by what converters between layers take.
class Refinement {
 public:
  Refinement(const std::vector<Options>& layers, const std::vector<FoldingEdge>& edges,
             std::int64_t cycles, const FoldingGoal& goal)
      : layers_(layers), edges_(edges), cycles_(cycles), goal_(goal) {}

  std::vector<std::size_t> run(std::vector<std::size_t> choice) const {
    std::vector<std::size_t> best = least([](const Resources& one) { return area(one); });
    if (!goal_.excess(total(best))) return best;
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < layers_.size(); ++i)
        for (std::size_t o = 0; o < layers_[i].size(); ++o) {
          if (layers_[i][o].cycles > cycles_) continue;
          std::vector<std::size_t> other = choice;
          other[i] = o;
          const bool is_legal = !goal_.excess(total(other)) || goal_.excess(total(choice));
          if (!is_legal || area(total(other)) >= area(total(choice)) - 1e-12) continue;
          choice = std::move(other);
          changed = true;
        }
    }
    return choice;
  }

  // From the last layer to the first: the least that each option of a layer costs together with
  // all layers that hang from it. A layer with two producers hangs from the first.
  template <typename Cost>
  std::vector<std::size_t> least(const Cost& cost_of) const {
    struct Best {
      double cost = 0;
      std::vector<std::pair<std::size_t, std::size_t>> children = {};  // layer and its option
    };
    std::vector<std::vector<Best>> best(layers_.size());
    std::vector<const FoldingEdge*> parent(layers_.size());
    for (const FoldingEdge& edge : edges_)
      if (parent[edge.to] == nullptr && edge.from < edge.to) parent[edge.to] = &edge;
    for (std::size_t i = layers_.size(); i-- > 0;) {
      best[i].resize(layers_[i].size());
      for (std::size_t o = 0; o < layers_[i].size(); ++o) {
        best[i][o].cost = layers_[i][o].cycles > cycles_ ? 1e30 : cost_of(layers_[i][o].resources);
        for (std::size_t child = i + 1; child < layers_.size(); ++child) {
          if (parent[child] == nullptr || parent[child]->from != i) continue;
          double lowest = 1e30;
          std::size_t chosen = 0;
          for (std::size_t c = 0; c < layers_[child].size(); ++c) {
            const double cost = best[child][c].cost +
                                cost_of({.lut = std::lround(converter(*parent[child], o, c))});
            if (cost < lowest) {
              lowest = cost;
              chosen = c;
            }
          }
          best[i][o].cost += lowest;
          best[i][o].children.emplace_back(child, chosen);
        }
      }
    }
    std::vector<std::size_t> choice(layers_.size());
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (parent[i] == nullptr)
        for (std::size_t o = 0; o < layers_[i].size(); ++o)
          if (best[i][o].cost < best[i][choice[i]].cost) choice[i] = o;
      for (const auto& [child, option] : best[i][choice[i]].children) choice[child] = option;
    }
    return choice;
  }

 private:
  double converter(const FoldingEdge& edge, std::size_t from, std::size_t to) const {
    return converter_luts(edge.size, layers_[edge.from][from].lanes.out,
                          layers_[edge.to][to].lanes.in, edge.width);
  }
  Resources total(const std::vector<std::size_t>& choice) const {
    Resources sum;
    for (std::size_t i = 0; i < layers_.size(); ++i) sum += layers_[i][choice[i]].resources;
    for (const FoldingEdge& edge : edges_)
      sum.lut += std::lround(converter(edge, choice[edge.from], choice[edge.to]));
    return sum;
  }

  const std::vector<Options>& layers_;
  const std::vector<FoldingEdge>& edges_;
  std::int64_t cycles_;
  const FoldingGoal& goal_;
};

}  // namespace

double area(const Resources& resources) {
  const auto share = [](std::int64_t used, std::int64_t all) {
    return static_cast<double>(used) / static_cast<double>(all);
  };
  return share(resources.dsp, kDevice.dsp) + share(resources.bram18, kDevice.bram18) +
         share(resources.lut, kDevice.lut);
}

FoldingGoal Device::goal() const {
  return {.dsp = resources.dsp, .bram18 = resources.bram18, .lut = resources.lut};
}

const std::vector<Device>& known_devices() {
  static const std::vector<Device> devices = {
      {"Zynq 7020", kDevice},
      {"Kintex 7 325T", {.dsp = 840, .bram18 = 890, .lut = 203800}},
      {"Virtex 7 690T", {.dsp = 3600, .bram18 = 2940, .lut = 433200}},
  };
  return devices;
}

std::optional<Resources> FoldingGoal::excess(const Resources& used) const {
  const auto over = [](std::int64_t taken, const std::optional<std::int64_t>& limit) {
    return limit ? std::max<std::int64_t>(0, taken - *limit) : 0;
  };
  const Resources result{
      .dsp = over(used.dsp, dsp), .bram18 = over(used.bram18, bram18), .lut = over(used.lut, lut)};
  if (result == Resources{}) return {};
  return result;
}

std::optional<std::vector<std::size_t>> find_folding(const std::vector<Options>& layers,
                                                     const FoldingGoal& goal,
                                                     const std::vector<FoldingEdge>& edges) {
  if (layers.empty()) return std::vector<std::size_t>{};
  const Vector budget = budget_of(goal);
  std::set<std::int64_t> all;
  std::int64_t fewest = 0;  // cycles, with all the lanes there can be
  for (const Options& options : layers) {
    std::int64_t best = kNoLimit;
    for (const FoldingOption& option : options) {
      all.insert(option.cycles);
      best = std::min(best, option.cycles);
    }
    fewest = std::max(fewest, best);
  }
  std::optional<std::vector<FoldingOption>> found;
  if (goal.cycles) {
    if (*goal.cycles < fewest)
      fail("cycles {}: an example takes at least {}, whatever the lanes", *goal.cycles, fewest);
    found = within(layers, *goal.cycles, budget);
  } else {
    std::vector<std::int64_t> targets(all.lower_bound(fewest), all.end());
    // The more cycles, the more choices: the first that fits is found by halving.
    std::size_t low = 0, high = targets.size();
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (within(layers, targets[middle], budget))
        high = middle;
      else
        low = middle + 1;
    }
    if (low < targets.size()) found = within(layers, targets[low], budget);
  }
  if (!found) return {};
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < layers.size(); ++i)
    for (std::size_t o = 0; o < layers[i].size(); ++o)
      if (layers[i][o].lanes == (*found)[i].lanes) {
        result.push_back(o);
        break;
      }
  std::int64_t cycles = goal.cycles.value_or(0);
  for (std::size_t i = 0; i < layers.size() && !goal.cycles; ++i)
    cycles = std::max(cycles, layers[i][result[i]].cycles);
  return Refinement(layers, edges, cycles, goal).run(result);
}

std::vector<std::size_t> choose_folding(const std::vector<Options>& layers, const FoldingGoal& goal,
                                        const std::vector<FoldingEdge>& edges) {
  if (const auto found = find_folding(layers, goal, edges)) return *found;
  Vector least = {};
  for (const Options& options : layers) {
    Vector of_layer = {kNoLimit, kNoLimit, kNoLimit};
    for (const FoldingOption& option : options)
      for (std::size_t r = 0; r < 3; ++r)
        if (!goal.cycles || option.cycles <= *goal.cycles)
          of_layer[r] = std::min(of_layer[r], to_vector(option.resources)[r]);
    for (std::size_t r = 0; r < 3; ++r) least[r] += of_layer[r];
  }
  fail(
      "no lanes fit the budget: the layers take at least {} DSP, {} block RAMs of 18 kbit, {} "
      "LUTs",
      least[0], least[1], least[2]);
}

std::optional<std::vector<std::size_t>> choose_thriftiest(const std::vector<Options>& layers,
                                                          const FoldingGoal& goal,
                                                          const std::vector<FoldingEdge>& edges) {
  const std::int64_t cycles = goal.cycles.value_or(kNoLimit);
  for (const Options& options : layers)
    if (std::ranges::none_of(options, [&](const auto& option) { return option.cycles <= cycles; }))
      return {};
  const auto share = [](std::int64_t used, const std::optional<std::int64_t>& limit) {
    return limit
               ? static_cast<double>(used) / static_cast<double>(std::max<std::int64_t>(1, *limit))
               : 0.0;
  };
  return Refinement(layers, edges, cycles, goal).least([&](const Resources& one) {
    // Of choices that are alike in what is limited, the smaller.
    return share(one.dsp, goal.dsp) + share(one.bram18, goal.bram18) + share(one.lut, goal.lut) +
           (goal.has_budget() ? 1e-6 : 1) * area(one);
  });
}

namespace {

// From each layer to the one in front of it, through what has no lanes of its own.
std::vector<FoldingEdge> edges_of(const GraphMapper& mapper) {
  const std::vector<GraphMapper::FoldedLayer> layers = mapper.folded_layers();
  std::vector<FoldingEdge> edges;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Stream& type = mapper.type(mapper.operand(layers[i].node, 0));
    for (NodeId node = mapper.graph().input(layers[i].node, 0).node;;) {
      const auto found = std::ranges::find(layers, node, &GraphMapper::FoldedLayer::node);
      if (found != layers.end()) {
        edges.push_back({.from = static_cast<std::size_t>(found - layers.begin()),
                         .to = i,
                         .size = type.size,
                         .width = type.element.width});
        break;
      }
      const Value before = mapper.graph().input(node, 0);
      if (before.is_none() || mapper.find(before) == nullptr) break;
      node = before.node;
    }
  }
  return edges;
}

}  // namespace

FoldingProblem folding_problem(const GraphMapper& mapper, const FoldingGoal& goal,
                               const Parallelism& given) {
  FoldingProblem problem{.names = {}, .layers = {}, .edges = edges_of(mapper)};
  for (const GraphMapper::FoldedLayer& layer : mapper.folded_layers()) {
    problem.names.push_back(mapper.graph().name(layer.node));
    Options& options = problem.layers.emplace_back();
    const auto add = [&](Lanes lanes) {
      const std::optional<GraphMapper::LayerCost> cost = mapper.cost_of(layer.node, lanes);
      if (cost)
        options.push_back({.lanes = lanes, .cycles = cost->cycles, .resources = cost->resources});
    };
    if (const auto fixed = given.find(problem.names.back()); fixed != given.end()) {
      add(fixed->second);
      continue;
    }
    if (!goal.cycles && !goal.has_budget()) {
      add({});
      continue;
    }
    for (const int in : lane_choices(layer.in))
      for (const int out : lane_choices(layer.out)) add({.in = in, .out = out});
  }
  return problem;
}

Parallelism FoldingProblem::lanes(const std::vector<std::size_t>& choice) const {
  Parallelism result;
  for (std::size_t i = 0; i < layers.size(); ++i) result[names[i]] = layers[i][choice[i]].lanes;
  return result;
}

std::vector<std::int64_t> FoldingProblem::paces() const {
  std::set<std::int64_t> all;
  for (const Options& options : layers)
    for (const FoldingOption& option : options) all.insert(option.cycles);
  return {all.begin(), all.end()};
}

}  // namespace lathe::hardware
