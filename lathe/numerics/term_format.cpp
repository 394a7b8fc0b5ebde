#include "lathe/numerics/term_format.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/numerics/bit_stream.h"
#include "lathe/numerics/code_layout.h"
#include "lathe/numerics/codecs/float_bits.h"
#include "lathe/numerics/kernels/kernels.h"
#include "lathe/numerics/random_bits.h"

namespace lathe::numerics {

namespace {

// What one row's (or tensor's) values are made of.
struct Terms {
  std::array<float, kMostTerms> alphas{};
  float delta = 0;  // ternary only
};

class TermFormat final : public NumberFormat, public CodedElements {
 public:
  explicit TermFormat(TermSpec spec) : spec_(std::move(spec)) {
    check(spec_.terms >= 1 && spec_.terms <= kMostTerms, "one to eight terms");
    FormatFacts& facts = spec_.facts;
    facts.element_bits = is_ternary() ? 2 : spec_.terms;
    facts.scale_source = spec_.is_unit ? ScaleSource::None : ScaleSource::Local;
    facts.scale_bits = spec_.is_unit ? 0 : 32 * spec_.terms;
    facts.is_row_local = spec_.is_unit || facts.granularity != Granularity::Tensor;
    facts.reads_twice = !spec_.is_unit;
    facts.takes_mask = !spec_.is_unit && !is_ternary();
    // At scales of 1, 1/2, 1/4 ...: each term about halves what is left.
    facts.maximum = 2 - std::ldexp(1.0, 1 - spec_.terms);
    facts.minimum = -facts.maximum;
    facts.smallest_step = is_ternary() ? 1 : std::ldexp(2.0, 1 - spec_.terms);
    if (spec_.is_unit) {
      facts.pass_minimum = -1;
      facts.pass_maximum = 1;
    }
  }

  const FormatFacts& facts() const override { return spec_.facts; }
  const TermSpec& spec() const { return spec_; }
  CodeLayout code_layout() const override {
    return is_ternary() ? CodeLayout::TwosComplement : CodeLayout::Unsigned;
  }
  std::int64_t code_bytes(std::int64_t columns) const override {
    return bytes_for_bits(columns * spec_.facts.element_bits);
  }
  std::int64_t scale_bytes(std::int64_t columns) const override {
    return spec_.is_unit || columns == 0 ? 0 : 4 * spec_.terms;
  }

  void quantize(const QuantizeArgs& args) const override {
    const Kernels& table = kernels(args.isa);
    const std::int64_t count = args.rows * args.columns;
    const bool streams =
        args.x != args.y && should_stream(count * static_cast<std::int64_t>(sizeof(float)));
    for_runs(args, [&](std::int64_t at, std::int64_t length) {
      const Terms terms = terms_of(args, at, length, table);
      if (args.rounding == Rounding::Stochastic) {
        RandomBits random(args.seed);
        for (std::int64_t i = at; i < at + length; ++i) {
          const float x = args.x[i];
          const std::uint32_t code = encode_one(x, terms, args, i, random);
          args.y[i] = std::isnan(x) ? x : decode_one(code, terms);
        }
        return;
      }
      const RunArgs run{args.x + at, args.y + at, length, 1, 1, streams};
      if (is_ternary())
        table.ternary(terms.delta, terms.alphas[0], run);
      else
        table.sign_terms(terms.alphas.data(), spec_.terms, run);
    });
  }

  EncodedMatrix encode(const QuantizeArgs& args) const override {
    EncodedMatrix encoded{args.rows, args.columns, {}, {}};
    const std::int64_t row_bytes = code_bytes(args.columns);
    encoded.codes.resize(static_cast<std::size_t>(args.rows * row_bytes));
    for_runs(args, [&](std::int64_t at, std::int64_t length) {
      // The means are sums in a fixed order, so any path may take them.
      const Terms terms = terms_of(args, at, length, kernels(args.isa));
      if (!spec_.is_unit)
        for (int t = 0; t < spec_.terms; ++t)
          for (int byte = 0; byte < 4; ++byte)
            encoded.scales.push_back(static_cast<std::uint8_t>(
                bits_of(terms.alphas[static_cast<std::size_t>(t)]) >> (8 * byte)));
      RandomBits random(args.seed);
      for (std::int64_t row = at; row < at + length; row += args.columns) {
        BitWriter writer(encoded.codes.data() + row / args.columns * row_bytes);
        for (std::int64_t i = row; i < row + args.columns; ++i)
          writer.put(encode_one(args.x[i], terms, args, i, random), spec_.facts.element_bits);
      }
    });
    return encoded;
  }

