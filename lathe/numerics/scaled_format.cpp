#include "lathe/numerics/scaled_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/numerics/bit_stream.h"
#include "lathe/numerics/code_layout.h"
#include "lathe/numerics/format_arguments.h"
#include "lathe/numerics/kernels/kernels.h"
#include "lathe/numerics/random_bits.h"

namespace lathe::numerics {

namespace {

constexpr float kSmallestScale = 0x1p-126f;

int element_bits(const ScaledSpec& spec) {
  if (const auto* integer = std::get_if<IntegerCodec>(&spec.codec)) return integer->bits;
  if (const auto* minifloat = std::get_if<MinifloatCodec>(&spec.codec)) return minifloat->bits();
  return spec.level_bits;
}

// The scale of one block: value = element * scale.
struct BlockScale {
  float scale = 1;
  float inverse = 1;  // 0: values are divided by the scale
  std::int64_t zero = 0;
  int exponent_code = 0;
};

// A block's place in a matrix.
struct Tile {
  std::int64_t row = 0, column = 0, rows = 0, columns = 0;
};

class ScaledFormat final : public NumberFormat, public CodedElements {
 public:
  explicit ScaledFormat(ScaledSpec spec)
      : spec_(std::move(spec)),
        bits_(element_bits(spec_)),
        table_(element_table(spec_.codec, spec_.element_step)) {
    FormatFacts& facts = spec_.facts;
    facts.element_bits = bits_;
    facts.reads_twice = facts.scale_source == ScaleSource::Local && facts.block_columns == 0;
    facts.is_row_local = facts.scale_source != ScaleSource::Local ||
                         (facts.granularity != Granularity::Tensor && facts.block_rows == 1);
    fill_range(facts);
  }

  const FormatFacts& facts() const override { return spec_.facts; }
  const ScaledSpec& spec() const { return spec_; }
  CodeLayout code_layout() const override {
    const auto* integer = std::get_if<IntegerCodec>(&spec_.codec);
    return integer != nullptr && integer->low < 0 ? CodeLayout::TwosComplement
                                                  : CodeLayout::Unsigned;
  }
  std::int64_t code_bytes(std::int64_t columns) const override {
    return bytes_for_bits(columns * bits_);
  }
  std::int64_t scale_bytes(std::int64_t columns) const override {
    if (spec_.facts.scale_source != ScaleSource::Local) return 0;
    return blocks_in_row(columns) * stored_scale_bytes();
  }

  void quantize(const QuantizeArgs& args) const override {
    if (args.rows == 0 || args.columns == 0) return;
    if (args.rounding == Rounding::NearestEven)
      quantize_by_kernel(args);
    else
      quantize_by_codec(args);
  }

  EncodedMatrix encode(const QuantizeArgs& args) const override {
    EncodedMatrix encoded{args.rows, args.columns, {}, {}};
    const std::int64_t row_bytes = code_bytes(args.columns);
    encoded.codes.resize(static_cast<std::size_t>(args.rows * row_bytes));
    std::vector<std::uint32_t> codes(static_cast<std::size_t>(args.rows * args.columns));
    std::int64_t index = 0;
    for_tiles(args.rows, args.columns, [&](const Tile& tile) {
      const BlockScale scale = scale_of(args, tile, index++);
      if (spec_.facts.scale_source == ScaleSource::Local) store_scale(scale, encoded.scales);
      RandomBits random(args.seed);
      visit(scale, [&](const auto& codec) {
        for_elements(tile, args.columns, [&](std::int64_t i) {
          const std::uint32_t bits = random_bits(random, args, i);
          codes[static_cast<std::size_t>(i)] =
              codec.encode(to_units(args.x[i], scale), args.rounding, bits);
        });
      });
    });
    for (std::int64_t r = 0; r < args.rows; ++r) {
      BitWriter writer(encoded.codes.data() + r * row_bytes);
      for (std::int64_t c = 0; c < args.columns; ++c)
        writer.put(codes[static_cast<std::size_t>(r * args.columns + c)], bits_);
    }
    return encoded;
  }

