#include "lathe/engine/cuda/cuda_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/error.h"

namespace lathe::engine {
namespace {

constexpr const char* kFile = "liblathe_cuda.so";

// Beside the library or program that this code is in, where both are built and installed; then
// wherever the system looks. A path in LATHE_CUDA_LIBRARY is the only one tried.
std::vector<std::string> places() {
  if (const char* given = std::getenv("LATHE_CUDA_LIBRARY")) return {given};
  std::vector<std::string> result;
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&cuda_library), &here) != 0 &&
      here.dli_fname != nullptr) {
    const std::filesystem::path folder = std::filesystem::path(here.dli_fname).parent_path();
    result.push_back((folder / kFile).string());
    result.push_back((folder / ".." / "lib" / kFile).string());
  }
  result.emplace_back(kFile);
  return result;
}

const cuda::KernelTable* load_kernels() {
  void* handle = nullptr;
  std::string reason;
  for (const std::string& place : places()) {
    handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) break;
    reason = dlerror();
  }
  if (handle == nullptr)
    throw UserError(fmt::format("device cuda: {} cannot be loaded: {}", kFile, reason),
                    "it is built where nvcc is found");
  const auto table = reinterpret_cast<cuda::TableFunction>(dlsym(handle, cuda::kTableSymbol));
  if (table == nullptr) fail("device cuda: {} has no kernels of ours", kFile);
  if (std::string_view(table()->version) != LATHE_TABLE_VERSION)
    fail("device cuda: {} is of version {}, but {} is needed: build both together", kFile,
         table()->version, LATHE_TABLE_VERSION);
  return table();
}

}  // namespace

const CudaLibrary& cuda_library() {
  static std::mutex mutex;
  static std::optional<CudaLibrary> library;
  const std::scoped_lock lock(mutex);
  if (!library) {
    CudaLibrary opened;
    opened.kernels = load_kernels();
    check_cuda(opened.kernels->device.open(0, &opened.device));
    library = opened;
  }
  return *library;
}

void check_cuda(const char* error) {
  if (error != nullptr) fail("device cuda: {}", error);
}

}  // namespace lathe::engine
