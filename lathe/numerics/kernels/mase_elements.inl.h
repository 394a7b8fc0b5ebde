// MASE's quantizers (mase/quantizers.h) for a vector of values. Included inside a namespace by the
// kernel files, after log2.inl.h.
//
// Whole numbers between 0 and 2^23 are rounded to by adding 2^23 and subtracting it again. Limits
// that are whole themselves can be applied before.

inline Ints sign_bits(Floats a) {
  return (Ints)a & broadcast(INT32_MIN);
}
inline Floats magnitude_of(Floats a) {
  return (Floats)((Ints)a & broadcast(INT32_MAX));
}
inline Floats to_whole(Floats a) {
  return (a + broadcast(0x1p23f)) - broadcast(0x1p23f);
}
// What isclose(|x|, 0) lets through, and the sign, for results that have none yet.
inline Floats pass_small(Floats value, Floats magnitude, Floats result) {
  const Floats with_sign = (Floats)((Ints)result | sign_bits(value));
  return magnitude <= broadcast(1e-8f) ? value + broadcast(0.0f) : with_sign;
}

template <bool kFloor>
struct MaseIntegerElement {
  Floats steps_per_one, step, low, high;
  explicit MaseIntegerElement(const MaseTable& table)
      : steps_per_one(broadcast(table.steps_per_one)),
        step(broadcast(1 / table.steps_per_one)),
        low(broadcast(table.low)),
        high(broadcast(table.high)) {}
  LATHE_KERNEL_INLINE Floats operator()(Floats value) const {
    const Floats scaled = value * steps_per_one;
    const Floats whole = kFloor ? round_down(scaled) : round_even(scaled);
    return min(high, max(low, whole)) * step;
  }
};

// Exponents are those bits of a float.
//
// Narrow: an exponent's steps can be rounded to by a magnet, as in elements.inl.h, and its numbers
// are normal floats. Wide: computed as MASE does, where 2^-127 is a subnormal number and 2^128
// infinity, with all that follows, unless no value is so large. (No exponent that counts is below
// -30: what is small passes through.)
struct MaseMinifloatParts {
  Floats steps, step, most;
  Ints magnet_offset, highest_below_one, highest_below_two, narrow_end;
  explicit MaseMinifloatParts(const MaseTable& table)
      : steps(broadcast(static_cast<float>(1 << table.mantissa_bits))),
        step(broadcast(1.0f / static_cast<float>(1 << table.mantissa_bits))),
        most(broadcast(static_cast<float>((1 << table.mantissa_bits) - 1))),
        magnet_offset(broadcast((23 - table.mantissa_bits) << 23)),
        highest_below_one(broadcast(
            (((1 << table.mantissa_bits) - 2) << (23 - table.mantissa_bits)) - (1 << 23))),
        highest_below_two(
            broadcast(((1 << table.mantissa_bits) - 1) << (23 - table.mantissa_bits))),
        narrow_end(broadcast((255 - (23 - table.mantissa_bits)) << 23)) {}

  LATHE_KERNEL_INLINE Floats round_narrow(Floats bounded, Ints exponent) const {
    const Floats magnet = (Floats)(exponent + magnet_offset);
    return (bounded + magnet) - magnet;
  }
  LATHE_KERNEL_INLINE Floats round_wide(Floats magnitude, Ints exponent, Floats one) const {
    const Floats scale = power_of_code(exponent >> 23);
    const Floats units = magnitude / scale * steps;
    // MASE rounds what is left without the leading one; `steps` is even, so ties agree.
    return to_whole(min(one + most, max(one, units))) * step * scale;
  }

  template <bool kWide>
  LATHE_KERNEL_INLINE Floats without_leading_one(Floats value, Ints low, Ints high) const {
    const Floats magnitude = magnitude_of(value);
    const Ints nearby = ceil_log2_bits((Ints)(magnitude + broadcast(1e-9f)));
    const Ints exponent = min(max(nearby & broadcast(0x7f800000), low), high);
    if (kWide && any(exponent >= narrow_end))
      return pass_small(value, magnitude, round_wide(magnitude, exponent, broadcast(0.0f)));
    const Floats bounded = min((Floats)(exponent + highest_below_one), magnitude);
    return pass_small(value, magnitude, round_narrow(bounded, exponent));
  }

  // `above_low` is the lowest exponent plus 1: numbers with the lowest exponent have its steps and
  // no leading one.
  template <bool kWide>
  LATHE_KERNEL_INLINE Floats with_leading_one(Floats value, Ints above_low, Ints high) const {
    const Floats magnitude = magnitude_of(value);
    const Ints nearby = floor_log2_bits((Ints)(magnitude + broadcast(1e-9f)));
    const Ints exponent = min(max(nearby & broadcast(0x7f800000), above_low), high);
    const Ints is_low = nearby < above_low;
    if (kWide && any(exponent >= narrow_end))
      return pass_small(value, magnitude,
                        round_wide(magnitude, exponent, is_low ? broadcast(0.0f) : steps));
    const Floats least = (Floats)(exponent & ~is_low);
    const Floats highest = (Floats)(exponent + (is_low ? highest_below_one : highest_below_two));
    const Floats bounded = min(highest, max(least, magnitude));
    return pass_small(value, magnitude, round_narrow(bounded, exponent));
  }
};

