#pragma once

#include <cstdlib>

namespace lathe {

/// How many changed files a test reads that looks for crashes: `usual` suits every day, and
/// LATHE_MUTANTS says another number.
inline int num_mutants(int usual) {
  const char* const text = std::getenv("LATHE_MUTANTS");
  return text != nullptr ? std::atoi(text) : usual;
}

}  // namespace lathe
