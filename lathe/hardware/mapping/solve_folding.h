#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/hardware/mapping/graph_mapper.h"
#include "lathe/hardware/resources.h"

namespace lathe::hardware {

/// What lanes are chosen for. Without a number of cycles: the fewest that the budget allows.
struct FoldingGoal {
  std::optional<std::int64_t> cycles = {};  ///< from one example to the next, at most
  std::optional<std::int64_t> dsp = {}, bram18 = {}, lut = {};

  bool has_budget() const { return dsp || bram18 || lut; }
  /// By how much a design breaks the budget; nothing where it does not.
  std::optional<Resources> excess(const Resources& used) const;
};

/// A Xilinx 7 device.
struct Device {
  std::string name;
  Resources resources;  ///< all it has

  FoldingGoal goal() const;
};
/// From the small one that boards for teaching carry to a large one.
const std::vector<Device>& known_devices();

/// A layer's lanes and what they cost.
struct FoldingOption {
  Lanes lanes = {};
  std::int64_t cycles = 0;
  Resources resources = {};
};

/// A stream from one layer to another: where their lanes differ there is a converter between them.
struct FoldingEdge {
  std::size_t from = 0, to = 0;  ///< layers
  std::int64_t size = 1;         ///< of its vectors
  int width = 8;                 ///< bits of an element
};

/// For each layer the index of the option chosen, so that the slowest needs no more cycles than the
/// goal, or as few as its budget allows, and of such choices the one of least `area`, converters
/// included. The cycles are exact for one limited resource, and for several as long as the search
/// stays small; the area is exact where layers form a tree and the budget leaves room for its
/// best, and elsewhere one that no change of one layer makes less. Fails where no choice
/// will do, saying what the least would be.
std::vector<std::size_t> choose_folding(const std::vector<std::vector<FoldingOption>>& layers,
                                        const FoldingGoal& goal,
                                        const std::vector<FoldingEdge>& edges = {});

/// The same, or nothing where the budget has no room for any choice.
std::optional<std::vector<std::size_t>> find_folding(
    const std::vector<std::vector<FoldingOption>>& layers, const FoldingGoal& goal,
    const std::vector<FoldingEdge>& edges = {});

/// The share of a Zynq 7020 that resources take, added up over its kinds: one number to compare
/// designs by.
double area(const Resources& resources);

/// The choice of least of what the budget limits, or of least `area` where it limits nothing, that
/// needs no more cycles than `goal.cycles`, whether the budget has room for it or not; nothing
/// where no choice is that fast. Exact where layers form a tree.
std::optional<std::vector<std::size_t>> choose_thriftiest(
    const std::vector<std::vector<FoldingOption>>& layers, const FoldingGoal& goal,
    const std::vector<FoldingEdge>& edges = {});

/// The layers of a network with all the lanes that they can have.
struct FoldingProblem {
  std::vector<std::string> names;
  std::vector<std::vector<FoldingOption>> layers;
  std::vector<FoldingEdge> edges;

  Parallelism lanes(const std::vector<std::size_t>& choice) const;
  /// Every number of cycles that a layer can take, ascending.
  std::vector<std::int64_t> paces() const;
};

/// Layers that are in `given` have the lanes given, and all have one lane where there is no goal.
FoldingProblem folding_problem(const GraphMapper& mapper, const FoldingGoal& goal,
                               const Parallelism& given);

}  // namespace lathe::hardware
