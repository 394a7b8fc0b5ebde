// How a vector of numbers becomes elements of a format, NaN kept. Included inside a namespace by
// the kernel files, after vector_*.h.

// a + b where the bits of a NaN among them may overflow; such a lane is put right later.
inline Ints add_wrapping(Ints a, Ints b) {
  return (Ints)((Words)a + (Words)b);
}

// Multiples of a power of two between two ends.
struct IntegerElement {
  Floats low, high, magnet;
  explicit IntegerElement(const ElementTable& table)
      : low(broadcast(table.low)), high(broadcast(table.high)), magnet(broadcast(table.magnet)) {}
  void move(float zero) {
    low = low - broadcast(zero);
    high = high - broadcast(zero);
  }
  LATHE_KERNEL_INLINE Floats operator()(Floats value) const {
    // The ends are multiples, so it does not matter that they come first. -0, which has no code,
    // becomes 0 in the subtraction.
    return (min(high, max(low, value)) + magnet) - magnet;
  }
};

// Whole numbers too large for that.
struct WideIntegerElement {
  Floats low, high;
  explicit WideIntegerElement(const ElementTable& table)
      : low(broadcast(table.low)), high(broadcast(table.high)) {}
  LATHE_KERNEL_INLINE Floats operator()(Floats value) const {
    return min(high, max(low, round_even(value))) + broadcast(0.0f);
  }
};

// Saturates. Adding one and a half times a power of two, so large that the last bit of the sum is
// worth a step of the number's binade, rounds as the processor rounds: to nearest even, a carry
// into the next binade included.
struct MinifloatElement {
  Floats low, high;
  Ints smallest_normal, magnet_offset;
  explicit MinifloatElement(const ElementTable& table)
      : low(broadcast(table.low)),
        high(broadcast(table.high)),
        smallest_normal(broadcast(table.smallest_normal)),
        magnet_offset(broadcast(table.magnet_offset)) {}
  LATHE_KERNEL_INLINE Floats operator()(Floats value) const {
    const Floats bounded = min(high, max(low, value));
    // Below the smallest normal number all steps are equal.
    const Ints exponent = max((Ints)bounded & broadcast(0x7f800000), smallest_normal);
    const Floats magnet = (Floats)add_wrapping(exponent, magnet_offset);
    const Floats rounded = (bounded + magnet) - magnet;
    return (Floats)((Ints)rounded | ((Ints)value & broadcast(INT32_MIN)));  // -0 is a number
  }
};

struct WideMinifloatElement {
  Ints half, parity, cut_mask, smallest_normal, largest, beyond;
  std::int32_t cut_bits;
  Floats magnet;
  explicit WideMinifloatElement(const ElementTable& table)
      // Without mantissa bits the last kept bit is the leading 1, which is odd: ties go up.
      : half(broadcast((1 << (table.cut_bits - 1)) - (table.cut_bits < 23 ? 1 : 0))),
        parity(broadcast(table.cut_bits < 23 ? 1 : 0)),
        cut_mask(broadcast(-(1 << table.cut_bits))),
        smallest_normal(broadcast(table.smallest_normal)),
        largest(broadcast(table.largest)),
        beyond(broadcast(table.beyond)),
        cut_bits(table.cut_bits),
        magnet(broadcast(table.subnormal_magnet)) {}
  LATHE_KERNEL_INLINE Floats operator()(Floats value) const {
    const Ints sign = (Ints)value & broadcast(INT32_MIN);
    const Ints magnitude = (Ints)value & broadcast(INT32_MAX);
    // Half a step is added to the bits, a little less where the last kept bit is even; the carry
    // may run into the exponent, where it belongs. (NaN overflows the sum and is put back below.)
    const Ints last_bit = (magnitude >> cut_bits) & parity;
    const Ints normal = add_wrapping(magnitude, half + last_bit) & cut_mask;
    const Ints subnormal = (Ints)(((Floats)magnitude + magnet) - magnet);
    Ints rounded = magnitude < smallest_normal ? subnormal : normal;
    rounded = rounded > largest ? beyond : rounded;
    rounded = magnitude > broadcast(0x7f800000) ? magnitude : rounded;
    return (Floats)(rounded | sign);
  }
};

// The nearest of sixteen numbers, found by bisection. Each step has a table of its own, of the
// thresholds it can ask for, so that only the numbers take more than eight entries.
struct LevelElement {
  Table levels;
  Floats eighth, fourth, twelfth;  // thresholds by the number they are before
  SmallTable quarters, odds;
  explicit LevelElement(const ElementTable& table)
      : levels(load_table(table.levels)),
        eighth(broadcast(table.thresholds[7])),
        fourth(broadcast(table.thresholds[3])),
        twelfth(broadcast(table.thresholds[11])),
        quarters(every(table, 1, 4, 4)),
        odds(every(table, 0, 2, 8)) {}
  LATHE_KERNEL_INLINE Floats operator()(Floats value) const {
    // A comparison that holds is -1, so subtracting it appends a 1 to the code.
    const Ints is_upper = value >= eighth;
    Ints code = -is_upper;
    code = code + code - (value >= (is_upper ? twelfth : fourth));
    code = code + code - (value >= look_up(quarters, code));
    code = code + code - (value >= look_up(odds, code));
    const Floats level = look_up(levels, code, is_upper);
    return value == value ? level : value;
  }

 private:
  static SmallTable every(const ElementTable& table, int first, int step, int count) {
    float chosen[8] = {};
    for (int i = 0; i < count; ++i) chosen[i] = table.thresholds[first + step * i];
    return load_small_table(chosen);
  }
};

template <typename Body>
inline void with_element(const ElementTable& table, Body body) {
  switch (table.kind) {
    case ElementTable::Kind::Integer:
      return body(IntegerElement(table));
    case ElementTable::Kind::WideInteger:
      return body(WideIntegerElement(table));
    case ElementTable::Kind::Minifloat:
      return body(MinifloatElement(table));
    case ElementTable::Kind::WideMinifloat:
      return body(WideMinifloatElement(table));
    case ElementTable::Kind::Levels:
      return body(LevelElement(table));
  }
}
