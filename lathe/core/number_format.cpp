#include "lathe/core/number_format.h"

#include <algorithm>
#include <bit>

namespace lathe {

namespace {

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Blocks that share a scale in a matrix, whoever makes the scale.
std::int64_t num_blocks(const FormatFacts& facts, std::int64_t rows, std::int64_t columns) {
  if (rows == 0 || columns == 0) return 0;
  switch (facts.granularity) {
    case Granularity::Tensor:
      return 1;
    case Granularity::Row:
      return rows;
    case Granularity::Block:
      break;
  }
  const std::int64_t width = facts.block_columns > 0 ? facts.block_columns : columns;
  return ceil_divide(rows, facts.block_rows) * ceil_divide(columns, width);
}

}  // namespace

std::int64_t NumberFormat::num_given_scales(std::int64_t rows, std::int64_t columns) const {
  return facts().scale_source == ScaleSource::Given ? num_blocks(facts(), rows, columns) : 0;
}

double NumberFormat::bits_per_element(std::int64_t rows, std::int64_t columns) const {
  const FormatFacts& f = facts();
  const double elements = static_cast<double>(rows) * static_cast<double>(columns);
  if (f.scale_source == ScaleSource::None || elements == 0) return f.element_bits;
  const auto blocks = static_cast<double>(num_blocks(f, rows, columns));
  return f.element_bits + blocks * f.scale_bits / elements;
}

float nearest_power_of_two(float scale) {
  constexpr std::uint32_t kSquareRootOfTwo = 0x3504f3;  // the mantissa's bits
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(scale) & 0x7fffffff;
  std::uint32_t exponent = bits >> 23;
  if (exponent == 0 || bits > 0x7f800000) return 0x1p-126f;
  if ((bits & 0x7fffff) > kSquareRootOfTwo) ++exponent;
  return std::bit_cast<float>(std::min<std::uint32_t>(exponent, 254) << 23);
}

std::shared_ptr<const NumberFormat> parse_format(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view family = text.substr(0, colon);
  const std::string_view arguments =
      colon == text.npos ? std::string_view{} : text.substr(colon + 1);
  if (family == "float") {
    if (colon != text.npos) fail("format \"{}\": float takes no arguments", text);
    return nullptr;
  }
  const auto& registry = FormatRegistry::instance();
  const FormatFamily* found = registry.find(family);
  if (found == nullptr) {
    std::vector<std::string> known = registry.names();
    known.emplace_back("float");
    std::sort(known.begin(), known.end());
    throw unknown_name("format family", family, known);
  }
  return with_place(fmt::format("format \"{}\"", text), [&] { return found->parse(arguments); });
}

}  // namespace lathe