  void decode(const EncodedMatrix& encoded, const float*, const float*, float* y) const override {
    const std::int64_t row_bytes = code_bytes(encoded.columns);
    const bool is_whole = spec_.facts.granularity == Granularity::Tensor;
    for (std::int64_t r = 0; r < encoded.rows && encoded.columns > 0; ++r) {
      Terms terms;
      terms.alphas.fill(1);
      if (!spec_.is_unit) {
        const std::uint8_t* bytes =
            encoded.scales.data() + (is_whole ? 0 : r * scale_bytes(encoded.columns));
        for (int t = 0; t < spec_.terms; ++t, bytes += 4)
          terms.alphas[static_cast<std::size_t>(t)] =
              float_of(std::uint32_t{bytes[0]} | std::uint32_t{bytes[1]} << 8 |
                       std::uint32_t{bytes[2]} << 16 | std::uint32_t{bytes[3]} << 24);
      }
      BitReader reader(encoded.codes.data() + r * row_bytes);
      for (std::int64_t c = 0; c < encoded.columns; ++c)
        y[r * encoded.columns + c] = decode_one(reader.take(spec_.facts.element_bits), terms);
    }
  }

 private:
  bool is_ternary() const { return spec_.threshold != 0; }

  // Calls `body` for every run of values that share their scales.
  template <typename Body>
  void for_runs(const QuantizeArgs& args, Body body) const {
    if (args.rows == 0 || args.columns == 0) return;
    const bool is_whole = spec_.is_unit || spec_.facts.granularity == Granularity::Tensor;
    const std::int64_t length = is_whole ? args.rows * args.columns : args.columns;
    for (std::int64_t at = 0; at < args.rows * args.columns; at += length) body(at, length);
  }

  // The terms of a run, of what a mask keeps of it.
  Terms terms_of(const QuantizeArgs& args, std::int64_t at, std::int64_t length,
                 const Kernels& table) const {
    if (args.mask == nullptr) return terms_of(args.x + at, length, length, table);
    // What is no number adds nothing to a sum.
    std::vector<float> kept(args.x + at, args.x + at + length);
    std::int64_t num_kept = length;
    for (std::int64_t i = 0; i < length; ++i) {
      if (args.mask[at + i] != 0) continue;
      kept[static_cast<std::size_t>(i)] = std::numeric_limits<float>::quiet_NaN();
      --num_kept;
    }
    return num_kept == 0 ? Terms{} : terms_of(kept.data(), length, num_kept, table);
  }

  Terms terms_of(const float* x, std::int64_t length, std::int64_t num_kept,
                 const Kernels& table) const {
    Terms terms;
    if (spec_.is_unit) {
      terms.alphas[0] = 1;
      return terms;
    }
    const auto number = static_cast<double>(num_kept);
    if (is_ternary()) {
      const double mean = table.magnitudes_above(x, length, -1).sum / number;
      terms.delta = static_cast<float>(spec_.threshold * mean);
      const MagnitudeSum above = table.magnitudes_above(x, length, terms.delta);
      if (above.count > 0)
        terms.alphas[0] = static_cast<float>(above.sum / static_cast<double>(above.count));
      return terms;
    }
    for (int t = 0; t < spec_.terms; ++t)
      terms.alphas[static_cast<std::size_t>(t)] =
          static_cast<float>(table.residual_magnitudes(x, length, terms.alphas.data(), t) / number);
    return terms;
  }

  // The lowest bit is the first term's: 1 for plus. Ternary numbers are two's complement.
  std::uint32_t encode_one(float x, const Terms& terms, const QuantizeArgs& args, std::int64_t i,
                           RandomBits& random) const {
    if (std::isnan(x)) return 0;
    const bool is_stochastic = args.rounding == Rounding::Stochastic;
    const float position =
        is_stochastic ? static_cast<float>(random.at(args.first_element + i) >> 8) * 0x1p-24f : 0;
    const float alpha = terms.alphas[0];
    if (is_ternary()) {
      const bool is_one =
          is_stochastic ? position < std::fabs(x) / alpha : std::fabs(x) > terms.delta;
      return is_one ? (x > 0 ? 1u : 3u) : 0u;
    }
    std::uint32_t code = 0;
    float residual = x;
    for (int t = 0; t < spec_.terms; ++t) {
      const float size = terms.alphas[static_cast<std::size_t>(t)];
      bool is_plus = residual >= 0;
      // The last sign is drawn so that its average is what was left, where that is possible.
      if (is_stochastic && t + 1 == spec_.terms) is_plus = position < (residual / size + 1) / 2;
      code |= (is_plus ? 1u : 0u) << t;
      residual -= is_plus ? size : -size;
    }
    return code;
  }
  float decode_one(std::uint32_t code, const Terms& terms) const {
    if (is_ternary()) return code == 0 ? 0.0f : code == 1 ? terms.alphas[0] : -terms.alphas[0];
    float sum = (code & 1) != 0 ? terms.alphas[0] : -terms.alphas[0];
    for (int t = 1; t < spec_.terms; ++t) {
      const float size = terms.alphas[static_cast<std::size_t>(t)];
      sum += (code >> t & 1) != 0 ? size : -size;
    }
    return sum;
  }

  TermSpec spec_;
};

}  // namespace

std::shared_ptr<const NumberFormat> make_term_format(TermSpec spec) {
  return std::make_shared<TermFormat>(std::move(spec));
}

const TermSpec* find_term_spec(const NumberFormat& format) {
  const auto* const found = dynamic_cast<const TermFormat*>(&format);
  return found == nullptr ? nullptr : &found->spec();
}

}  // namespace lathe::numerics
