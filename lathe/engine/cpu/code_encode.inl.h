// Rounding rows to whole numbers of 8 bits, for a file that has included its vectors and
// `store_numbers`, which rounds the first lanes of a vector to nearest even and stores them.

constexpr float kSmallestCodeScale = 0x1p-126f;

// What a block shows of itself.
struct BlockLook {
  float largest = 0;  // of the magnitudes, infinity included
  float largest_finite = 0;
  float low = 0, high = 0;  // of the finite values and 0
  bool has_nan = false;
};

template <CodeScale Rule>
inline BlockLook look_at_block(const float* x, std::int64_t count) {
  const Vec nothing = broadcast(0.0f), infinity = broadcast(kInfinity);
  Vec most = nothing, least = nothing, poison = nothing;
  over_lanes(count, [&](std::int64_t c, auto lanes) {
    const Vec value = load(x + c, lanes);
    poison = select(is_nan(value), value, poison);
    // The first argument goes where it is NaN.
    if constexpr (Rule == CodeScale::SharedExponent) most = max(abs(value), most);
    if constexpr (Rule == CodeScale::LargestMagnitude)
      most = max(select(less(abs(value), infinity), abs(value), nothing), most);
    if constexpr (Rule == CodeScale::Range) {
      const Vec kept = select(less(abs(value), infinity), value, nothing);
      most = max(kept, most);
      least = max(negate(kept), least);
    }
  });
  const float total = sum(poison), high = largest(most);
  return {high, high, -largest(least), high, total != total};
}

// The largest magnitude of a block that is finite, as most are, or a negative number.
inline float largest_of_finite(const float* x, std::int64_t count) {
  const Vec nothing = broadcast(0.0f);
  Vec most = nothing, poison = nothing;
  over_lanes(count, [&](std::int64_t c, auto lanes) {
    const Vec value = load(x + c, lanes);
    most = max(abs(value), most);
    poison = fma(value, nothing, poison);  // NaN by what is not finite
  });
  return has_any(is_nan(poison)) ? -1.0f : largest(most);
}

inline BlockLook look_at_block(CodeScale rule, const float* x, std::int64_t count) {
  switch (rule) {
    case CodeScale::Given:
      return look_at_block<CodeScale::Given>(x, count);
    case CodeScale::LargestMagnitude: {
      const float most = largest_of_finite(x, count);
      if (most >= 0) return {.largest = most, .largest_finite = most};
      return look_at_block<CodeScale::LargestMagnitude>(x, count);
    }
    case CodeScale::Range:
      return look_at_block<CodeScale::Range>(x, count);
    case CodeScale::SharedExponent:
      break;
  }
  return look_at_block<CodeScale::SharedExponent>(x, count);
}

struct CodeWorth {
  float scale, zero;
  float inverse;  // 0: values are divided by the scale
  float unit;     // what they are multiplied with then: 1 / step
  float of_one;   // what a number 1 is worth
};

// A number beyond which a float has no fraction: adding and subtracting it rounds to nearest even.
constexpr float kCodeMagnet = 0x1.8p23f;

inline float at_least_smallest(float scale) {
  return scale > kSmallestCodeScale ? scale : kSmallestCodeScale;
}

inline CodeWorth exponent_worth(const EncodeArgs& args, const BlockLook& look) {
  const float nan = __builtin_nanf("");
  if (look.has_nan || look.largest == kInfinity) return {nan, 0, nan, 1, nan};
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, look.largest);
  const auto field =
      static_cast<std::int32_t>((bits + static_cast<std::uint32_t>(args.round_up)) >> 23);
  std::int32_t code = (field > 254 ? 254 : field) - args.highest_exponent;
  if (code < args.lowest_code) code = args.lowest_code;
  // 2^(field - 127), which is subnormal for 0.
  const auto power = [](std::int32_t exponent) {
    return __builtin_bit_cast(
        float, exponent > 0 ? static_cast<std::uint32_t>(exponent) << 23 : 0x400000u);
  };
  return {power(code), 0, power(254 - code), 1 / args.step, power(code) * args.step};
}

