// MASE's quantizers whose blocks share an exponent (mase/blocks.cpp), as methods for blocks.inl.h.
// Included inside a namespace by the kernel files, after mase_elements.inl.h.
//
// NaN does not count for a block's largest magnitude, infinity does. A block of zeros borrows
// another block's, but all methods except MaseBlockLog give zeros whatever the exponent.

inline Ints number_magnitude_bits(Floats a) {
  const Ints bits = magnitude_bits(a);
  return bits <= broadcast(0x7f800000) ? bits : broadcast(0);
}

struct MaseBlockMethod {
  static constexpr bool kKnowsItsBand = false;
  LATHE_KERNEL_INLINE static Ints magnitude(Floats a) { return number_magnitude_bits(a); }
};

struct MaseBlockFp : MaseBlockMethod {
  Floats most;
  Ints low, high, mantissa_bits;
  explicit MaseBlockFp(const MaseTable& table)
      : most(broadcast(static_cast<float>((1 << table.mantissa_bits) - 1))),
        low(broadcast(table.lowest + 127)),
        high(broadcast(table.highest + 127)),
        mantissa_bits(broadcast(table.mantissa_bits)) {}
  LATHE_KERNEL_INLINE Scales scales(Ints largest) const {
    // The field of one step's power of two. Where that is below 1, all values pass through.
    const Ints exponent = min(max(ceil_log2_field(largest), low), high);
    const Ints code = max(exponent - mantissa_bits, broadcast(1));
    return {(Floats)(code << 23), (Floats)((broadcast(254) - code) << 23)};
  }
  LATHE_KERNEL_INLINE Floats round(Floats value, const Scales& scales) const {
    const Floats magnitude = magnitude_of(value);
    const Floats units = (magnitude + broadcast(1e-9f)) * scales.inverse;
    // MASE puts tiles together by adding them to zeros, which turns -0 into 0.
    return pass_small(value, magnitude, to_whole(min(most, units)) * scales.scale) +
           broadcast(0.0f);
  }
};

template <bool kWide>
struct MaseBlockMinifloat : MaseBlockMethod {
  MaseMinifloatParts parts;
  Ints largest_bias, span;
  explicit MaseBlockMinifloat(const MaseTable& table)
      : parts(table),
        largest_bias(broadcast(table.largest_bias)),
        span(broadcast(table.highest - 1)) {}
  LATHE_KERNEL_INLINE Scales scales(Ints largest) const {
    const Ints exponent = floor_log2_field(largest) - broadcast(127);
    const Ints bias = min(max(exponent, broadcast(0)), largest_bias);
    const Ints above_low = broadcast(128) - bias;
    return {(Floats)above_low, (Floats)(above_low + span)};
  }
  LATHE_KERNEL_INLINE Floats round(Floats value, const Scales& scales) const {
    return parts.with_leading_one<kWide>(value, (Ints)scales.scale, (Ints)scales.inverse) +
           broadcast(0.0f);
  }
};

// 2^(code - 127) for codes up to 254, subnormal below 1 and at last 0.
LATHE_KERNEL_INLINE Floats any_power_of_code(Ints code) {
  const Ints places = min(max(-code, broadcast(0)), broadcast(31));
  return (Floats)(code > broadcast(0) ? code << 23 : broadcast(0x00400000) >> places);
}

struct MaseBlockLog : MaseBlockMethod {
  static constexpr bool kKnowsItsBand = true;
  // The blocks side by side, one of which lends its maximum to blocks of zeros; 0: not looked up.
  const Band* band = nullptr;
  mutable std::int32_t lent = 0;
  Ints largest_code, largest_bias;
  explicit MaseBlockLog(const MaseTable& table)
      : largest_code(broadcast(table.highest)), largest_bias(broadcast(table.largest_bias)) {}

