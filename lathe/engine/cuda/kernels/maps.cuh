#pragma once

// The functions of one and of two numbers that several kernels compute.

#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {

__device__ inline float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

// By erfc, which keeps its digits where 1 + erf(x) is nearly 0.
__device__ inline float normal_distribution(float x) {
  return 0.5f * erfcf(-0.70710678118654752f * x);
}

inline constexpr float kGeluScale = 0.79788456080286536f;  // sqrt(2 / pi)
inline constexpr float kGeluCubic = 0.044715f;

__device__ inline float apply(Map map, float x, float slope) {
  switch (map) {
    case Map::Identity:
      return x;
    case Map::Relu:
      return x < 0 ? 0.0f : x;
    case Map::GeluErf:
      return x * normal_distribution(x);
    case Map::GeluTanh:
      return 0.5f * x * (1.0f + tanhf(kGeluScale * (x + kGeluCubic * x * x * x)));
    case Map::Tanh:
      return tanhf(x);
    case Map::Sigmoid:
      return sigmoid(x);
    case Map::Silu:
      return x * sigmoid(x);
    case Map::QuickGelu:
      return x * sigmoid(1.702f * x);
    case Map::Exp:
      return expf(x);
    case Map::Erf:
      return erff(x);
    case Map::Log:
      return logf(x);
    case Map::Negate:
      return -x;
    case Map::Abs:
      return fabsf(x);
    case Map::Sqrt:
      return sqrtf(x);
    case Map::Reciprocal:
      return 1.0f / x;
    case Map::Cos:
      return cosf(x);
    case Map::Sin:
      return sinf(x);
    case Map::LeakyRelu:
      return x > 0 ? x : slope * x;
  }
  return x;
}

__device__ inline float swish_derivative(float x, float rate) {
  const float s = sigmoid(rate * x);
  return s + rate * x * s * (1.0f - s);
}

// At a kink the derivative is that of the left side, but 0 for abs.
__device__ inline float derivative(Map map, float x, float slope) {
  switch (map) {
    case Map::Identity:
      return 1.0f;
    case Map::Relu:
      return x > 0 ? 1.0f : 0.0f;
    case Map::GeluErf:
      return normal_distribution(x) + x * (0.39894228040143268f * expf(-0.5f * x * x));
    case Map::GeluTanh: {
      const float t = tanhf(kGeluScale * (x + kGeluCubic * x * x * x));
      return 0.5f * (1.0f + t) +
             0.5f * x * (1.0f - t * t) * kGeluScale * (1.0f + 3.0f * kGeluCubic * x * x);
    }
    case Map::Tanh: {
      const float t = tanhf(x);
      return 1.0f - t * t;
    }
    case Map::Sigmoid: {
      const float s = sigmoid(x);
      return s * (1.0f - s);
    }
    case Map::Silu:
      return swish_derivative(x, 1.0f);
    case Map::QuickGelu:
      return swish_derivative(x, 1.702f);
    case Map::Exp:
      return expf(x);
    case Map::Erf:
      return 1.1283791670955126f * expf(-x * x);
    case Map::Log:
      return 1.0f / x;
    case Map::Negate:
      return -1.0f;
    case Map::Abs:
      return x > 0 ? 1.0f : x < 0 ? -1.0f : x;
    case Map::Sqrt:
      return 0.5f / sqrtf(x);
    case Map::Reciprocal:
      return -1.0f / (x * x);
    case Map::Cos:
      return -sinf(x);
    case Map::Sin:
      return cosf(x);
    case Map::LeakyRelu:
      return x > 0 ? 1.0f : slope;
  }
  return 0;
}

__device__ inline float apply(Pair pair, float a, float b) {
  switch (pair) {
    case Pair::Add:
      return a + b;
    case Pair::Subtract:
      return a - b;
    case Pair::Multiply:
      return a * b;
    case Pair::Divide:
      return a / b;
    case Pair::Minimum:  // NaN wins over any number
      return a != a || a < b ? a : b;
    case Pair::Maximum:
      return a != a || a > b ? a : b;
    case Pair::Power:
      return powf(a, b);
  }
  return 0;
}

__device__ inline float step_at(float difference) {
  return difference > 0 ? 1.0f : difference < 0 ? 0.0f : 0.5f;
}

__device__ inline float derivative(Pair pair, int operand, float a, float b) {
  switch (pair) {
    case Pair::Maximum:
      return operand == 0 ? step_at(a - b) : step_at(b - a);
    case Pair::Minimum:
      return operand == 0 ? step_at(b - a) : step_at(a - b);
    case Pair::Power:
      if (operand == 0) return b == 0 ? 0.0f : b * powf(a, b - 1.0f);
      return a == 0 && b >= 0 ? 0.0f : powf(a, b) * logf(a);
    default:
      return 0;
  }
}

}  // namespace lathe::engine::cuda
