#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lathe/core/dtype.h"
#include "lathe/core/error.h"

namespace lathe {

/// The number of elements of a concrete shape; refuses negative sizes and overflow.
std::int64_t num_elements(std::span<const std::int64_t> dims);
/// "[2,3,4]".
std::string to_text(std::span<const std::int64_t> dims);
inline std::string to_text(const std::vector<std::int64_t>& dims) {
  return to_text(std::span<const std::int64_t>(dims));
}

/// A dense row-major array with a concrete shape: a value, cheap to copy.
///
/// Copies share their bytes until one of them writes (`mutable_data` clones a shared buffer), so
/// the trials of a search share their parent's weights and a mapped file is never written.
class Tensor {
 public:
  Tensor() : Tensor(DType::F32, {0}) {}
  /// A zero-filled tensor.
  Tensor(DType dtype, std::vector<std::int64_t> dims);
  /// A view of `bytes` kept alive by `owner`, never written through: a mapped file, a parent's
  /// buffer.
  static Tensor view(DType dtype, std::vector<std::int64_t> dims, const std::byte* bytes,
                     std::shared_ptr<const void> owner);
  template <typename T>
  static Tensor from(std::vector<std::int64_t> dims, std::span<const T> values);
  template <typename T>
  static Tensor from(std::vector<std::int64_t> dims, std::initializer_list<T> values) {
    return from<T>(std::move(dims), std::span<const T>(values.begin(), values.size()));
  }

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& dims() const { return dims_; }
  std::int64_t dim(std::size_t axis) const { return dims_.at(axis); }
  std::size_t rank() const { return dims_.size(); }
  std::int64_t num_elements() const { return num_elements_; }
  std::int64_t num_bytes() const { return num_elements_ * size_of(dtype_); }

  const std::byte* bytes() const { return bytes_; }
  /// Writable bytes of this tensor alone.
  std::byte* mutable_bytes();
  template <typename T>
  std::span<const T> data() const;
  template <typename T>
  std::span<T> mutable_data();

  /// The same bytes under another shape of equal size.
  Tensor reshaped(std::vector<std::int64_t> dims) const;
  /// Element `index` of any dtype as a double (integers above 2^53 lose bits).
  double at(std::int64_t index) const;
  /// Every element converted to another dtype, floats rounded to nearest even.
  Tensor converted(DType dtype) const;

 private:
  DType dtype_;
  std::vector<std::int64_t> dims_;
  std::int64_t num_elements_ = 0;
  const std::byte* bytes_ = nullptr;
  // Shared because copies share bytes until written; the buffer is freed with its last copy.
  std::shared_ptr<std::byte[]> owned_;
  std::shared_ptr<const void> viewed_;
};

/// Bit-for-bit equality of dtype, shape and bytes.
bool identical(const Tensor& a, const Tensor& b);

/// The values of a model's declared states by name: parameters, moments, masks, scales.
using State = std::map<std::string, Tensor, std::less<>>;

template <typename T>
std::span<const T> Tensor::data() const {
  check(dtype_ == dtype_of<T>(), "the tensor's dtype to be the one asked for");
  return {reinterpret_cast<const T*>(bytes_), static_cast<std::size_t>(num_elements_)};
}

template <typename T>
std::span<T> Tensor::mutable_data() {
  check(dtype_ == dtype_of<T>(), "the tensor's dtype to be the one asked for");
  return {reinterpret_cast<T*>(mutable_bytes()), static_cast<std::size_t>(num_elements_)};
}

template <typename T>
Tensor Tensor::from(std::vector<std::int64_t> dims, std::span<const T> values) {
  Tensor tensor(dtype_of<T>(), std::move(dims));
  check(static_cast<std::size_t>(tensor.num_elements()) == values.size(),
        "as many values as the shape holds");
  const std::span<T> target = tensor.mutable_data<T>();
  for (std::size_t i = 0; i < values.size(); ++i) target[i] = values[i];
  return tensor;
}

}  // namespace lathe
