#pragma once

#include "lathe/engine/cuda/kernel_table.h"

namespace lathe::engine {

/// The kernels of liblathe_cuda.so and the GPU they run on.
struct CudaLibrary {
  const cuda::KernelTable* kernels = nullptr;
  cuda::DeviceFacts device;
};

/// Loads the library on first use and opens the first GPU. Fails in one line when the library, the
/// driver or a GPU is missing or too old; a later call tries again.
const CudaLibrary& cuda_library();

/// Throws a UserError for a line that a function of the library returned; nothing for null.
void check_cuda(const char* error);

}  // namespace lathe::engine
