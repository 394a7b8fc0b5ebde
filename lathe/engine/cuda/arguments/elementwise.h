#pragma once

#include "lathe/engine/cuda/arguments/operand.h"

// Maps of one operand and of two, copies, fills and casts.
namespace lathe::engine::cuda {

enum class Map : std::int32_t {
  Identity,
  Relu,
  GeluErf,
  GeluTanh,
  Tanh,
  Sigmoid,
  Silu,
  QuickGelu,
  Exp,
  Erf,
  Log,
  Negate,
  Abs,
  Sqrt,
  Reciprocal,
  Cos,
  Sin,
  LeakyRelu,
};

enum class Pair : std::int32_t { Add, Subtract, Multiply, Divide, Minimum, Maximum, Power };

struct MapArgs {
  Map map = Map::Identity;
  float slope = 0;
  const float* x = nullptr;
  float* y = nullptr;
  Extent count;
};

/// dx = dy * map'(x).
struct MapGradientArgs {
  Map map = Map::Identity;
  float slope = 0;
  const float* dy = nullptr;
  const float* x = nullptr;
  float* dx = nullptr;
  Extent count;
};

inline constexpr int kMostAxes = 8;

/// How the elements of a result, counted in row-major order, walk along an operand.
struct Walk {
  std::int64_t strides[kMostAxes] = {};
};

struct PairArgs {
  Pair pair = Pair::Add;
  const float* a = nullptr;
  const float* b = nullptr;
  float* y = nullptr;
  std::int32_t rank = 0;
  std::int64_t dims[kMostAxes] = {};
  Walk a_walk, b_walk;
  Extent count;
};

/// y = dy * the derivative of the pair by its operand 0 or 1.
struct PairGradientArgs {
  PairArgs pair;  ///< y is the result
  const float* dy = nullptr;
  std::int32_t operand = 0;
};

/// y[walk of y] = x[walk of x] for every index of `dims`; with a factor, of floats.
struct CopyArgs {
  const void* x = nullptr;
  void* y = nullptr;
  std::int32_t element_bytes = 4;
  std::int32_t rank = 0;
  std::int64_t dims[kMostAxes] = {};
  Walk x_walk, y_walk;
  float factor = 1;
  Extent count;
};

struct FillArgs {
  std::uint32_t* y = nullptr;
  std::uint32_t pattern = 0;
  Extent count;
};

struct CastArgs {
  Number from = Number::F32, to = Number::F32;
  const void* x = nullptr;
  void* y = nullptr;
  Extent count;
};

struct GateArgs {
  const float* dy = nullptr;
  const float* x = nullptr;
  float* dx = nullptr;
  float minimum = 0, maximum = 0;
  Extent count;
};

}  // namespace lathe::engine::cuda