// A binade's magnet must be a float, and the number below a power of two a normal one.
inline bool has_narrow_exponents(const MaseTable& table) {
  return table.lowest >= -125 && table.highest + 23 - table.mantissa_bits <= 127;
}

template <bool kWide>
struct MaseDenormElement {
  MaseMinifloatParts parts;
  Ints low, high;
  explicit MaseDenormElement(const MaseTable& table)
      : parts(table),
        low(broadcast((table.lowest + 127) << 23)),
        high(broadcast((table.highest + 127) << 23)) {}
  LATHE_KERNEL_INLINE Floats operator()(Floats value) const {
    return parts.without_leading_one<kWide>(value, low, high);
  }
};

template <bool kWide>
struct MaseIeeeElement {
  MaseMinifloatParts parts;
  Ints above_low, high;
  explicit MaseIeeeElement(const MaseTable& table)
      : parts(table),
        above_low(broadcast((table.lowest + 128) << 23)),
        high(broadcast((table.highest + 127) << 23)) {}
  LATHE_KERNEL_INLINE Floats operator()(Floats value) const {
    return parts.with_leading_one<kWide>(value, above_low, high);
  }
};

// Exponents of a normal float.
struct MaseLogElement {
  Floats offset;
  Ints low, high;
  explicit MaseLogElement(const MaseTable& table)
      : offset(broadcast(table.offset)),
        low(broadcast((table.lowest + 127) << 23)),
        high(broadcast((table.highest + 127) << 23)) {}
  LATHE_KERNEL_INLINE Floats operator()(Floats value) const {
    // What is subnormal is below the lowest exponent however it is read.
    const Ints nearby =
        nearest_log2_bits((Ints)(magnitude_of(value) + offset), broadcast(kOneBits));
    const Ints exponent = min(max(nearby & broadcast(0x7f800000), low), high);
    const Floats moved = value + offset;
    const Floats power = (Floats)(exponent | sign_bits(moved));
    return unless_zero_or_nan(moved, power);  // those are their own signs
  }
};

template <int kTerms>
struct MaseResidualElement {
  Floats means[kTerms];
  explicit MaseResidualElement(const MaseTable& table) {
    for (int t = 0; t < kTerms; ++t) means[t] = broadcast(table.means[t]);
  }
  LATHE_KERNEL_INLINE Floats operator()(Floats value) const {
    Floats residual = value;
    Floats sum = broadcast(0.0f);
    for (int t = 0; t < kTerms; ++t) {
      const Floats signed_mean = (Floats)((Ints)means[t] | sign_bits(residual));
      const Floats term = magnitude_of(residual) > broadcast(0.0f) ? signed_mean : residual;
      residual -= term;
      sum += term;
    }
    return sum;
  }
};

// One number for what is positive, another for the rest.
struct MasePositiveElement {
  Floats low, high;
  explicit MasePositiveElement(const MaseTable& table)
      : low(broadcast(table.low)), high(broadcast(table.high)) {}
  LATHE_KERNEL_INLINE Floats operator()(Floats value) const {
    const Floats chosen = value > broadcast(0.0f) ? high : low;
    return value == value ? chosen : value;
  }
};

template <typename Body>
inline void with_mase_element(const MaseTable& table, Body body) {
  switch (table.kind) {
    case MaseTable::Kind::Integer:
      return body(MaseIntegerElement<false>(table));
    case MaseTable::Kind::IntegerFloor:
      return body(MaseIntegerElement<true>(table));
    case MaseTable::Kind::MinifloatDenorm:
      return has_narrow_exponents(table) ? body(MaseDenormElement<false>(table))
                                         : body(MaseDenormElement<true>(table));
    case MaseTable::Kind::MinifloatIeee:
      return has_narrow_exponents(table) ? body(MaseIeeeElement<false>(table))
                                         : body(MaseIeeeElement<true>(table));
    case MaseTable::Kind::Log:
      return body(MaseLogElement(table));
    case MaseTable::Kind::Residual:
      return table.num_means == 1   ? body(MaseResidualElement<1>(table))
             : table.num_means == 2 ? body(MaseResidualElement<2>(table))
                                    : body(MaseResidualElement<3>(table));
    case MaseTable::Kind::Positive:
      return body(MasePositiveElement(table));
    case MaseTable::Kind::BlockFp:
    case MaseTable::Kind::BlockMinifloat:
    case MaseTable::Kind::BlockLog:
    case MaseTable::Kind::Mxint:
      return;  // mase_blocks
  }
}

void mase_run(const MaseTable& table, const RunArgs& args) {
  with_mase_element(table, [&](const auto& element) {
    map_run(args.x, args.y, args.count, args.streams, element);
  });
  if (args.streams) end_streaming();
}
