#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lathe/study/samplers/sampler.h"

namespace lathe::study {

/// A stretch of the unit interval.
struct Cell {
  double low = 0;
  double high = 1;
};

/// The place of a value between 0 and 1: even on the scale that the distribution is searched on
/// (logarithmic where it says so). Values in steps and choices each own a cell; a value's place is
/// the middle of its cell.
double to_unit(const Distribution& distribution, double internal);
/// The value whose cell holds `unit`; places outside belong to the nearest.
double from_unit(const Distribution& distribution, double unit);
/// The cell of a value, or nothing when values are continuous.
std::optional<Cell> unit_cell(const Distribution& distribution, double internal);
/// Whether values have cells.
bool is_discrete(const Distribution& distribution);

/// Parameters that are chosen together, as the unit cube with one coordinate each.
class UnitSpace {
 public:
  struct Coordinate {
    std::string name;
    DistributionPtr distribution;
  };

  UnitSpace() = default;
  explicit UnitSpace(std::vector<Coordinate> coordinates) : coordinates_(std::move(coordinates)) {}

  int dimension() const { return static_cast<int>(coordinates_.size()); }
  const std::vector<Coordinate>& coordinates() const { return coordinates_; }
  /// Where the parameters of a trial lie; nothing when it lacks one or drew it from another
  /// distribution.
  std::optional<std::vector<double>> to_unit(const std::vector<Parameter>& parameters) const;
  Assignment from_unit(std::span<const double> point) const;
  bool operator==(const UnitSpace& other) const;

 private:
  std::vector<Coordinate> coordinates_;
};

}  // namespace lathe::study
