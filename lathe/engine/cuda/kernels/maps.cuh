#pragma once

// The functions of one and of two numbers that several kernels compute.

#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {

__device__ inline float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

/// The hardware's 2^x and 1/x, good to the last bit or two; results that are subnormal are zero.
__device__ inline float fast_exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
__device__ inline float fast_reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// The smaller of a normal distribution's two sides is t exp(p(t) - x^2 / 2) / 2, t being
// 1 / (1 + |x| / sqrt(8)), which keeps its digits where 1 + erf(x) is nearly 0. p is smooth: a
// polynomial through eight of Chebyshev's points between t = 0.14 and 1 (|x| = 17 and 0) leaves an
// error of 1.3e-6 of the result up to |x| = 3, and of 2e-5 beyond, where the exponent is rounded.
__device__ inline float normal_distribution(float x) {
  const float t = fast_reciprocal(fmaf(fabsf(x), 0.35355339f, 1.0f));
  float p = -0.19871640f;
  p = fmaf(p, t, 0.79612292f);
  p = fmaf(p, t, -1.07541436f);
  p = fmaf(p, t, 0.41530296f);
  p = fmaf(p, t, -0.07218281f);
  p = fmaf(p, t, 0.40299791f);
  p = fmaf(p, t, 0.99729254f);
  p = fmaf(p, t, -1.26540380f);
  const float side = 0.5f * t * fast_exp2(fmaf(x * x, -0.5f, p) * 1.44269504f);
  return x < 0 ? side : 1.0f - side;
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
      return normal_distribution(x) +
             x * (0.39894228040143268f * fast_exp2(x * x * -0.72134752044448170f));
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
