#pragma once

#include <cstdint>
#include <vector>

#include "lathe/core/tensor.h"
#include "lathe/core/type.h"

namespace lathe::ops {

/// Fails unless the type is what offsets are: a vector of integers, at least one.
void require_offsets(const Type& type);
/// The sizes of the sequences of a packed batch are S when offsets have S+1 elements.
Size num_sequences(const Type& offsets);
/// Where sequences start and end; fails unless they rise from 0 to `num_tokens`.
std::vector<std::int64_t> read_offsets(const Tensor& offsets, std::int64_t num_tokens);

}  // namespace lathe::ops