inline CodeWorth worth_of_block(const EncodeArgs& args, const BlockLook& look) {
  switch (args.rule) {
    case CodeScale::LargestMagnitude: {
      const float scale = at_least_smallest(look.largest_finite / args.divisor);
      return {scale, 0, 0, 1, scale};
    }
    case CodeScale::Range: {
      const float scale = at_least_smallest(look.high / args.divisor - look.low / args.divisor);
      const float place = -look.low / scale;
      const float zero =
          ((place < args.divisor ? place : args.divisor) + kCodeMagnet) - kCodeMagnet;
      return {scale, zero, 0, 1, scale};
    }
    case CodeScale::SharedExponent:
      return exponent_worth(args, look);
    case CodeScale::Given:
      break;
  }
  return {args.scale, args.zero, args.is_power_of_two ? 1 / args.scale : 0, 1, args.scale};
}

// A product with the rounded inverse is off by two roundings, 2^-23 of at most 256: whatever is
// farther than 2^-14 from a tie rounds as the quotient does.
constexpr float kSafeDistance = 0.5f - 0x1p-14f;
constexpr std::int64_t kEncodeRun = 16 * kWidth;

// Rounds by multiplication; gives whether all of it is as if it had been divided.
inline bool encode_run(const float* x, std::int64_t count, float inverse, float low, float high,
                       std::int32_t shift, std::int8_t* to) {
  const Vec factor = broadcast(inverse), least = broadcast(low), most = broadcast(high);
  const Vec magnet = broadcast(kCodeMagnet);
  Vec worst = broadcast(0.0f);
  std::int64_t c = 0;
  for (; c + kWidth <= count; c += kWidth) {
    const Vec units = min(most, max(least, load(x + c) * factor));
    const Vec rounded = (units + magnet) - magnet;
    worst = max(abs(units - rounded), worst);
    store_numbers(to + c, rounded, shift, kWidth);
  }
  if (c < count) {
    const Vec units = min(most, max(least, load(x + c, first_lanes(count - c)) * factor));
    const Vec rounded = (units + magnet) - magnet;
    worst = max(abs(units - rounded), worst);
    store_numbers(to + c, rounded, shift, count - c);
  }
  return !has_any(less(broadcast(kSafeDistance), worst));
}

inline void encode_run_exactly(const float* x, std::int64_t count, const CodeWorth& worth,
                               float low, float high, std::int32_t shift, std::int8_t* to) {
  const Vec scale = broadcast(worth.scale), inverse = broadcast(worth.inverse);
  const Vec unit = broadcast(worth.unit), least = broadcast(low), most = broadcast(high);
  const bool divides = worth.inverse == 0;
  over_lanes(count, [&](std::int64_t c, auto lanes) {
    const Vec value = load(x + c, lanes);
    const Vec scaled = (divides ? value / scale : value * inverse) * unit;
    const Vec number = select(is_nan(scaled), broadcast(0.0f), scaled);
    store_numbers(to + c, min(most, max(least, number)), shift, smaller(count - c, kWidth));
  });
}

inline void encode_block(const EncodeArgs& args, const float* x, std::int64_t count,
                         std::int8_t* to, float& of_one, std::int32_t& zero) {
  const BlockLook look = look_at_block(args.rule, x, count);
  const CodeWorth worth = worth_of_block(args, look);
  const float low = args.low - worth.zero, high = args.high - worth.zero;
  const auto shift = static_cast<std::int32_t>(worth.zero) - args.offset;
  of_one = look.has_nan ? __builtin_nanf("") : worth.of_one;
  zero = shift;
  const bool is_tame =
      !look.has_nan && worth.inverse == 0 && worth.scale > 0x1p-100f && worth.scale < 0x1p100f;
  for (std::int64_t c = 0; c < count; c += kEncodeRun) {
    const std::int64_t run = smaller(count - c, kEncodeRun);
    if (is_tame && encode_run(x + c, run, 1 / worth.scale, low, high, shift, to + c)) continue;
    encode_run_exactly(x + c, run, worth, low, high, shift, to + c);
  }
}

inline void encode_rows(const EncodeArgs& args) {
  const std::int64_t blocks = (args.columns + args.block - 1) / args.block;
  for (std::int64_t r = 0; r < args.rows; ++r)
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t place = r * args.columns + b * args.block;
      encode_block(args, args.x + place, smaller(args.block, args.columns - b * args.block),
                   args.numbers + place, args.scales[r * blocks + b], args.zeros[r * blocks + b]);
    }
}
