#include "lathe/core/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "lathe/core/memory.h"

namespace lathe {
namespace {

std::shared_ptr<std::byte[]> allocate(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  return {allocate_memory(size), [size](std::byte* memory) { free_memory(memory, size); }};
}

float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half >> 15) << 31;
  const std::uint32_t exponent = (half >> 10) & 31u;
  const std::uint32_t mantissa = half & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

// Rounds a float's bits to its upper `32 - shift` bits, ties to even; the carry may reach the
// exponent.
std::uint32_t round_bits(std::uint32_t bits, int shift) {
  const std::uint32_t half = (1u << (shift - 1)) - 1u;
  return (bits + half + ((bits >> shift) & 1u)) >> shift;
}

// The float towards zero, with its last bit set where something was cut off: rounding that to
// fewer bits gives what rounding `value` itself would, which a nearest float does not on ties.
float to_odd(double value) {
  auto result = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(result) == value) return result;
  if (std::fabs(static_cast<double>(result)) > std::fabs(value))
    result = std::nextafter(result, 0.0f);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(result) | 1u);
}

std::uint16_t float_to_bfloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>(round_bits(bits, 16));
}

std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00u);
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 6.103515625e-05f) {  // below the least normal half: a multiple of 2^-24
    const auto code = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, 24)));
    return static_cast<std::uint16_t>(sign | code);
  }
  const std::uint32_t rounded = round_bits((bits & 0x7fffffffu) - (112u << 23), 13);
  return static_cast<std::uint16_t>(sign | rounded);
}

template <typename T>
double load(const std::byte* bytes, std::int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return static_cast<double>(value);
}

// Towards zero; NaN is 0 and what does not fit becomes the nearest that does, where a plain cast
// would be undefined.
template <typename T>
T to_integer(double value) {
  if (std::isnan(value)) return 0;
  constexpr auto kLow = static_cast<double>(std::numeric_limits<T>::min());
  constexpr auto kHigh = static_cast<double>(std::numeric_limits<T>::max());
  if (value <= kLow) return std::numeric_limits<T>::min();
  if (value >= kHigh) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

template <typename T>
void store(std::byte* bytes, std::int64_t index, T value) {
  std::memcpy(bytes + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

std::int64_t num_elements(std::span<const std::int64_t> dims) {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) {
    check(dim >= 0, "sizes that are not negative");
    if (__builtin_mul_overflow(product, dim, &product))
      fail("shape {} has more elements than 64 bits can count", to_text(dims));
  }
  return product;
}

std::string to_text(std::span<const std::int64_t> dims) {
  return fmt::format("[{}]", fmt::join(dims, ","));
}

Tensor::Tensor(DType dtype, std::vector<std::int64_t> dims)
    : dtype_(dtype), dims_(std::move(dims)), num_elements_(lathe::num_elements(dims_)) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(num_elements_, size_of(dtype), &bytes))
    fail("a tensor of shape {} does not fit in memory", to_text(dims_));
  try {
    owned_ = allocate(bytes);
  } catch (const std::bad_alloc&) {
    fail("a tensor of shape {} does not fit in memory", to_text(dims_));
  }
  if (static_cast<std::size_t>(bytes) < kLargeMemory)  // larger ones are zero already
    std::memset(owned_.get(), 0, static_cast<std::size_t>(bytes));
  bytes_ = owned_.get();
}

Tensor Tensor::view(DType dtype, std::vector<std::int64_t> dims, const std::byte* bytes,
                    std::shared_ptr<const void> owner) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.dims_ = std::move(dims);
  tensor.num_elements_ = lathe::num_elements(tensor.dims_);
  tensor.bytes_ = bytes;
  tensor.owned_.reset();
  tensor.viewed_ = std::move(owner);
  return tensor;
}

std::byte* Tensor::mutable_bytes() {
  if (!owned_ || owned_.use_count() > 1) {
    auto fresh = allocate(num_bytes());
    std::memcpy(fresh.get(), bytes_, static_cast<std::size_t>(num_bytes()));
    owned_ = std::move(fresh);
    viewed_.reset();
    bytes_ = owned_.get();
  }
  return owned_.get();
}

Tensor Tensor::reshaped(std::vector<std::int64_t> dims) const {
  check(lathe::num_elements(dims) == num_elements_, "a reshape to as many elements");
  Tensor result = *this;
  result.dims_ = std::move(dims);
  return result;
}

double Tensor::at(std::int64_t index) const {
  check(index >= 0 && index < num_elements_, "an index inside the tensor");
  switch (dtype_) {
    case DType::F64:
      return load<double>(bytes_, index);
    case DType::F32:
      return load<float>(bytes_, index);
    case DType::F16: {
      std::uint16_t bits;
      std::memcpy(&bits, bytes_ + 2 * index, 2);
      return half_to_float(bits);
    }
    case DType::BF16: {
      std::uint16_t bits;
      std::memcpy(&bits, bytes_ + 2 * index, 2);
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
    }
    case DType::I64:
      return load<std::int64_t>(bytes_, index);
    case DType::I32:
      return load<std::int32_t>(bytes_, index);
    case DType::I16:
      return load<std::int16_t>(bytes_, index);
    case DType::I8:
      return load<std::int8_t>(bytes_, index);
    case DType::U8:
    case DType::Bool:
      return load<std::uint8_t>(bytes_, index);
  }
  return 0;
}

Tensor Tensor::converted(DType dtype) const {
  if (dtype == dtype_) return *this;
  Tensor result(dtype, dims_);
  std::byte* out = result.mutable_bytes();
  for (std::int64_t i = 0; i < num_elements_; ++i) {
    // Integers go through their own type, because a double cannot carry 64 bits.
    if (dtype_ == DType::I64 && dtype == DType::I32) {
      const std::int64_t whole = data<std::int64_t>()[static_cast<std::size_t>(i)];
      store(out, i,
            static_cast<std::int32_t>(
                std::clamp<std::int64_t>(whole, std::numeric_limits<std::int32_t>::min(),
                                         std::numeric_limits<std::int32_t>::max())));
      continue;
    }
    const double value = at(i);
    switch (dtype) {
      case DType::F64:
        store(out, i, value);
        break;
      case DType::F32:
        store(out, i, static_cast<float>(value));
        break;
      case DType::F16:
        store(out, i, float_to_half(to_odd(value)));
        break;
      case DType::BF16:
        store(out, i, float_to_bfloat(to_odd(value)));
        break;
      case DType::I64:
        store(out, i, to_integer<std::int64_t>(value));
        break;
      case DType::I32:
        store(out, i, to_integer<std::int32_t>(value));
        break;
      case DType::I16:
        store(out, i, to_integer<std::int16_t>(value));
        break;
      case DType::I8:
        store(out, i, to_integer<std::int8_t>(value));
        break;
      case DType::U8:
        store(out, i, to_integer<std::uint8_t>(value));
        break;
      case DType::Bool:
        store(out, i, static_cast<std::uint8_t>(value != 0));
        break;
    }
  }
  return result;
}

bool identical(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.dims() == b.dims() &&
         std::memcmp(a.bytes(), b.bytes(), static_cast<std::size_t>(a.num_bytes())) == 0;
}

}  // namespace lathe
