#pragma once

#include "lathe/engine/cuda/arguments/elementwise.h"
#include "lathe/engine/cuda/arguments/format.h"

// Chains of steps that go row by row, as one launch.
namespace lathe::engine::cuda {

/// A step of a row program, on registers that each hold one row of n floats.
struct RowInstruction {
  enum class Kind : std::int32_t {
    // Loads stand in front of all others.
    Load,               ///< to = memory[row]
    LoadHalf,           ///< the same of bfloat16, for Widen
    LoadOfTable,        ///< to = memory[ids[row]]
    LoadOfSequence,     ///< to = memory[token `index` of sequence row]
    LoadForToken,       ///< to = memory[s] where the row is token `index` of sequence s, else zeros
    Widen,              ///< to = a, of which LoadHalf has filled the second half
    Store,              ///< memory[row] = a
    StoreHalf,          ///< the same as bfloat16
    Map,                ///< to = map(a)
    MapGradient,        ///< to = a * map'(b)
    Pair,               ///< to = pair(a, b)
    Gate,               ///< to = a where b lies in low to high, else 0
    Dropout,            ///< to = a, dropped by example and position
    Normalize,          ///< to = (a - mean) * rate * b + c
    NormalizeGradient,  ///< to = the gradient of a norm of b by c, given a; sums of a * h and of a
    Sum,                ///< sums of a
    Quantize,           ///< to = a in a number format
    LearnedStep,        ///< to = the gradient of a format's b, given a and c; sums for its scale
  };
  Kind kind = Kind::Load;
  std::int32_t to = -1, a = -1, b = -1, c = -1;  ///< registers, or vectors from kFirstVector on
  Map map = Map::Identity;
  Pair pair = Pair::Add;
  std::int32_t format = 0;             ///< of the program's formats or learned steps
  std::int32_t sum = 0;                ///< the first of its sums among the program's
  std::int32_t number = -1;            ///< of the program's `numbered`; -1: none
  float slope = 0, low = 0, high = 0;  ///< low: eps of a norm
  bool is_rms = false;
  std::uint32_t threshold = 0, site = 0;
  float scale = 1;  ///< of what is not dropped
  const std::int32_t* random = nullptr;
  const void* memory = nullptr;  ///< floats, or bfloat16
  void* result = nullptr;
  Integers ids = {}, positions = {};  ///< ids, examples, offsets
  std::int64_t index = 0;             ///< negative: counted from the end
  std::int64_t table_rows = 0;
  Extent others = {};          ///< tokens, or sequences: what the rows are not
  float* sums = nullptr;       ///< [parts, n]; of a learned step [parts]
  float* more_sums = nullptr;  ///< of a norm: those of a
  Fault fault = {};
};
inline constexpr int kMostInstructions = 32, kMostRowFormats = 4, kMostVectors = 8,
                     kMostRowSteps = 2, kMostNumbered = 8;
/// The number of the first vector where registers are named.
inline constexpr int kFirstVector = 1000;
inline constexpr std::int64_t kWidestRow = 4096;
/// Parts that the sums of a row program over so many rows are left in, for `add_parts`: one for
/// each block of threads, so that all multiprocessors have work and no block much more than others.
inline constexpr std::int64_t row_parts(std::int64_t capacity, std::int64_t width) {
  const std::int64_t rows = width <= 256 ? 16 : width <= 1024 ? 4 : 8;  // of a block, at least
  const std::int64_t parts = (capacity + rows - 1) / rows;
  const std::int64_t most = width <= 1024 ? 264 : 88;
  return parts < 1 ? 1 : parts > most ? most : parts;
}
/// Instructions one after another for each row, the rows side by side; n is a multiple of four.
struct RowProgramArgs {
  std::int64_t n = 0;
  Extent rows;
  std::int32_t count = 0, num_loads = 0, num_registers = 0, num_sums = 0, num_vectors = 0;
  /// Instructions that read single numbers of a row, which are asked for together.
  std::int32_t numbered[kMostNumbered] = {-1, -1, -1, -1, -1, -1, -1, -1};
  const float* vectors[kMostVectors] = {};  ///< of n floats, the same for every row
  QuantizeArgs formats[kMostRowFormats];
  LearnedStepArgs learned_steps[kMostRowSteps];  ///< with one scale
  RowInstruction instructions[kMostInstructions];
};

}  // namespace lathe::engine::cuda
