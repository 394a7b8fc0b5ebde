// The float32 kernels for plain. Everything is in this file's own namespace and nothing inline
// comes from outside it: see kernel_table.h.

#include <cstddef>
#include <cstdint>

#include "lathe/engine/cpu/ask.h"
#include "lathe/engine/cpu/kernel_table.h"

namespace lathe::engine::plain {

constexpr const char* kIsa = "plain";
// clang-format off
#include "lathe/engine/cpu/vector_plain.h"
#include "lathe/engine/cpu/every_kernel.inl.h"
// clang-format on

}  // namespace lathe::engine::plain
