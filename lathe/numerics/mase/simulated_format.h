#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "lathe/core/number_format.h"
#include "lathe/numerics/kernels/kernel_table.h"

namespace lathe::numerics {

/// One block's values on their way through a quantizer of MASE.
struct SimulatedBlock {
  const float* x = nullptr;
  float* y = nullptr;  ///< may be x
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;  ///< from row to row
  /// The block's largest magnitude; for a block of zeros the smallest that is not 0 among the
  /// blocks beside it, or 1.
  float largest = 1;
};

/// Times the mean magnitude: what MASE's ternary quantizers turn to 0.
inline constexpr float kMaseTernaryThreshold = 0.75f;

/// A twin of one of MASE's quantizers: what it does to a block of values.
///
/// MASE simulates, and passes some values through that are on no grid, so there are no codes of
/// `element_bits` bits: `encode` stores the resulting floats.
struct SimulatedSpec {
  /// text, family, element_bits, blocks (0 columns: the row), range and scale_bits.
  FormatFacts facts;
  bool needs_largest = false;
  /// What the numbers are made of. Of a Table's kind, or made of the mean magnitude of a row: one
  /// number for what is positive and 0 for the rest, or three (1 or the mean above the limit).
  enum class Kind { Table, Sign, Positive, Ternary, ScaledTernary };
  Kind kind = Kind::Table;
  MaseTable table = {};
  /// Defines the format: one block, one value after the other.
  std::function<void(const SimulatedBlock&)> quantize;
  /// The same for a whole matrix by a path's kernels; where it is empty the definition is used.
  std::function<void(const Kernels&, const BlockArgs&)> quantize_fast;
};

/// Sets the table of a quantizer that treats every value alone, or blocks of a width and height,
/// and the kernels for it.
void use_run(SimulatedSpec& spec, const MaseTable& table);
void use_blocks(SimulatedSpec& spec, const MaseTable& table);

std::shared_ptr<const NumberFormat> make_simulated_format(SimulatedSpec spec);
/// What a format was made of; nullptr for one of another kind. It lives as long as the format.
const SimulatedSpec* find_simulated_spec(const NumberFormat& format);

}  // namespace lathe::numerics
