// A driver or library of CUDA that is missing or too old is one line that names what was found and
// what is needed. Known without a GPU: libraries made for this test answer the first questions, and
// each question is asked by a process of its own, because CUDA asks once.

#include <dlfcn.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "lathe/core/error.h"
#include "lathe/engine/cuda/cuda_library.h"

namespace lathe::engine {
namespace {

[[noreturn]] void end_with(const std::string& line) {
  fmt::print(stderr, "{}\n", line);
  std::_Exit(0);  // what CUDA holds is not given back
}

// Libraries are found by their names, and one of a name that is loaded already is not looked for.
[[noreturn]] void open_gpu_with_driver(const char* driver) {
  if (dlopen(driver, RTLD_NOW | RTLD_GLOBAL) == nullptr) end_with(dlerror());
  setenv("LATHE_CUDA_LIBRARY", LATHE_CUDA_KERNELS, 1);
  try {
    cuda_library();
  } catch (const UserError& error) {
    end_with(error.message());
  }
  end_with("a GPU was opened");
}

[[noreturn]] void multiply_with_library(const char* library) {
  setenv("LATHE_CUBLASLT_LIBRARY", library, 1);
  void* const handle = dlopen(LATHE_CUDA_KERNELS, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) end_with(dlerror());
  const auto table = reinterpret_cast<cuda::TableFunction>(dlsym(handle, cuda::kTableSymbol));
  cuda::Gemm* gemm = nullptr;
  const char* const error = table()->device.make_gemm(nullptr, &gemm);
  end_with(error == nullptr ? "products were made" : error);
}

class CudaLibraries : public testing::Test {
 protected:
  // A process of its own is the program begun anew.
  CudaLibraries() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(CudaLibraries, SayThatTheDriverIsTooOld) {
  EXPECT_EXIT(open_gpu_with_driver(OLD_CUDA_DRIVER), testing::ExitedWithCode(0),
              "^device cuda: the NVIDIA driver is for CUDA 12.4, but 13.0 or newer is needed\n$");
}

TEST_F(CudaLibraries, SayThatCublasltIsTooOld) {
  EXPECT_EXIT(multiply_with_library(OLD_CUBLASLT), testing::ExitedWithCode(0),
              "^" OLD_CUBLASLT " is of version 12.4, but 13.0 or newer is needed\n$");
}

TEST_F(CudaLibraries, SayThatCublasltIsMissing) {
  EXPECT_EXIT(multiply_with_library("/nowhere/libcublasLt.so.13"), testing::ExitedWithCode(0),
              "^/nowhere/libcublasLt.so.13 is not found: install CUDA 13's libraries or name their "
              "folder in LD_LIBRARY_PATH\n$");
}

// One that answers no question at all.
TEST_F(CudaLibraries, SayWhatCublasltLacks) {
  EXPECT_EXIT(multiply_with_library(OLD_CUDA_DRIVER), testing::ExitedWithCode(0),
              "^" OLD_CUDA_DRIVER " has no function cublasLtGetVersion\n$");
}

}  // namespace
}  // namespace lathe::engine
