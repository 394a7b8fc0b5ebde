#pragma once

#include <cstdint>
#include <vector>

#include "lathe/study/samplers/sampler.h"

namespace lathe::study {

/// The points of a countable space by number, computed one at a time: conditions considered, and no
/// point counted twice.
class GridPoints {
 public:
  /// A number without a step gets `num_steps` values at even distances (of logarithms, where it is
  /// logarithmic); fails when that is 0, and on more points than can be numbered.
  GridPoints(const Space& space, int num_steps);

  std::uint64_t size() const { return size_; }
  /// Point `index`; the last parameter changes fastest.
  Assignment point(std::uint64_t index) const;
  /// The values of a parameter by its place in the space, in internal form.
  std::vector<double> values(std::size_t parameter) const;

  /// Points that agree in what others depend on: of each parameter that depends on none, a range of
  /// its numbers with all that depends on it.
  struct Part {
    struct Range {
      std::uint64_t first = 0, count = 0;
    };
    std::vector<Range> ranges;
    std::uint64_t size = 1;
  };
  /// The parts of the grid, every point in one of them, the smallest first; one with all points
  /// where there would be more than `most`.
  std::vector<Part> parts(std::size_t most) const;
  /// The number of a part's point.
  std::uint64_t number(const Part& part, std::uint64_t index) const;

 private:
  struct Node {
    SpaceParameter parameter;
    std::uint64_t num_values = 0;
    std::vector<std::size_t> children = {};
    std::uint64_t size = 0;  // of this parameter with all that depends on it
  };

  double value(const Node& node, std::uint64_t index) const;
  std::uint64_t size_below(const Node& node, double value) const;
  std::vector<std::size_t> present_children(const Node& node, double value) const;
  void place(const std::vector<std::size_t>& nodes, std::uint64_t index,
             std::vector<double>& values) const;

  std::vector<Node> nodes_;
  std::vector<std::size_t> roots_;
  std::uint64_t size_ = 1;
};

}  // namespace lathe::study