  void start(const Band& own) {
    band = &own;
    lent = own.x == own.y ? smallest_maximum(own) : 0;  // before values are overwritten
  }
  LATHE_KERNEL_INLINE Scales scales(Ints largest) const {
    const Ints is_zero = largest == broadcast(0);
    if (any(is_zero)) {
      if (lent == 0) lent = smallest_maximum(*band);
      largest = is_zero ? broadcast(lent) : largest;
    }
    const Ints exponent = ceil_log2_field(unbounded_bits(largest)) - broadcast(127);
    const Ints bias = min(max(largest_code - exponent, broadcast(0)), largest_bias);
    const Ints low = broadcast(127) - bias;
    return {(Floats)low, broadcast(0.1f) * any_power_of_code(low)};
  }
  LATHE_KERNEL_INLINE Floats round(Floats value, const Scales& scales) const {
    const Ints low = (Ints)scales.scale;
    const Floats offset = scales.inverse;
    const Ints high = min(low + largest_code, broadcast(254));
    const Ints exponent = nearest_log2_field(unbounded_bits((Ints)(magnitude_of(value) + offset)));
    const Ints code = min(max(exponent, low), high);
    const Floats moved = value + offset;
    const Floats power = (Floats)((Ints)any_power_of_code(code) | sign_bits(moved));
    return (magnitude_of(moved) > broadcast(0.0f) ? power : moved) + broadcast(0.0f);
  }

 private:
  // The smallest that is not 0, or 1.
  __attribute__((noinline)) static std::int32_t smallest_maximum(const Band& band) {
    std::int32_t smallest = 0;
    for (std::int64_t at = 0; at < band.count; at += band.block) {
      const std::int64_t end = at + band.block < band.count ? at + band.block : band.count;
      Ints largest = broadcast(0);
      for (std::int64_t r = 0; r < band.rows; ++r) {
        const float* row = band.x + r * band.stride;
        std::int64_t i = at;
        for (; i + kWidth <= end; i += kWidth) largest = max(largest, magnitude(load(row + i)));
        if (i < end) largest = max(largest, magnitude(load(row + i, end - i)));
      }
      const std::int32_t maximum = largest_everywhere(largest)[0];
      if (maximum > 0 && (smallest == 0 || maximum < smallest)) smallest = maximum;
    }
    return smallest > 0 ? smallest : 0x3f800000;
  }
};

struct MaseMxint : MaseBlockMethod {
  Floats low, high, quarter, step;
  explicit MaseMxint(const MaseTable& table)
      : low(broadcast(-static_cast<float>(1 << table.mantissa_bits))),
        high(broadcast(static_cast<float>((1 << table.mantissa_bits) - 1))),
        quarter(broadcast(static_cast<float>(1 << table.mantissa_bits) / 2)),
        step(broadcast(2 / static_cast<float>(1 << table.mantissa_bits))) {}
  LATHE_KERNEL_INLINE Scales scales(Ints largest) const {
    // Half of MASE's scale, which may be 2^128.
    const Ints code = max(ceil_log2_field(largest), broadcast(1)) - broadcast(1);
    return {power_of_code(code), power_of_code(broadcast(254) - code)};
  }
  LATHE_KERNEL_INLINE Floats round(Floats value, const Scales& scales) const {
    const Floats units = value * scales.inverse * quarter;
    const Floats magnet = broadcast(0x1.8p23f);
    const Floats whole = (min(high, max(low, units)) + magnet) - magnet;
    return (Floats)((Ints)whole | sign_bits(value)) * step * scales.scale;  // -0 is a number
  }
};

void mase_blocks(const MaseTable& table, const BlockArgs& args) {
  switch (table.kind) {
    case MaseTable::Kind::BlockFp:
      return round_matrix(MaseBlockFp(table), args);
    case MaseTable::Kind::BlockMinifloat:
      // A bias of 0 leaves the largest exponents.
      return table.highest > 126 ? round_matrix(MaseBlockMinifloat<true>(table), args)
                                 : round_matrix(MaseBlockMinifloat<false>(table), args);
    case MaseTable::Kind::BlockLog:
      return round_matrix(MaseBlockLog(table), args);
    default:
      return round_matrix(MaseMxint(table), args);
  }
}
