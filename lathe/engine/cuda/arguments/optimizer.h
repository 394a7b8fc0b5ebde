#pragma once

#include "lathe/engine/cuda/arguments/elementwise.h"

// Updates of all parameters, and the single numbers that lead to them.
namespace lathe::engine::cuda {

/// One tensor of a launch over all parameters. Null places: the gradient is as large as the
/// parameter; else it is rows of n, places[row] saying which, -1 none.
struct UpdatedTensor {
  const float* param = nullptr;
  const float* gradient = nullptr;
  const float* m = nullptr;  ///< sgd: the velocity
  const float* v = nullptr;
  float* new_param = nullptr;
  float* new_m = nullptr;
  float* new_v = nullptr;
  std::uint16_t* new_half = nullptr;  ///< new_param as bfloat16; null: nobody asks
  const std::int32_t* places = nullptr;
  std::int64_t n = 0;
  std::int64_t count = 0;
  std::int64_t first_block = 0;  ///< of the launch
  const float* rate = nullptr;
  const float* scale = nullptr;
  const std::int32_t* random = nullptr;  ///< adamw: random[2] is the step
  double beta1 = 0, beta2 = 0, eps = 0;  ///< sgd: beta1 is the momentum
  double weight_decay = 0;
};
inline constexpr std::int64_t kUpdateBlock = 4096;  ///< elements a block of threads updates
struct UpdateArgs {
  bool is_adamw = true;
  const UpdatedTensor* tensors = nullptr;  ///< in device memory
  std::int32_t num_tensors = 0;
  std::int64_t num_blocks = 0;
};

/// The sum of squares of several tensors, one launch for the parts and one for the totals.
struct SquaredTensor {
  const float* x = nullptr;
  const std::int32_t* used_rows = nullptr;  ///< how many rows of n count; null: all elements
  std::int64_t n = 0;
  Extent count;
  std::int64_t first_block = 0;
  float* sum = nullptr;
};
struct SumSquaresArgs {
  const SquaredTensor* tensors = nullptr;  ///< in device memory
  std::int32_t num_tensors = 0;
  std::int64_t num_blocks = 0;  ///< of kUpdateBlock elements at capacity
  double* parts = nullptr;      ///< one a block
};

/// Operations on small arrays, each by a block of threads of one launch.
struct VectorOperation {
  enum class Kind : std::int32_t { Mean, Pair };
  Kind kind = Kind::Pair;
  Pair pair = Pair::Add;
  const float* a = nullptr;
  const float* b = nullptr;
  bool is_a_single = false, is_b_single = false;  ///< one number for all of y
  float* y = nullptr;
  std::int64_t count = 0;  ///< of y; of a for a mean
};
inline constexpr std::int64_t kMostVectorElements = 8192;
struct VectorArgs {
  const VectorOperation* operations = nullptr;  ///< in device memory
  std::int32_t count = 0;
};

/// Operations on single numbers, one after another in one thread.
struct ScalarOperation {
  enum class Kind : std::int32_t { Map, Pair, Fill, GradientScale };
  Kind kind = Kind::Pair;
  Map map = Map::Identity;
  Pair pair = Pair::Add;
  /// Earlier operations that make the operands, which are not read from memory then; -1: none.
  std::int32_t a_from = -1, b_from = -1;
  std::int32_t level = 0;  ///< more than that of any operation whose result it waits for
  /// It adds a number from memory to the result of the operation before it, whose level it has.
  bool continues = false;
  double value = 0;  ///< Fill, the slope of a map, the largest norm
  const float* a = nullptr;
  const float* b = nullptr;
  float* y = nullptr;
  float* norm = nullptr;  ///< GradientScale: y is what gradients are multiplied by
};
inline constexpr int kMostScalars = 1024;
struct ScalarArgs {
  const ScalarOperation* operations = nullptr;  ///< in device memory
  std::int32_t count = 0;
};

}  // namespace lathe::engine::cuda
