#include "lathe/ops/code_products.h"

#include "lathe/numerics/code_layout.h"
#include "lathe/numerics/scaled_format.h"

namespace lathe::ops {

std::optional<CodeBlocks> code_blocks(const FormatFacts& x, const FormatFacts& weight,
                                      std::int64_t columns) {
  if (columns < 1 || columns > kDeepestCodes) return std::nullopt;
  const std::int64_t of_x = numerics::blocks_of_row(x, columns);
  const std::int64_t of_weight = numerics::blocks_of_row(weight, columns);
  CodeBlocks result{1, columns, of_x > 1, of_weight > 1};
  if (of_x > 1 && of_weight > 1 && x.block_columns != weight.block_columns) return std::nullopt;
  if (of_x > 1) result.width = x.block_columns;
  if (of_weight > 1) result.width = weight.block_columns;
  result.blocks = std::max(of_x, of_weight);
  return result;
}

bool fits_signed_bytes(const NumberFormat& weight) {
  if (!numerics::has_row_codes(weight)) return false;
  // Eight bits and a zero point are nine bits.
  const bool is_unsigned = numerics::code_layout(weight) == numerics::CodeLayout::Unsigned;
  return !is_unsigned || weight.facts().element_bits <= 7;
}

bool can_multiply_codes(const NumberFormat& x, const NumberFormat& weight, std::int64_t columns) {
  if (numerics::find_scaled_spec(x) == nullptr || !numerics::has_row_codes(x) ||
      !x.facts().is_row_local || !fits_signed_bytes(weight))
    return false;
  return code_blocks(x.facts(), weight.facts(), columns).has_value();
}

numerics::RowCodes read_weight(const NumberFormat& format, std::int64_t columns,
                               const Tensor& codes, const Tensor* local, const Tensor* scale,
                               const Tensor* zero) {
  const auto bytes_of = [](const Tensor* tensor) {
    if (tensor == nullptr) return std::vector<std::uint8_t>();
    const std::span<const std::uint8_t> bytes = tensor->data<std::uint8_t>();
    return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
  };
  const EncodedMatrix encoded{codes.dim(0), columns, bytes_of(&codes), bytes_of(local)};
  const auto floats_of = [](const Tensor* tensor) {
    return tensor == nullptr ? nullptr : tensor->data<float>().data();
  };
  numerics::RowCodes weight =
      numerics::read_codes(format, encoded, floats_of(scale), floats_of(zero));
  const std::int64_t width = weight.width;
  for (std::int64_t r = 0; r < weight.rows; ++r)
    for (std::int64_t b = 0; b < weight.blocks; ++b) {
      std::int32_t& taken_off = weight.zeros[static_cast<std::size_t>(r * weight.blocks + b)];
      if (taken_off == 0) continue;
      for (std::int64_t c = b * width; c < std::min(columns, (b + 1) * width); ++c) {
        std::int8_t& number = weight.numbers[static_cast<std::size_t>(r * columns + c)];
        const std::int32_t moved = number - taken_off;
        if (moved < -128 || moved > 127)
          fail("row {} of the weight: {} less its zero point is beyond 8 bits", r,
               format.facts().text);
        number = static_cast<std::int8_t>(moved);
      }
      taken_off = 0;
    }
  return weight;
}

}  // namespace lathe::ops
