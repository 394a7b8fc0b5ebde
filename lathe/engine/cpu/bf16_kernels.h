#pragma once

#include <vector>

#include "lathe/core/isa.h"
#include "lathe/engine/cpu/bf16_table.h"

namespace lathe::engine {

/// The fastest way to multiply bfloat16 numbers that this processor and `isa` allow: AMX and the
/// instruction of AVX512-BF16 count as AVX-512.
const Bf16Kernels& bf16_kernels(Isa isa);

/// Every way that this processor has, and AMX's code without its instructions.
std::vector<const Bf16Kernels*> every_bf16_kernels();

}  // namespace lathe::engine