  void decode(const EncodedMatrix& encoded, const float* scales, const float* zeros,
              float* y) const override {
    const QuantizeArgs args{.rows = encoded.rows,
                            .columns = encoded.columns,
                            .x = nullptr,
                            .y = nullptr,
                            .scales = scales,
                            .zeros = zeros};
    if (has_signed_bytes()) return decode_by_kernel(encoded, args, y);
    const std::int64_t row_bytes = code_bytes(encoded.columns);
    std::int64_t index = 0;
    for_tiles(encoded.rows, encoded.columns, [&](const Tile& tile) {
      const BlockScale scale =
          spec_.facts.scale_source == ScaleSource::Local
              ? stored_scale(encoded.scales.data() + index * stored_scale_bytes())
              : scale_of(args, tile, index);
      ++index;
      visit(scale, [&](const auto& codec) {
        for (std::int64_t r = tile.row; r < tile.row + tile.rows; ++r) {
          BitReader reader(encoded.codes.data() + r * row_bytes);
          reader.skip(tile.column * bits_);
          for (std::int64_t c = tile.column; c < tile.column + tile.columns; ++c)
            y[r * encoded.columns + c] = from_units(codec.decode(reader.take(bits_)), scale);
        }
      });
    });
  }

 private:
  // Codes that are the elements themselves, in scales of rows or runs of them.
  bool has_signed_bytes() const {
    return bits_ == 8 && code_layout() == CodeLayout::TwosComplement &&
           spec_.facts.block_rows == 1 && !spec_.facts.has_zero_point &&
           (spec_.facts.granularity != Granularity::Tensor ||
            spec_.facts.scale_source != ScaleSource::Local);
  }

  // The step is a power of two, so it does not matter which of the two it multiplies.
  void decode_by_kernel(const EncodedMatrix& encoded, const QuantizeArgs& args, float* y) const {
    if (encoded.rows == 0 || encoded.columns == 0) return;
    const Kernels& table = kernels(best_isa());
    const std::int64_t blocks = blocks_in_row(encoded.columns);
    const bool is_whole = spec_.facts.granularity == Granularity::Tensor;
    const bool streams =
        should_stream(encoded.rows * encoded.columns * static_cast<std::int64_t>(sizeof(float)));
    std::vector<float> scales(static_cast<std::size_t>(blocks));
    for (std::int64_t r = 0; r < encoded.rows; ++r) {
      for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t index = is_whole ? 0 : r * blocks + b;
        const BlockScale scale =
            spec_.facts.scale_source == ScaleSource::Local
                ? stored_scale(encoded.scales.data() + index * stored_scale_bytes())
                : scale_of(args, {}, index);
        scales[static_cast<std::size_t>(b)] = scale.scale * spec_.element_step;
      }
      table.decode_bytes({.numbers = reinterpret_cast<const std::int8_t*>(encoded.codes.data()) +
                                     r * encoded.columns,
                          .scales = scales.data(),
                          .columns = encoded.columns,
                          .block = tile_columns(encoded.columns),
                          .y = y + r * encoded.columns,
                          .streams = streams});
    }
  }

  void fill_range(FormatFacts& facts) const {
    if (const auto* integer = std::get_if<IntegerCodec>(&spec_.codec)) {
      facts.maximum = static_cast<double>(integer->high) * spec_.element_step;
      facts.minimum = static_cast<double>(integer->low) * spec_.element_step;
      facts.smallest_step = spec_.element_step;
    } else if (const auto* minifloat = std::get_if<MinifloatCodec>(&spec_.codec)) {
      facts.maximum = minifloat->decode(minifloat->largest_code());
      facts.minimum = -facts.maximum;
      facts.smallest_step = minifloat->decode(1);
    } else {
      const float* levels = std::get<LevelCodec>(spec_.codec).levels;
      const int count = 1 << bits_;
      facts.maximum = levels[count - 1];
      facts.minimum = levels[0];
      facts.smallest_step = levels[1] - levels[0];
      for (int i = 1; i < count; ++i)
        facts.smallest_step = std::min(facts.smallest_step, double{levels[i]} - levels[i - 1]);
    }
    if (facts.scale_source != ScaleSource::Local) {
      facts.pass_minimum = facts.minimum;
      facts.pass_maximum = facts.maximum;
    }
  }

