#pragma once

#include "lathe/engine/cuda/arguments/operand.h"
#include "lathe/ops/rope_scaling.h"

// What goes row by row in a launch of its own: softmax, norms, rotations and dropout.
namespace lathe::engine::cuda {

enum class Softmax : std::int32_t { Forward, Logarithm, Gradient, LogarithmGradient };
/// Along the middle axis of [outer, size, inner]; `y` is the gradients' second operand.
struct SoftmaxArgs {
  Softmax kind = Softmax::Forward;
  const float* x = nullptr;
  const float* y = nullptr;
  float* out = nullptr;
  std::int64_t size = 0, inner = 1;
  Extent outer;
};

struct NormalizeArgs {
  bool is_rms = false;
  const float* x = nullptr;
  const float* residual = nullptr;  ///< added to x; may be null
  const float* gamma = nullptr;
  const float* beta = nullptr;  ///< null for rms
  float* y = nullptr;
  float eps = 0;
  std::int64_t n = 0;
  Extent rows;
};

/// `statistics` holds 2 * rows floats, `scratch` num_row_chunks(capacity) * 2 * n doubles.
struct NormalizeGradientArgs {
  bool is_rms = false;
  const float* dy = nullptr;
  const float* x = nullptr;
  const float* gamma = nullptr;
  float* dx = nullptr;
  float* dgamma = nullptr;
  float* dbeta = nullptr;  ///< null for rms
  float* statistics = nullptr;
  double* scratch = nullptr;
  float eps = 0;
  std::int64_t n = 0;
  Extent rows;
};

struct RopeArgs {
  const float* x = nullptr;
  Integers positions;
  float* y = nullptr;
  std::int64_t heads = 0, half = 0;
  bool is_interleaved = false;
  double theta = 0;
  ops::RopeScaling scaling = {};
  double direction = 1;
  Extent rows;
};

struct DropoutArgs {
  const float* x = nullptr;
  const std::int32_t* random = nullptr;  ///< {seed low, seed high, step}
  Integers examples, positions;
  float* y = nullptr;
  std::uint32_t threshold = 0, site = 0;
  float scale = 1;
  std::int64_t n = 0;
  Extent rows;
};

}  // namespace lathe::engine::cuda
