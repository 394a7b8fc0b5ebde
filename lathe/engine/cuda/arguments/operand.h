#pragma once

#include <cstdint>

// What all kernels are told of their operands: how large they are, how they lie, what products see
// of them.
namespace lathe::engine::cuda {

/// A size that a captured graph must not bake in. Launches are made for `capacity`; how much of it
/// is there in this run is scale * *symbol + offset, read from device memory.
///
/// What a kernel writes beyond the real size is zero, up to the capacity: a matrix product reads
/// all rows of its operands.
struct Extent {
  const std::int32_t* symbol = nullptr;  ///< null: always the capacity
  std::int64_t scale = 0, offset = 0;
  std::int64_t capacity = 0;
};

/// Whole numbers of 32 or 64 bits.
struct Integers {
  const void* data = nullptr;
  bool is_wide = false;
};

/// How an element lies in memory.
enum class Number : std::int32_t { F64, F32, F16, BF16, I64, I32, I16, I8, U8, Bool };

/// Where a kernel reports what it cannot refuse: the smallest number of a faulty step.
struct Fault {
  std::int32_t* first = nullptr;
  std::int32_t step = 0;
};

/// What the products (linear, matmul, attention) of a run see of their operands. Sums are float in
/// every case.
enum class Precision : std::int32_t {
  Float32,  ///< all of them: true float products
  Tf32,     ///< operands rounded to 10 bits after the leading one; results are float
  Bf16,     ///< operands and results rounded to bfloat16, ties to even
};

}  // namespace lathe::engine::cuda
