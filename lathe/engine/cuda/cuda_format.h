#pragma once

#include <optional>

#include "lathe/engine/cuda/cuda_step.h"
#include "lathe/numerics/scaled_format.h"

namespace lathe::engine {

/// A format as the kernels take it, for rows of so many columns.
cuda::QuantizeArgs cuda_format(const numerics::ScaledSpec& spec, std::int64_t columns);
/// The columns that a scale covers in rows of so many.
std::int64_t block_columns(const FormatFacts& facts, std::int64_t columns);

/// Packed rows of a format, without addresses; nullopt for formats of terms and MASE's own, which
/// have no kernel.
std::optional<cuda::PackedMatrix> cuda_packed_matrix(const NumberFormat& format, std::int64_t rows,
                                                     std::int64_t columns);

/// Packed numbers that a node reads: operands codes, local?, scale? and zero?, the first of them
/// operand `first`, and the attributes `format` and `columns`.
struct CudaPacked {
  cuda::PackedMatrix matrix;  ///< without addresses
  std::size_t first = 0;

  cuda::PackedMatrix of(const CudaCall& call) const;
};
std::optional<CudaPacked> cuda_packed(const Graph& graph, NodeId id, std::size_t first);

/// How a weight's codes enter the tensor cores; nullopt where they have to be decoded first: codes
/// of other widths, zero points beside 8 bits, scales that cover few or an odd number of inputs.
std::optional<cuda::PackedCode> packed_code(const cuda::PackedMatrix& weight);

}  // namespace lathe::engine
