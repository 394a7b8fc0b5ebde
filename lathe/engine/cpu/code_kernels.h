#pragma once

#include <vector>

#include "lathe/core/isa.h"
#include "lathe/engine/cpu/code_table.h"

namespace lathe::engine {

/// The fastest way to multiply whole numbers of 8 bits that this processor and `isa` allow: AMX and
/// VNNI count as AVX-512.
const CodeKernels& code_kernels(Isa isa);

/// Every way that this processor has, and AMX's code without its instructions.
std::vector<const CodeKernels*> every_code_kernels();

}  // namespace lathe::engine
