// MASE's quantizers whose blocks share an exponent (mase/blocks.cpp), as methods for blocks.inl.h.
// Included inside a namespace by the kernel files, after mase_elements.inl.h.
//
// NaN does not count for a block's largest magnitude, infinity does. A block of zeros borrows
// another block's, but all methods except MaseBlockLog give zeros whatever the exponent.

inline Ints number_magnitude_bits(Floats a) {
  return (Ints)max((Floats)magnitude_bits(a), broadcast(0.0f));
}

struct MaseBlockMethod {
  static constexpr bool kKnowsItsBand = false;
  static constexpr bool kLooksAhead = true;
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
    const Ints exponent = min(max(ceil_log2_bits(largest) >> 23, low), high);
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
  // Makes an exponent a number that rounds to the last one before the next power of two, whether
  // steps are those of the exponent or, below the lowest, of the next: 0.625 of the latter before.
  Ints below_next;
  // Up to here 1e-9 lifts no number by half a step.
  static constexpr std::int32_t kMostQuickBias = 14;
  explicit MaseBlockMinifloat(const MaseTable& table)
      : parts(table),
        largest_bias(broadcast(table.largest_bias)),
        span(broadcast((table.highest - 1) << 23)),
        below_next(broadcast((1 << 23) - (5 << (21 - table.mantissa_bits)))) {}
  LATHE_KERNEL_INLINE Scales scales(Ints largest) const {
    const Ints exponent = (floor_log2_bits(largest) >> 23) - broadcast(127);
    const Ints bias = min(max(exponent, broadcast(0)), largest_bias);
    const Ints above_low = (broadcast(128) - bias) << 23;
    const Ints is_quick = bias <= broadcast(kMostQuickBias);
    return {(Floats)above_low, (Floats)(above_low + span),
            (Floats)(above_low + parts.magnet_offset), (Floats)(broadcast(kNoDoubt) & is_quick)};
  }
  LATHE_KERNEL_INLINE Floats round(Floats value, const Scales& scales) const {
    const Ints above_low = (Ints)scales.scale;
    const Ints high = (Ints)scales.inverse;
    if constexpr (!kWide) {
      const Floats magnitude = magnitude_of(value);
      const Ints nearby = quick_floor_log2_bits((Ints)(magnitude + broadcast(1e-9f)));
      if (!any_without(nearby, (Ints)scales.fourth)) [[likely]] {
        const Ints below_low = above_low - broadcast(1 << 23);
        const Ints exponent = min(max(nearby, below_low), high) & broadcast(0x7f800000);
        const Floats bounded = min((Floats)(exponent + below_next), magnitude);
        const Floats magnet = (Floats)max(exponent + parts.magnet_offset, (Ints)scales.third);
        return pass_small(value, magnitude, (bounded + magnet) - magnet) + broadcast(0.0f);
      }
    }
    return parts.with_leading_one<kWide>(value, above_low, high) + broadcast(0.0f);
  }
};

// The bits of positive numbers as if exponents had no lower end: a subnormal number gets an
// exponent field below 1, and a leading one.
inline Ints unbounded_bits(Ints bits) {
  const Ints subnormal = (Ints)to_floats(bits) - broadcast(149 << 23);
  return bits < broadcast(0x00800000) ? subnormal : bits;
}

inline Floats inverse_power(Floats power) {
  return (Floats)(broadcast(254 << 23) - (Ints)power);
}

// Blocks with a tenth of their lowest power of two among the subnormal numbers, or below them, are
// computed in units of 2^-64, because such numbers are slow, and some no numbers. The maxima are at
// most 16, so nothing is beyond float, and sums below 2^-125 are exact in both units.
struct MaseBlockLog : MaseBlockMethod {
  static constexpr bool kKnowsItsBand = true;
  // The blocks side by side, one of which lends its maximum to blocks of zeros; 0: not looked up.
  const Band* band = nullptr;
  mutable std::int32_t lent = 0;
  Ints largest_code, largest_bias, span;
  explicit MaseBlockLog(const MaseTable& table)
      : largest_code(broadcast(table.highest)),
        largest_bias(broadcast(table.largest_bias)),
        span(broadcast(table.highest << 23)) {}

  void start(const Band& own) {
    band = &own;
    lent = own.x == own.y ? smallest_maximum(own) : 0;  // before values are overwritten
  }
  LATHE_KERNEL_INLINE Scales scales(Ints largest) const {
    const Ints is_zero = largest == broadcast(0);
    if (any_without(largest, broadcast(-1))) {
      if (lent == 0) lent = smallest_maximum(*band);
      largest = is_zero ? broadcast(lent) : largest;
    }
    const Ints exponent = (ceil_log2_bits(unbounded_bits(largest)) >> 23) - broadcast(127);
    const Ints bias = min(max(largest_code - exponent, broadcast(0)), largest_bias);
    const Ints is_tiny = bias > broadcast(122);
    const Floats unit = is_tiny ? broadcast(0x1p64f) : broadcast(1.0f);
    const Ints low = ((Ints)unit >> 23) - bias;
    // Subnormal numbers are multiples of 2^-149, which this magnet rounds to in their unit. What is
    // so low that it is lifted here becomes 0.
    const Floats magnet = is_tiny ? broadcast(0x1p-62f) : broadcast(0.0f);
    const Floats tenth = broadcast(0.1f) * (Floats)(max(low, broadcast(5)) << 23);
    return {(tenth + magnet) - magnet, (Floats)(low << 23), unit, (Floats)((low << 23) + span)};
  }
  LATHE_KERNEL_INLINE Floats round(Floats value, const Scales& scales) const {
    const Ints low = (Ints)scales.inverse;
    const Ints high = (Ints)scales.fourth;
    const Floats unit = scales.third;
    const Floats scaled = value * unit;
    const Ints bits = (Ints)(magnitude_of(scaled) + scales.scale);
    Ints nearby = quick_nearest_log2_bits(bits);
    if (any_without(nearby, broadcast(kNoDoubt))) [[unlikely]]
      nearby = nearest_log2_bits(bits, (Ints)unit);
    const Ints exponent = min(max(nearby, low), high) & broadcast(0x7f800000);
    const Floats moved = scaled + scales.scale;
    const Floats rounded = unless_zero_or_nan(moved, (Floats)(exponent | sign_bits(moved)));
    return rounded * inverse_power(unit) + broadcast(0.0f);
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
  static constexpr bool kLooksAhead = false;  // so few steps that it would cost more
  Floats low, high, quarter, step;
  explicit MaseMxint(const MaseTable& table)
      : low(broadcast(-static_cast<float>(1 << table.mantissa_bits))),
        high(broadcast(static_cast<float>((1 << table.mantissa_bits) - 1))),
        quarter(broadcast(static_cast<float>(1 << table.mantissa_bits) / 2)),
        step(broadcast(2 / static_cast<float>(1 << table.mantissa_bits))) {}
  LATHE_KERNEL_INLINE Scales scales(Ints largest) const {
    // Half of MASE's scale, which may be 2^128.
    const Ints code = max(ceil_log2_bits(largest) >> 23, broadcast(1)) - broadcast(1);
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
      // Lowest exponents down to -126 are fine, because one more is the least that has a magnet.
      return has_narrow_exponents(table) ? round_matrix(MaseBlockMinifloat<false>(table), args)
                                         : round_matrix(MaseBlockMinifloat<true>(table), args);
    case MaseTable::Kind::BlockLog:
      return round_matrix(MaseBlockLog(table), args);
    default:
      return round_matrix(MaseMxint(table), args);
  }
}
