// libcublasLt as far as the first question goes: a library of CUDA 12.4.

#include <cstddef>

extern "C" std::size_t cublasLtGetVersion() {
  return 120402;
}
