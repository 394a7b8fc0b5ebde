#pragma once

#include <span>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/isa.h"
#include "lathe/engine/cpu/product_partition.h"
#include "lathe/engine/cpu/split_table.h"

namespace lathe::engine {

/// The way to multiply floats in parts that is faster than multiplying them whole on this processor
/// and with `isa`, or null where none is: AMX counts as AVX-512.
const SplitKernels* split_kernels(Isa isa);

/// Every way that this processor has, and AMX's code without its instructions.
std::vector<const SplitKernels*> every_split_kernels();

/// Whether the layers of a graph may be multiplied in parts: it does not run for one token at a
/// time (cached_attention), because tiles are nearly empty then.
bool may_be_split(const Graph& graph);

/// Whether a weight [n, k] is worth it: large enough to pay for splitting x.
bool has_split_size(std::int64_t n, std::int64_t k);
/// Whether it also has a depth k of whole steps.
bool has_split_extents(std::int64_t n, std::int64_t k);
/// Whether it also has no number that is too large.
bool suits_split(std::span<const float> weight, std::int64_t n, std::int64_t k);

/// Whether threads keep the parts of so many rows for all blocks of them: they stay near.
bool keeps_split_rows(std::int64_t rows, std::int64_t k);
/// How such products are cut: into small blocks where threads keep the rows that they have split.
PartitionLimits split_limits(bool keeps_rows);
/// The same of products with a weight that is read where it lies, whose rows are kept.
PartitionLimits lying_split_limits();

}  // namespace lathe::engine
