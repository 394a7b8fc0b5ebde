#pragma once

namespace lathe::engine {

/// What plans do, each to be left out to compare with.
struct CpuPlanOptions {
  /// Nodes become one step, and steps one stage, where they can; else everything that a node makes
  /// goes through memory.
  bool fuses = true;
  bool narrows_values = true;  ///< narrow_values.h
};

}  // namespace lathe::engine