  std::int64_t tile_rows(std::int64_t rows) const {
    return spec_.facts.granularity == Granularity::Tensor ? rows : spec_.facts.block_rows;
  }
  std::int64_t tile_columns(std::int64_t columns) const {
    const bool is_block = spec_.facts.granularity == Granularity::Block;
    return is_block && spec_.facts.block_columns > 0 ? spec_.facts.block_columns : columns;
  }
  std::int64_t blocks_in_row(std::int64_t columns) const {
    const std::int64_t width = tile_columns(columns);
    return columns == 0 ? 0 : (columns + width - 1) / width;
  }

  template <typename Body>
  void for_tiles(std::int64_t rows, std::int64_t columns, Body body) const {
    if (rows == 0 || columns == 0) return;
    const std::int64_t height = tile_rows(rows);
    const std::int64_t width = tile_columns(columns);
    for (std::int64_t r = 0; r < rows; r += height)
      for (std::int64_t c = 0; c < columns; c += width)
        body(Tile{r, c, std::min(height, rows - r), std::min(width, columns - c)});
  }
  template <typename Body>
  static void for_elements(const Tile& tile, std::int64_t stride, Body body) {
    for (std::int64_t r = tile.row; r < tile.row + tile.rows; ++r)
      for (std::int64_t c = tile.column; c < tile.column + tile.columns; ++c) body(r * stride + c);
  }
  static std::uint32_t random_bits(RandomBits& random, const QuantizeArgs& args, std::int64_t i) {
    return args.rounding == Rounding::Stochastic ? random.at(args.first_element + i) : 0;
  }

  // The codec with the block's zero point.
  template <typename Body>
  void visit(const BlockScale& scale, Body body) const {
    if (const auto* integer = std::get_if<IntegerCodec>(&spec_.codec)) {
      IntegerCodec moved = *integer;
      moved.low -= scale.zero;
      moved.high -= scale.zero;
      moved.zero += scale.zero;
      body(moved);
    } else if (const auto* minifloat = std::get_if<MinifloatCodec>(&spec_.codec)) {
      body(*minifloat);
    } else {
      body(std::get<LevelCodec>(spec_.codec));
    }
  }

  float to_units(float value, const BlockScale& scale) const {
    const float scaled = scale.inverse == 0 ? value / scale.scale : value * scale.inverse;
    return scaled * (1 / spec_.element_step);
  }
  float from_units(float element, const BlockScale& scale) const {
    return (element * spec_.element_step) * scale.scale;
  }

