#include "lathe/numerics/number_line.h"

#include <algorithm>

#include "lathe/numerics/bit_stream.h"
#include "lathe/numerics/codecs/float_bits.h"

namespace lathe::numerics {

namespace {

// A local scale of 1 as it is stored: an exponent code, or floats before a zero point.
std::vector<std::uint8_t> unit_scale(const FormatFacts& facts) {
  if (facts.scale_bits < 32) return {127};
  std::vector<std::uint8_t> bytes;
  float scale = 1;
  for (int bits = facts.scale_bits; bits >= 32; bits -= 32, scale /= 2)
    for (int byte = 0; byte < 4; ++byte)
      bytes.push_back(static_cast<std::uint8_t>(bits_of(scale) >> (8 * byte)));
  bytes.resize(static_cast<std::size_t>(facts.scale_bits / 8));
  return bytes;
}

// What becomes of the 65,536 numbers whose lower sixteen bits are 0, for formats without codes.
std::vector<float> sampled_numbers(const NumberFormat& format) {
  std::vector<float> numbers;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) numbers.push_back(float_of(upper << 16));
  const auto rows = static_cast<std::int64_t>(numbers.size());
  const float one = 1;
  format.quantize({.rows = rows,
                   .columns = 1,
                   .x = numbers.data(),
                   .y = numbers.data(),
                   .scales = &one,
                   .zeros = nullptr});
  // Some quantizers of MASE pass tiny values through, which are no numbers of theirs.
  const auto least = static_cast<float>(format.facts().smallest_step);
  std::erase_if(numbers,
                [&](float number) { return number != 0 && number < least && number > -least; });
  return numbers;
}

}  // namespace

std::vector<double> representable_numbers(const NumberFormat& format) {
  const FormatFacts& facts = format.facts();
  if (facts.element_bits > 16) return {};
  std::vector<float> values;
  if (format.code_bytes(8) != facts.element_bits) {
    if (facts.scale_source == ScaleSource::None) values = sampled_numbers(format);
  } else {
    const std::uint32_t count = std::uint32_t{1} << facts.element_bits;
    EncodedMatrix codes{1, count, {}, {}};
    codes.codes.resize(static_cast<std::size_t>(format.code_bytes(count)));
    BitWriter writer(codes.codes.data());
    for (std::uint32_t code = 0; code < count; ++code) writer.put(code, facts.element_bits);
    if (facts.scale_source == ScaleSource::Local) {
      const std::vector<std::uint8_t> scale = unit_scale(facts);
      while (std::ssize(codes.scales) < format.scale_bytes(count))
        codes.scales.insert(codes.scales.end(), scale.begin(), scale.end());
    }
    const std::vector<float> scales(static_cast<std::size_t>(format.num_given_scales(1, count)), 1);
    values.resize(count);
    format.decode(codes, scales.data(), nullptr, values.data());
  }
  std::vector<double> numbers;
  for (const float value : values)
    // A symmetric integer's lowest code can be read but is never written.
    if (value >= facts.minimum && value <= facts.maximum)
      numbers.push_back(value == 0 ? 0.0 : double{value});
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

}  // namespace lathe::numerics
