#pragma once

#include <string>
#include <vector>

namespace lathe::engine {

/// The nodes of the user's graph that a lowered node computes.
struct Origin {
  static constexpr const char* kAnnotation = "origin";
  std::vector<std::string> nodes;
};
std::string to_text(const Origin& origin);

}  // namespace lathe::engine