  BlockScale scale_of(const QuantizeArgs& args, const Tile& tile, std::int64_t index) const {
    switch (spec_.rule) {
      case ScaleRule::Constant:
        return {};
      case ScaleRule::Given: {
        const bool has_zero = spec_.facts.has_zero_point && args.zeros != nullptr;
        const auto zero = has_zero ? std::llrint(args.zeros[index]) : 0;
        return {args.scales[index], 0, zero, 0};
      }
      case ScaleRule::GivenPowerOfTwo: {
        const float scale = nearest_power_of_two(args.scales[index]);
        return {scale, 1 / scale, 0, 0};
      }
      case ScaleRule::SharedExponent: {
        std::uint32_t largest = 0;
        for_elements(tile, args.columns, [&](std::int64_t i) {
          largest = std::max(largest, bits_of(args.x[i]) & ~kSignBit);
        });
        return exponent_scale(spec_.exponent.code(largest));
      }
      case ScaleRule::LargestMagnitude: {
        float largest = 0;
        for_elements(tile, args.columns, [&](std::int64_t i) {
          if (std::isfinite(args.x[i])) largest = std::max(largest, std::fabs(args.x[i]));
        });
        return magnitude_scale(largest);
      }
      case ScaleRule::Range: {
        float low = 0;
        float high = 0;
        for_elements(tile, args.columns, [&](std::int64_t i) {
          if (!std::isfinite(args.x[i])) return;
          low = std::min(low, args.x[i]);
          high = std::max(high, args.x[i]);
        });
        return range_scale(low, high);
      }
    }
    check(false, "a known scale rule");
    return {};
  }
  static BlockScale exponent_scale(int code) {
    return {SharedExponent::scale(code), SharedExponent::inverse(code), 0, code};
  }
  BlockScale magnitude_scale(float largest) const {
    const float scale = std::max(largest / spec_.divisor, kSmallestScale);
    return {scale, spec_.by_reciprocal ? 1 / scale : 0, 0, 0};
  }
  BlockScale range_scale(float low, float high) const {
    const auto codes = static_cast<float>(std::get<IntegerCodec>(spec_.codec).high);
    // Two quotients, because the range itself may be beyond float.
    const float scale = std::max(high / codes - low / codes, kSmallestScale);
    const float zero = std::clamp(std::nearbyint(-low / scale), 0.0f, codes);
    return {scale, 0, static_cast<std::int64_t>(zero), 0};
  }

  std::int64_t stored_scale_bytes() const { return spec_.facts.scale_bits / 8; }
  void store_scale(const BlockScale& scale, std::vector<std::uint8_t>& bytes) const {
    if (spec_.rule == ScaleRule::SharedExponent) {
      bytes.push_back(static_cast<std::uint8_t>(scale.exponent_code));
      return;
    }
    const auto put = [&](std::uint32_t word, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i, word >>= 8)
        bytes.push_back(static_cast<std::uint8_t>(word));
    };
    put(bits_of(scale.scale), 4);
    put(static_cast<std::uint32_t>(scale.zero), stored_scale_bytes() - 4);
  }
  BlockScale stored_scale(const std::uint8_t* bytes) const {
    if (spec_.rule == ScaleRule::SharedExponent) return exponent_scale(*bytes);
    const auto take = [&](const std::uint8_t* from, std::int64_t count) {
      std::uint32_t word = 0;
      for (std::int64_t i = 0; i < count; ++i) word |= std::uint32_t{from[i]} << (8 * i);
      return word;
    };
    return {float_of(take(bytes, 4)), 0, take(bytes + 4, stored_scale_bytes() - 4), 0};
  }

  void quantize_by_codec(const QuantizeArgs& args) const {
    std::int64_t index = 0;
    for_tiles(args.rows, args.columns, [&](const Tile& tile) {
      const BlockScale scale = scale_of(args, tile, index++);
      RandomBits random(args.seed);
      visit(scale, [&](const auto& codec) {
        for_elements(tile, args.columns, [&](std::int64_t i) {
          const float value = args.x[i];
          const std::uint32_t bits = random_bits(random, args, i);
          const std::uint32_t code = codec.encode(to_units(value, scale), args.rounding, bits);
          args.y[i] = std::isnan(value) ? value : from_units(codec.decode(code), scale);
        });
      });
    });
  }

