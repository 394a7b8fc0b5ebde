#include "lathe/core/type.h"

#include "lathe/core/error.h"

namespace lathe {

const Size& Type::axis(std::int64_t index) const {
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t position = index < 0 ? index + rank : index;
  if (position < 0 || position >= rank) fail("{} has no axis {}", to_text(*this), index);
  return shape[static_cast<std::size_t>(position)];
}

Size Type::num_elements() const {
  Size product(1);
  for (const Size& size : shape) product *= size;
  return product;
}

Size Type::num_bytes() const {
  return num_elements() * Size(size_of(dtype));
}

std::vector<std::int64_t> Type::dims(const SymbolValues& values) const {
  std::vector<std::int64_t> result;
  result.reserve(shape.size());
  for (const Size& size : shape) {
    const std::int64_t value = size.evaluate(values);
    if (value < 0) fail("{}: size {} is negative: {}", to_text(*this), size.text(), value);
    result.push_back(value);
  }
  return result;
}

std::string to_text(const Shape& shape) {
  std::string result = "[";
  for (const Size& size : shape) {
    if (result.size() > 1) result += ',';
    result += size.text();
  }
  return result + ']';
}

std::string to_text(const Type& type) {
  return std::string(name(type.dtype)) + to_text(type.shape);
}

}  // namespace lathe
