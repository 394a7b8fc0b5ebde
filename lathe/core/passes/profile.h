#pragma once

#include <cstdint>
#include <string>

#include "lathe/core/graph.h"

namespace lathe {

/// What one execution of a node costs, as polynomials in the graph's symbols.
struct Profile {
  static constexpr const char* kAnnotation = "profile";
  Size flops;
  Size bytes;                   ///< every operand read once, every result written once
  std::int64_t parameters = 0;  ///< elements of the states it reads
};
std::string to_text(const Profile& profile);

/// Annotates every node; returns the sums. A state that several nodes read counts once in the sum.
Profile profile(Graph& graph);

/// How many numbers a model has learned. Of packed ones those count that their codes stand for, not
/// the bytes; scales and zero points belong to the format.
std::int64_t num_parameters(const Graph& graph);

}  // namespace lathe
