#pragma once

// For the tests of the backend `cuda`: whether there is a GPU, and graphs compared on it.

#include <gtest/gtest.h>

#include "lathe/engine/cuda/cuda_executor.h"
#include "lathe/engine/cuda/cuda_library.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {

/// Why no test can run on a GPU here; empty where one can. A driver that is there but does not
/// work, or a library that does not fit it, is a failure and not a reason.
inline std::string no_gpu() {
  try {
    cuda_library();
  } catch (const UserError& error) {
    for (const char* reason : {"no NVIDIA driver", "no NVIDIA GPU"})
      if (error.message().find(reason) != std::string::npos) return "no NVIDIA GPU";
    if (error.message().find("cannot be loaded") != std::string::npos)
      return "no NVIDIA GPU: " + error.message();
    ADD_FAILURE() << error.message();
    return error.message();
  }
  return {};
}

/// Skips a test where there is no GPU.
#define LATHE_NEEDS_GPU() \
  if (const std::string reason = ::lathe::engine::no_gpu(); !reason.empty()) GTEST_SKIP() << reason

/// Near the reference; and the same bits when run at once, when captured, and when replayed.
inline void expect_same_on_gpu(const Graph& graph, const State& state, const Feed& feed,
                               double tolerance = 1e-4) {
  const Feed expected = make_executor(graph, state, {.device = "reference"})->run(feed);
  const std::unique_ptr<Executor> gpu = make_executor(graph, state, {.device = "cuda"});
  const Feed actual = gpu->run(feed);
  expect_near(actual, expected, tolerance);
  for (const char* run : {"captured", "replayed"}) {
    SCOPED_TRACE(run);
    expect_identical(gpu->run(feed), actual);
  }
}

}  // namespace lathe::engine
