#include "lathe/numerics/row_codes.h"

#include <cmath>

#include "lathe/core/error.h"
#include "lathe/numerics/bit_stream.h"
#include "lathe/numerics/code_layout.h"
#include "lathe/numerics/scaled_format.h"
#include "lathe/numerics/term_format.h"

namespace lathe::numerics {

namespace {

constexpr std::int32_t kUnsignedOffset = 128;

struct BlockWorth {
  float scale = 1;
  std::int32_t zero = 0;
};

std::uint32_t word_at(const std::uint8_t* bytes, std::int64_t count) {
  std::uint32_t word = 0;
  for (std::int64_t i = 0; i < count; ++i) word |= std::uint32_t{bytes[i]} << (8 * i);
  return word;
}

BlockWorth stored_worth(const ScaledSpec& spec, const std::uint8_t* bytes) {
  if (spec.rule == ScaleRule::SharedExponent) return {SharedExponent::scale(*bytes), 0};
  const std::int64_t zero_bytes = spec.facts.scale_bits / 8 - 4;
  return {float_of(word_at(bytes, 4)), static_cast<std::int32_t>(word_at(bytes + 4, zero_bytes))};
}

BlockWorth given_worth(const ScaledSpec& spec, const float* scales, const float* zeros,
                       std::int64_t index) {
  if (spec.rule == ScaleRule::Constant) return {};
  if (spec.rule == ScaleRule::GivenPowerOfTwo) return {nearest_power_of_two(scales[index]), 0};
  const bool has_zero = spec.facts.has_zero_point && zeros != nullptr;
  return {scales[index], has_zero ? static_cast<std::int32_t>(std::lrint(zeros[index])) : 0};
}

// Ternary numbers are two's complement; a sign alone is 1 for plus.
std::int8_t term_number(const TermSpec& spec, std::uint32_t code) {
  if (spec.threshold != 0) return code == 0 ? 0 : code == 1 ? 1 : -1;
  return code != 0 ? 1 : -1;
}

void read_numbers(const EncodedMatrix& encoded, std::int64_t row_bytes, int bits, auto number,
                  std::vector<std::int8_t>& numbers) {
  numbers.resize(static_cast<std::size_t>(encoded.rows * encoded.columns));
  for (std::int64_t r = 0; r < encoded.rows; ++r) {
    BitReader reader(encoded.codes.data() + r * row_bytes);
    std::int8_t* const row = numbers.data() + r * encoded.columns;
    for (std::int64_t c = 0; c < encoded.columns; ++c) row[c] = number(reader.take(bits));
  }
}

}  // namespace

bool has_row_codes(const NumberFormat& format) {
  if (const TermSpec* const term = find_term_spec(format)) return term->terms == 1;
  const ScaledSpec* const spec = find_scaled_spec(format);
  if (spec == nullptr || spec->facts.block_rows != 1) return false;
  const auto* const integer = std::get_if<IntegerCodec>(&spec->codec);
  return integer != nullptr && integer->bits <= 8;
}

std::int64_t blocks_of_row(const FormatFacts& facts, std::int64_t columns) {
  if (facts.granularity != Granularity::Block || facts.block_columns == 0) return 1;
  return (columns + facts.block_columns - 1) / facts.block_columns;
}

RowCodes read_codes(const NumberFormat& format, const EncodedMatrix& encoded, const float* scales,
                    const float* zeros) {
  check(has_row_codes(format), "a format with row codes");
  const FormatFacts& facts = format.facts();
  RowCodes result;
  result.rows = encoded.rows;
  result.columns = encoded.columns;
  result.blocks = blocks_of_row(facts, encoded.columns);
  result.width = encoded.columns;
  if (result.blocks > 1) result.width = facts.block_columns;
  const std::int64_t row_bytes = format.code_bytes(encoded.columns);
  const TermSpec* const term = find_term_spec(format);
  const ScaledSpec* const spec = find_scaled_spec(format);
  const CodeLayout layout = code_layout(format);
  const bool is_unsigned = term == nullptr && layout == CodeLayout::Unsigned;
  const std::int32_t offset = is_unsigned ? kUnsignedOffset : 0;
  const int bits = facts.element_bits;
  if (term == nullptr && bits == 8 && !is_unsigned)  // the codes are the numbers
    result.numbers.assign(
        reinterpret_cast<const std::int8_t*>(encoded.codes.data()),
        reinterpret_cast<const std::int8_t*>(encoded.codes.data()) + encoded.rows * row_bytes);
  else if (term != nullptr)
    read_numbers(
        encoded, row_bytes, bits, [&](std::uint32_t code) { return term_number(*term, code); },
        result.numbers);
  else
    read_numbers(
        encoded, row_bytes, bits,
        [&](std::uint32_t code) {
          return static_cast<std::int8_t>(code_number(code, bits, layout) - offset);
        },
        result.numbers);

  const bool is_whole = facts.granularity == Granularity::Tensor;
  const std::int64_t stored_bytes = facts.scale_bits / 8;
  result.scales.reserve(static_cast<std::size_t>(encoded.rows * result.blocks));
  result.zeros.reserve(result.scales.capacity());
  for (std::int64_t r = 0; r < encoded.rows; ++r)
    for (std::int64_t b = 0; b < result.blocks; ++b) {
      const std::int64_t index = is_whole ? 0 : r * result.blocks + b;
      BlockWorth worth;
      if (term != nullptr) {
        if (!term->is_unit) worth.scale = float_of(word_at(encoded.scales.data() + 4 * index, 4));
      } else {
        worth = facts.scale_source == ScaleSource::Local
                    ? stored_worth(*spec, encoded.scales.data() + index * stored_bytes)
                    : given_worth(*spec, scales, zeros, index);
        worth.scale *= spec->element_step;
      }
      result.scales.push_back(worth.scale);
      result.zeros.push_back(worth.zero - offset);
    }
  return result;
}

}  // namespace lathe::numerics
