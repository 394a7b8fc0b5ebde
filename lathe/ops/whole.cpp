#include "lathe/ops/whole.h"

namespace lathe::ops {
namespace {

template <typename Element>
void store_low_bits(Tensor& tensor, std::span<const Whole> values) {
  const std::span<Element> elements = tensor.mutable_data<Element>();
  check(elements.size() == values.size(), "a number for each element");
  for (std::size_t i = 0; i < values.size(); ++i)
    elements[i] = static_cast<Element>(values[i].value);
}

}  // namespace

template <>
std::vector<Whole> read_numbers<Whole>(const Tensor& tensor) {
  std::vector<Whole> numbers;
  numbers.reserve(static_cast<std::size_t>(tensor.num_elements()));
  for (const std::int64_t value : read_integers(tensor)) numbers.push_back({value});
  return numbers;
}

void write_numbers(Tensor& tensor, std::span<const Whole> values) {
  switch (tensor.dtype()) {
    case DType::I64:
      return store_low_bits<std::int64_t>(tensor, values);
    case DType::I32:
      return store_low_bits<std::int32_t>(tensor, values);
    case DType::I16:
      return store_low_bits<std::int16_t>(tensor, values);
    case DType::I8:
      return store_low_bits<std::int8_t>(tensor, values);
    case DType::U8:
      return store_low_bits<std::uint8_t>(tensor, values);
    case DType::Bool:  // whatever is not 0 is true
      return store_low_bits<bool>(tensor, values);
    default:
      check(false, "a tensor of integers");
  }
}

}  // namespace lathe::ops
