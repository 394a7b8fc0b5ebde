// Walks the registry: every example of every op that the GPU has a kernel for agrees with the
// reference there, and the ops of the supported models all have one.

#include <gtest/gtest.h>

#include "lathe/engine/backend.h"
#include "lathe/engine/cuda/cuda_step.h"
#include "lathe/engine/testing/cuda_gpu.h"
#include "lathe/engine/testing/example_calls.h"

namespace lathe::engine {
namespace {

std::vector<std::string> ops_with_kernels() {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : Registry<CudaKernel>::instance().all())
    if (!OpRegistry::instance().at(name, "op").examples.empty()) names.push_back(name);
  return names;
}

class EveryCudaExample : public testing::TestWithParam<std::string> {};

TEST_P(EveryCudaExample, ComputesTheSameAsByReference) {
  LATHE_NEEDS_GPU();
  int num_run = 0;
  for (const std::string& text : OpRegistry::instance().at(GetParam(), "op").examples) {
    SCOPED_TRACE(text);
    for (const bool has_weights : {false, true}) {
      SCOPED_TRACE(has_weights ? "weights are states" : "all operands are inputs");
      const ExampleCall call = make_example_call(text, has_weights);
      if (!count_fallbacks(call.graph, find_backend("cuda")).empty()) continue;  // refused
      ++num_run;
      expect_same_on_gpu(call.graph, call.state, call.feed);
    }
  }
  EXPECT_GT(num_run, 0) << "none of the examples of " << GetParam() << " ran on its kernel";
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryCudaExample, testing::ValuesIn(ops_with_kernels()),
                         [](const auto& op) { return op.param; });

// A kernel whose op nobody knows would never run.
TEST(CudaKernels, AreOfOpsThatExist) {
  for (const auto& [name, kernel] : Registry<CudaKernel>::instance().all())
    EXPECT_NE(OpRegistry::instance().find(name), nullptr) << name;
}

}  // namespace
}  // namespace lathe::engine
