#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lathe/search/candidate_space.h"

namespace lathe::search {

/// Points that take every layer's formats from one family, or leave the layer float where the space
/// has that.
struct FamilyPoints {
  std::string family;
  std::vector<std::vector<std::pair<std::string, study::Choice>>> points = {};
};

/// `count` points for each family of a space of formats by layer: first one for each of its formats
/// in all layers alike, then others at random, a function of the seed. Float is a family of its own
/// with one point.
std::vector<FamilyPoints> family_points(const CandidateSpace& space, int count, std::uint64_t seed);

}  // namespace lathe::search
