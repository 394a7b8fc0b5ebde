// The products kernel by itself: operands of both widths, results of both, and what follows them.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "lathe/engine/cuda/cuda_memory.h"
#include "lathe/engine/testing/cuda_gpu.h"

namespace lathe::engine {
namespace {

// Ties to even; no test has infinities.
std::uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float bf16_number(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

struct Case {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_by_k = false, b_by_k = false;
  std::int32_t parts = 1;
  std::int64_t real = -1;  // of the rows: of k where a lies by k, else of m; -1: all
};

// Numbers that every precision sees alike, so that results differ by the sums' rounding alone.
std::vector<float> bf16_numbers(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> result(static_cast<std::size_t>(count));
  for (float& x : result) x = bf16_number(bf16_bits(uniform(random)));
  return result;
}

template <typename T>
CudaBuffer on_device(std::span<const T> values) {
  CudaBuffer result;
  const auto bytes = static_cast<std::int64_t>(values.size_bytes());
  result.reserve(std::max<std::int64_t>(bytes, 16));
  const cuda::Device& device = cuda_library().kernels->device;
  check_cuda(device.copy(result.data(), values.data(), bytes, nullptr));
  check_cuda(device.synchronize(nullptr));
  return result;
}

CudaBuffer numbers_on_device(const std::vector<float>& values, cuda::Number as) {
  if (as == cuda::Number::F32) return on_device(std::span<const float>(values));
  std::vector<std::uint16_t> halves;
  for (const float x : values) halves.push_back(bf16_bits(x));
  return on_device(std::span<const std::uint16_t>(halves));
}

template <typename T>
std::vector<T> read_back(const CudaBuffer& from, std::size_t count) {
  std::vector<T> result(count);
  const cuda::Device& device = cuda_library().kernels->device;
  check_cuda(device.copy(result.data(), from.data(), static_cast<std::int64_t>(count * sizeof(T)),
                         nullptr));
  check_cuda(device.synchronize(nullptr));
  return result;
}

struct Matrix {
  std::vector<float> values;
  std::int64_t stride = 0;
  bool is_by_k = false;
  float at(std::int64_t outer, std::int64_t k) const {
    return values[static_cast<std::size_t>(is_by_k ? k * stride + outer : outer * stride + k)];
  }
};

struct Sum {
  double value = 0, magnitude = 0;
};

Sum sum_of(const Matrix& a, const Matrix& b, std::int64_t row, std::int64_t column,
           std::int64_t k) {
  Sum sum;
  for (std::int64_t d = 0; d < k; ++d) {
    const double term = double{a.at(row, d)} * b.at(column, d);
    sum.value += term;
    sum.magnitude += std::fabs(term);
  }
  return sum;
}

void launch(cuda::Precision precision, const cuda::Product& product) {
  const cuda::KernelTable& kernels = *cuda_library().kernels;
  cuda::ProductArgs args;
  args.precision = precision;
  args.count = 1;
  args.num_blocks = static_cast<std::int32_t>(cuda::product_blocks(product));
  args.products[0] = product;
  kernels.products(args, nullptr);
  check_cuda(kernels.device.launch_error());
  check_cuda(kernels.device.synchronize(nullptr));
}

// Every sum has at most k roundings of float, of its magnitude at most; tensor cores cut bits off
// where floats round, at four times the unit.
double error_of(const Sum& sum, std::int64_t k) {
  return std::ldexp(sum.magnitude, -22) * static_cast<double>(k);
}

void expect_product(cuda::Precision precision, const Case& one, cuda::Number a_as,
                    cuda::Number b_as) {
  const std::int64_t real_k = one.a_by_k && one.real >= 0 ? one.real : one.k;
  const std::int64_t real_m = !one.a_by_k && one.real >= 0 ? one.real : one.m;
  const Matrix a{bf16_numbers(one.m * one.k, 1), one.a_by_k ? one.m : one.k, one.a_by_k};
  const Matrix b{bf16_numbers(one.n * one.k, 2), one.b_by_k ? one.n : one.k, one.b_by_k};
  const CudaBuffer a_memory = numbers_on_device(a.values, a_as);
  const CudaBuffer b_memory = numbers_on_device(b.values, b_as);
  const std::int32_t real = static_cast<std::int32_t>(one.real);
  const CudaBuffer symbol = on_device(std::span<const std::int32_t>(&real, 1));
  const std::vector<float> bias = bf16_numbers(one.n, 3);
  const CudaBuffer bias_memory = numbers_on_device(bias, b_as);
  const auto count = static_cast<std::size_t>(one.m * one.n);
  const std::vector<float> junk(count * static_cast<std::size_t>(one.parts), 7.0f);
  const CudaBuffer c = on_device(std::span<const float>(junk)), y = on_device(std::span(junk));
  const CudaBuffer c_half = on_device(std::span<const float>(junk));
  const CudaBuffer y_half = on_device(std::span<const float>(junk));
  const std::vector<float> sums_junk(static_cast<std::size_t>(one.m * one.parts), 7.0f);
  const CudaBuffer sums = on_device(std::span<const float>(sums_junk));

  cuda::Product product;
  product.a = a_memory.data();
  product.b = b_memory.data();
  product.a_as = a_as;
  product.b_as = b_as;
  product.a_by_k = one.a_by_k;
  product.b_by_k = one.b_by_k;
  product.n = one.n;
  product.m.capacity = one.m;
  product.k.capacity = one.k;
  if (one.real >= 0) {
    cuda::Extent& rows = one.a_by_k ? product.k : product.m;
    rows.symbol = reinterpret_cast<const std::int32_t*>(symbol.data());
    rows.scale = 1;
  }
  product.c = reinterpret_cast<float*>(c.data());
  product.parts = one.parts;
  product.is_rounded = !one.a_by_k;
  if (one.a_by_k) product.sums = reinterpret_cast<float*>(sums.data());
  if (one.parts == 1) {
    product.bias = bias_memory.data();
    product.bias_as = b_as;
    product.map = cuda::Map::Relu;
    product.y = reinterpret_cast<float*>(y.data());
    product.c_half = reinterpret_cast<std::uint16_t*>(c_half.data());
    product.y_half = reinterpret_cast<std::uint16_t*>(y_half.data());
  }
  launch(precision, product);

  const auto c_values = read_back<float>(c, count * static_cast<std::size_t>(one.parts));
  const auto y_values = read_back<float>(y, count);
  const auto c_halves = read_back<std::uint16_t>(c_half, count);
  const auto y_halves = read_back<std::uint16_t>(y_half, count);
  const bool rounds = precision == cuda::Precision::Bf16 && product.is_rounded;
  int shown = 0;
  for (std::int64_t row = 0; row < one.m && shown < 3; ++row)
    for (std::int64_t column = 0; column < one.n && shown < 3; ++column) {
      const auto place = static_cast<std::size_t>(row * one.n + column);
      const bool is_real = row < real_m;
      Sum sum = is_real ? sum_of(a, b, row, column, real_k) : Sum{};
      double found = 0;
      for (std::int32_t part = 0; part < one.parts; ++part)
        found += c_values[static_cast<std::size_t>(part) * count + place];
      if (one.parts == 1 && is_real) {
        sum.value += bias[static_cast<std::size_t>(column)];
        sum.magnitude += std::fabs(bias[static_cast<std::size_t>(column)]);
      }
      const double half_unit = rounds ? std::ldexp(std::fabs(sum.value), -8) : 0;
      const double tolerance = error_of(sum, real_k + 1) * 2 + half_unit;
      bool is_right = std::fabs(found - sum.value) <= tolerance;
      if (one.parts == 1) {
        const float value = c_values[place];
        const float mapped = value < 0 ? 0.0f : value;
        is_right = is_right && c_halves[place] == bf16_bits(value) && y_values[place] == mapped &&
                   y_halves[place] == bf16_bits(mapped);
        if (rounds) is_right = is_right && bf16_number(bf16_bits(value)) == value;
      }
      if (is_right) continue;
      ADD_FAILURE() << "[" << row << ", " << column << "]: " << found << " instead of " << sum.value
                    << ", y " << y_values[place] << ", halves " << bf16_number(c_halves[place])
                    << " and " << bf16_number(y_halves[place]);
      ++shown;
    }
  if (!one.a_by_k) return;
  const auto found = read_back<float>(sums, static_cast<std::size_t>(one.m * one.parts));
  for (std::int64_t row = 0; row < one.m && shown < 3; ++row) {
    Sum sum;
    for (std::int64_t d = 0; d < real_k; ++d) {
      sum.value += a.at(row, d);
      sum.magnitude += std::fabs(a.at(row, d));
    }
    double total = 0;
    for (std::int32_t part = 0; part < one.parts; ++part)
      total += found[static_cast<std::size_t>(part * one.m + row)];
    if (std::fabs(total - sum.value) <= error_of(sum, real_k)) continue;
    ADD_FAILURE() << "sum of row " << row << ": " << total << " instead of " << sum.value;
    ++shown;
  }
}

constexpr Case kCases[] = {
    {.m = 200, .n = 136, .k = 128},
    {.m = 200, .n = 136, .k = 128, .real = 131},
    {.m = 130, .n = 70, .k = 41},                   // no row begins on 16 bytes
    {.m = 200, .n = 136, .k = 96, .b_by_k = true},  // a gradient by rows
    {.m = 200, .n = 72, .k = 512, .b_by_k = true, .real = 1},
    {.m = 4100, .n = 270, .k = 24, .real = 4001},  // many results
    {.m = 8200, .n = 136, .k = 41, .b_by_k = true},
    {.m = 512, .n = 130, .k = 1000, .a_by_k = true, .b_by_k = true, .parts = 11, .real = 999},
    {.m = 1, .n = 128, .k = 512},  // few rows
    {.m = 64, .n = 130, .k = 300, .real = 40},
    {.m = 32, .n = 96, .k = 128, .b_by_k = true},
    {.m = 33, .n = 2, .k = 128},
    {.m = 128, .n = 256, .k = 1024, .a_by_k = true, .b_by_k = true, .parts = 4},
    {.m = 128, .n = 136, .k = 1024, .a_by_k = true, .b_by_k = true, .parts = 4, .real = 333},
    {.m = 130, .n = 70, .k = 48, .a_by_k = true, .b_by_k = true},  // a gradient in one part
    {.m = 2, .n = 128, .k = 32, .a_by_k = true, .b_by_k = true},
};

TEST(CudaProductsKernel, MultipliesOperandsOfBothWidths) {
  LATHE_NEEDS_GPU();
  for (const cuda::Precision precision :
       {cuda::Precision::Float32, cuda::Precision::Tf32, cuda::Precision::Bf16})
    for (const Case& one : kCases)
      for (const cuda::Number a : {cuda::Number::F32, cuda::Number::BF16})
        for (const cuda::Number b : {cuda::Number::F32, cuda::Number::BF16}) {
          SCOPED_TRACE(
              fmt::format("precision {}: {} x {} x {}, by k {} {}, {} parts, real {}, "
                          "bf16 {} {}",
                          static_cast<int>(precision), one.m, one.n, one.k, one.a_by_k, one.b_by_k,
                          one.parts, one.real, a == cuda::Number::BF16, b == cuda::Number::BF16));
          expect_product(precision, one, a, b);
        }
}

// The slope of a map at a number of either width; only halves are written.
TEST(CudaProductsKernel, MultipliesBySlopesOfBothWidths) {
  LATHE_NEEDS_GPU();
  constexpr std::int64_t kRows = 700, kColumns = 96, kDepth = 64;
  const Matrix a{bf16_numbers(kRows * kDepth, 1), kDepth, false};
  const Matrix b{bf16_numbers(kColumns * kDepth, 2), kColumns, true};
  const std::vector<float> before = bf16_numbers(kRows * kColumns, 3);
  const CudaBuffer a_memory = numbers_on_device(a.values, cuda::Number::BF16);
  const CudaBuffer b_memory = numbers_on_device(b.values, cuda::Number::BF16);
  for (const cuda::Number before_as : {cuda::Number::F32, cuda::Number::BF16}) {
    const CudaBuffer before_memory = numbers_on_device(before, before_as);
    CudaBuffer result;
    result.reserve(kRows * kColumns * 2);
    cuda::Product product;
    product.a = a_memory.data();
    product.b = b_memory.data();
    product.a_as = product.b_as = cuda::Number::BF16;
    product.b_by_k = true;
    product.n = kColumns;
    product.m.capacity = kRows;
    product.k.capacity = kDepth;
    product.before = before_memory.data();
    product.before_as = before_as;
    product.map = cuda::Map::GeluErf;
    product.c_half = reinterpret_cast<std::uint16_t*>(result.data());
    launch(cuda::Precision::Bf16, product);
    const auto found = read_back<std::uint16_t>(result, before.size());
    for (std::int64_t row = 0; row < kRows; ++row)
      for (std::int64_t column = 0; column < kColumns; ++column) {
        const auto place = static_cast<std::size_t>(row * kColumns + column);
        const Sum sum = sum_of(a, b, row, column, kDepth);
        const double x = before[place];
        const double slope = 0.5 * std::erfc(-x * std::sqrt(0.5)) +
                             x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::acos(-1.0));
        // Rounded to bfloat16 before the slope and after it.
        const double tolerance =
            (std::ldexp(std::fabs(sum.value), -7) + error_of(sum, kDepth)) * 1.2 + 1e-6;
        ASSERT_NEAR(bf16_number(found[place]), sum.value * slope, tolerance)
            << row << ", " << column;
      }
  }
}

}  // namespace
}  // namespace lathe::engine
