#include "lathe/numerics/round_matrix.h"

#include <cmath>

#include "lathe/numerics/bit_stream.h"
#include "lathe/numerics/code_layout.h"
#include "lathe/numerics/codecs/float_bits.h"

namespace lathe::numerics {
namespace {

// Local scales as numbers: an exponent in a byte, or floats before a zero point.
void read_local_scales(const FormatFacts& facts, const std::vector<std::uint8_t>& bytes,
                       RoundedMatrix& result) {
  if (facts.scale_bits == 8) {
    result.scale_codes = bytes;
    for (const std::uint8_t code : bytes)
      result.scales.push_back(code == 255 ? NAN : power_of_two(code - 127));
    return;
  }
  const auto size = static_cast<std::size_t>(facts.scale_bits / 8);
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    std::size_t byte = 0;
    const auto word = [&](std::size_t count) {
      std::uint32_t bits = 0;
      for (std::size_t i = 0; i < count; ++i, ++byte)
        bits |= std::uint32_t{bytes[at + byte]} << (8 * i);
      return bits;
    };
    while (byte + 4 <= size) result.scales.push_back(float_of(word(4)));
    if (byte < size) result.zeros.push_back(static_cast<float>(word(size - byte)));
  }
}

}  // namespace

RoundedMatrix round_matrix(const NumberFormat& format, const CalibrationValues& matrix,
                           const RoundMatrixOptions& options) {
  const FormatFacts& facts = format.facts();
  RoundedMatrix result;
  if (facts.scale_source == ScaleSource::Given) {
    const auto count =
        static_cast<std::size_t>(format.num_given_scales(matrix.rows, matrix.columns));
    const std::vector<ScaleAndZero> chosen = options.scale
                                                 ? std::vector<ScaleAndZero>(count, *options.scale)
                                                 : scales_by_range(format, matrix);
    for (const ScaleAndZero& each : chosen) {
      result.scales.push_back(each.scale);
      if (facts.has_zero_point) result.zeros.push_back(each.zero);
    }
  }
  result.values.resize(matrix.values.size());
  const QuantizeArgs args{.rows = matrix.rows,
                          .columns = matrix.columns,
                          .x = matrix.values.data(),
                          .y = result.values.data(),
                          .scales = result.scales.empty() ? nullptr : result.scales.data(),
                          .zeros = result.zeros.empty() ? nullptr : result.zeros.data(),
                          .rounding = options.rounding,
                          .seed = options.seed,
                          .isa = options.isa};
  format.quantize(args);
  if (code_layout(format) == CodeLayout::None) return result;
  const EncodedMatrix encoded = format.encode(args);
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    BitReader reader(encoded.codes.data() + r * format.code_bytes(matrix.columns));
    for (std::int64_t c = 0; c < matrix.columns; ++c)
      result.patterns.push_back(reader.take(facts.element_bits));
  }
  if (facts.scale_source == ScaleSource::Local) read_local_scales(facts, encoded.scales, result);
  return result;
}

}  // namespace lathe::numerics
