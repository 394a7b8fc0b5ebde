#pragma once

#include "lathe/engine/cuda/arguments/operand.h"

// Losses and their gradients.
namespace lathe::engine::cuda {

/// `losses` holds 2 * rows doubles.
struct CrossEntropyArgs {
  const float* logits = nullptr;
  Integers labels;
  std::int64_t classes = 0, ignore_index = -100;
  double* losses = nullptr;
  float* sum = nullptr;
  float* count = nullptr;
  Extent rows;
  Fault fault;
};

struct CrossEntropyGradientArgs {
  const float* dsum = nullptr;
  const float* logits = nullptr;
  Integers labels;
  std::int64_t classes = 0, ignore_index = -100;
  float* dlogits = nullptr;
  Extent rows;
  Fault fault;
};

/// sum and count of the squared differences; `scratch` holds kSquaredErrorBlocks doubles.
inline constexpr int kSquaredErrorBlocks = 256;
struct SquaredErrorArgs {
  const float* prediction = nullptr;
  const float* target = nullptr;
  float* sum = nullptr;
  float* count = nullptr;
  double* scratch = nullptr;
  Extent elements;
};
struct SquaredErrorGradientArgs {
  const float* dsum = nullptr;
  const float* prediction = nullptr;
  const float* target = nullptr;
  float* dx = nullptr;
  Extent elements;
};

/// sum and count of log(1 + exp(x)) - x y over the elements.
struct BinaryCrossEntropyArgs {
  const float* logits = nullptr;
  const float* targets = nullptr;
  float* sum = nullptr;
  float* count = nullptr;
  Extent elements;
};
struct BinaryCrossEntropyGradientArgs {
  const float* dsum = nullptr;
  const float* logits = nullptr;
  const float* targets = nullptr;
  float* dlogits = nullptr;
  Extent elements;
};

}  // namespace lathe::engine::cuda