  void quantize_by_kernel(const QuantizeArgs& args) const {
    const Kernels& table = kernels(args.isa);
    const std::int64_t count = args.rows * args.columns;
    const bool streams =
        args.x != args.y && should_stream(count * static_cast<std::int64_t>(sizeof(float)));
    const BlockArgs blocks{.x = args.x,
                           .y = args.y,
                           .rows = args.rows,
                           .columns = args.columns,
                           .block_rows = tile_rows(args.rows),
                           .block = tile_columns(args.columns),
                           .streams = streams};
    if (spec_.facts.scale_source == ScaleSource::Local &&
        (spec_.facts.granularity == Granularity::Tensor || spec_.rule == ScaleRule::Range))
      return quantize_tiles(args, table, streams);
    switch (spec_.rule) {
      case ScaleRule::Constant: {
        // A wide integer element has no step of its own.
        const float step =
            table_.kind == ElementTable::Kind::WideInteger ? spec_.element_step : 1.0f;
        table.round_run(table_, {args.x, args.y, count, step, 1 / step, streams});
        return;
      }
      case ScaleRule::Given:
      case ScaleRule::GivenPowerOfTwo:
        return quantize_given(args, table, blocks);
      case ScaleRule::SharedExponent:
        table.round_blocks(
            table_,
            {spec_.exponent.highest_exponent, static_cast<std::int32_t>(spec_.exponent.round_up),
             spec_.exponent.lowest_code},
            blocks);
        return;
      case ScaleRule::LargestMagnitude:
        table.round_scaled_blocks(table_, spec_.divisor, spec_.by_reciprocal, blocks);
        return;
      case ScaleRule::Range:
        break;
    }
    check(false, "a known scale rule");
  }

  void quantize_given(const QuantizeArgs& args, const Kernels& table, BlockArgs blocks) const {
    check(args.scales != nullptr, "scales for a format that is given them");
    if (spec_.facts.granularity == Granularity::Tensor) {
      blocks.columns *= blocks.rows;
      blocks.block = blocks.columns;
      blocks.rows = 1;
    }
    GivenScales given{args.scales, spec_.facts.has_zero_point ? args.zeros : nullptr, false};
    std::vector<float> powers;
    if (spec_.rule == ScaleRule::GivenPowerOfTwo) {
      const std::int64_t scales = num_given_scales(args.rows, args.columns);
      powers.assign(args.scales, args.scales + scales);
      for (float& scale : powers) scale = nearest_power_of_two(scale);
      given.scales = powers.data();
      given.is_power_of_two = true;
      check(spec_.element_step == 1, "no step besides a given scale");
    }
    table.round_given_blocks(table_, given, blocks);
  }

  // Scales of whole matrices, and scales with zero points.
  void quantize_tiles(const QuantizeArgs& args, const Kernels& table, bool streams) const {
    for_tiles(args.rows, args.columns, [&](const Tile& tile) {
      const BlockScale scale = scale_by_kernel(args, tile, table);
      ElementTable element = table_;
      element.low -= static_cast<float>(scale.zero);
      element.high -= static_cast<float>(scale.zero);
      for_runs(args, tile, [&](std::int64_t at, std::int64_t count) {
        table.round_run(element,
                        {args.x + at, args.y + at, count, scale.scale, scale.inverse, streams});
      });
    });
  }
  template <typename Body>
  static void for_runs(const QuantizeArgs& args, const Tile& tile, Body body) {
    if (tile.columns == args.columns)
      return body(tile.row * args.columns, tile.rows * args.columns);
    for (std::int64_t r = tile.row; r < tile.row + tile.rows; ++r)
      body(r * args.columns + tile.column, tile.columns);
  }
  BlockScale scale_by_kernel(const QuantizeArgs& args, const Tile& tile,
                             const Kernels& table) const {
    std::uint32_t largest = 0;
    float low = 0;
    float high = 0;
    for_runs(args, tile, [&](std::int64_t at, std::int64_t count) {
      if (spec_.rule == ScaleRule::SharedExponent)
        largest = std::max(largest, table.largest_magnitude(args.x + at, count));
      else if (spec_.rule == ScaleRule::LargestMagnitude)
        high = std::max(high, table.largest_finite(args.x + at, count));
      else
        table.finite_range(args.x + at, count, &low, &high);
    });
    if (spec_.rule == ScaleRule::SharedExponent)
      return exponent_scale(spec_.exponent.code(largest));
    return spec_.rule == ScaleRule::LargestMagnitude ? magnitude_scale(high)
                                                     : range_scale(low, high);
  }

