#pragma once

#include "lathe/engine/cuda/arguments/elementwise.h"
#include "lathe/engine/cuda/arguments/format.h"

// Chains of steps that go row by row, as one launch.
namespace lathe::engine::cuda {

/// A step of a row program, on registers that each hold one row of n floats.
struct RowInstruction {
  enum class Kind : std::int32_t {
    Load,               ///< to = memory[row]
    LoadOfSequence,     ///< to = memory[token `index` of sequence row]
    LoadForToken,       ///< to = memory[s] where the row is token `index` of sequence s, else zeros
    Embed,              ///< to = table[ids[row]], + a where that is a register
    Store,              ///< memory[row] = a
    StoreHalf,          ///< the same as bfloat16
    Round,              ///< to = a rounded to bfloat16
    AddVector,          ///< to = a + memory, the same for every row
    Map,                ///< to = map(a)
    MapGradient,        ///< to = a * map'(b)
    Pair,               ///< to = pair(a, b)
    Gate,               ///< to = a where b lies in low to high, else 0
    Dropout,            ///< to = a, dropped by example and position
    Normalize,          ///< to = (a - mean) * rate * gamma + beta
    NormalizeGradient,  ///< to = the gradient of a norm of b, given a; sums of a * h and of a
    Sum,                ///< sums of a
    Quantize,           ///< to = a in a number format
  };
  Kind kind = Kind::Load;
  std::int32_t to = -1, a = -1, b = -1;  ///< registers
  Map map = Map::Identity;
  Pair pair = Pair::Add;
  std::int32_t format = 0;             ///< of the program's
  std::int32_t sum = 0;                ///< the first of its sums among the program's
  float slope = 0, low = 0, high = 0;  ///< low: eps of a norm
  bool is_rms = false;
  std::uint32_t threshold = 0, site = 0;
  float scale = 1;  ///< of what is not dropped
  const std::int32_t* random = nullptr;
  const float* memory = nullptr;  ///< gamma of a norm
  const float* second = nullptr;  ///< beta
  void* result = nullptr;
  Integers ids = {}, positions = {};  ///< ids, examples, offsets
  std::int64_t index = 0;             ///< negative: counted from the end
  std::int64_t table_rows = 0;
  Extent others = {};          ///< tokens, or sequences: what the rows are not
  float* sums = nullptr;       ///< [parts, n]
  float* more_sums = nullptr;  ///< of a norm: those of a
  Fault fault = {};
};
inline constexpr int kMostInstructions = 32, kMostRowFormats = 4;
inline constexpr std::int64_t kWidestRow = 4096;
/// Parts that the sums of a row program over so many rows are left in, for `add_parts`.
inline constexpr std::int32_t kMostRowParts = 256;
inline constexpr std::int32_t row_parts(std::int64_t capacity) {
  const std::int64_t parts = (capacity + 15) / 16;
  return static_cast<std::int32_t>(parts < 1 ? 1 : parts > kMostRowParts ? kMostRowParts : parts);
}
/// Instructions one after another for each row, the rows side by side; n is a multiple of four.
struct RowProgramArgs {
  std::int64_t n = 0;
  Extent rows;
  std::int32_t count = 0, num_registers = 0, num_sums = 0;
  RowInstruction instructions[kMostInstructions];
  QuantizeArgs formats[kMostRowFormats];
};

}  // namespace lathe::engine::cuda
