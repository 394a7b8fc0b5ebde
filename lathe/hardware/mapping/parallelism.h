#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::hardware {

/// Elements that a layer takes and gives in a cycle.
struct Lanes {
  int in = 1, out = 1;
  bool operator==(const Lanes&) const = default;
};

/// The lanes of layers, by their names in the graph.
using Parallelism = std::map<std::string, Lanes, std::less<>>;

/// Reads "layers.0=4x8": four inputs and eight outputs a cycle. Adds to what is there and fails on
/// a layer that was given before.
void add_parallelism(Parallelism& parallelism, std::string_view text);
/// "layers.0=4x8".
std::string to_text(const Parallelism& parallelism, std::string_view separator = ",");

/// The numbers of lanes that are worth trying for so many elements: those with which a vector takes
/// fewer beats than with one less. Of more than 64 elements only divisors and powers of two.
std::vector<int> lane_choices(std::int64_t size);

}  // namespace lathe::hardware
