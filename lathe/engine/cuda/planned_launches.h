#pragma once

// For the tests of the GPU's plans: what a graph is planned as, which needs no GPU.

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/graph_text.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/cuda/cuda_plan.h"
#include "lathe/engine/lower.h"

namespace lathe::engine {

inline CudaPlan plan_of(std::string_view text) {
  return make_cuda_plan(lower(parse_graph(text), find_backend("cuda")));
}

/// The ops that a launch makes.
inline std::vector<std::string> ops_of(const CudaPlan& plan, const CudaLaunch& launch) {
  std::vector<std::string> result;
  for (const std::size_t step : launch.steps)
    result.push_back(plan.graph.op(plan.steps[step].node).name);
  return result;
}

/// The launches of a plan, each as the ops it makes.
inline std::vector<std::string> launches_of(const CudaPlan& plan) {
  std::vector<std::string> result;
  for (const CudaLaunch& launch : plan.launches)
    result.push_back(fmt::format("{}", fmt::join(ops_of(plan, launch), " ")));
  return result;
}

}  // namespace lathe::engine