  ScaledSpec spec_;
  int bits_;
  ElementTable table_;
};

}  // namespace

ElementTable element_table(const ElementCodec& codec, float element_step) {
  ElementTable table;
  if (const auto* integer = std::get_if<IntegerCodec>(&codec)) {
    // Between -2^22 and 2^22 steps a magnet of 1.5 * 2^23 steps leaves no room for a fraction. A
    // zero point moves the ends by as much as they are apart.
    const bool is_narrow = integer->bits <= 21;
    table.kind = is_narrow ? ElementTable::Kind::Integer : ElementTable::Kind::WideInteger;
    const float step = is_narrow ? element_step : 1;
    table.low = static_cast<float>(integer->low) * step;
    table.high = static_cast<float>(integer->high) * step;
    table.magnet = 0x1.8p23f * step;
  } else if (const auto* minifloat = std::get_if<MinifloatCodec>(&codec)) {
    const auto word = [](float value) { return static_cast<std::int32_t>(bits_of(value)); };
    table.high = minifloat->decode(minifloat->largest_code());
    table.low = -table.high;
    table.cut_bits = 23 - minifloat->mantissa_bits;
    table.smallest_normal = word(power_of_two(minifloat->lowest_exponent()));
    table.magnet_offset = (table.cut_bits << 23) + 0x400000;
    table.subnormal_magnet = power_of_two(minifloat->lowest_exponent() + table.cut_bits);
    table.largest = word(table.high);
    table.beyond = word(minifloat->decode(minifloat->overflow_code()));
    // The binade that a number rounds up into has no larger magnet than its own.
    const bool has_magnets =
        std::max(minifloat->highest_exponent(), minifloat->lowest_exponent()) + table.cut_bits <=
        127;
    table.kind = has_magnets && table.beyond == table.largest ? ElementTable::Kind::Minifloat
                                                              : ElementTable::Kind::WideMinifloat;
  } else {
    table.kind = ElementTable::Kind::Levels;
    table.levels = std::get<LevelCodec>(codec).levels;
    table.thresholds = std::get<LevelCodec>(codec).thresholds;
  }
  return table;
}

void use_given_power_of_two(ScaledSpec& spec, FormatArguments& arguments) {
  spec.rule = ScaleRule::GivenPowerOfTwo;
  spec.facts.scale_source = ScaleSource::Given;
  spec.facts.is_scale_power_of_two = true;
  spec.facts.scale_bits = 8;
  if (!arguments.flag("channel")) return;
  spec.facts.granularity = Granularity::Row;
  spec.facts.text += ",channel";
}

void use_shared_exponent(ScaledSpec& spec, SharedExponent exponent, std::int64_t block_rows,
                         std::int64_t block_columns) {
  spec.rule = ScaleRule::SharedExponent;
  spec.exponent = exponent;
  spec.facts.scale_source = ScaleSource::Local;
  spec.facts.granularity = Granularity::Block;
  spec.facts.block_rows = block_rows;
  spec.facts.block_columns = block_columns;
  spec.facts.scale_bits = 8;
}

int lowest_scale_code(const MinifloatCodec& codec) {
  // The scale 2^(code - 127) times the smallest step must be at least 2^-149.
  return std::max(0, codec.mantissa_bits - codec.lowest_exponent() - 22);
}

std::shared_ptr<const NumberFormat> make_scaled_format(ScaledSpec spec) {
  return std::make_shared<ScaledFormat>(std::move(spec));
}

const ScaledSpec* find_scaled_spec(const NumberFormat& format) {
  const auto* const scaled = dynamic_cast<const ScaledFormat*>(&format);
  return scaled == nullptr ? nullptr : &scaled->spec();
}

}  // namespace lathe::numerics
