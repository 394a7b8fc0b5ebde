// Blocks of a row that make their own scale. Included inside a namespace by the kernel files, after
// runs.inl.h.

inline Ints magnitude_bits(Floats a) {
  return (Ints)a & broadcast(INT32_MAX);
}
inline Ints finite_magnitude_bits(Floats a) {
  const Ints bits = magnitude_bits(a);
  return bits < broadcast(0x7f800000) ? bits : broadcast(0);
}

// 2^(code - 127) for codes 0 .. 254; code 0 is a subnormal float.
inline Floats power_of_code(Ints code) {
  return (Floats)(code > broadcast(0) ? code << 23 : broadcast(0x00400000));
}

// A block's scale and what its values are multiplied by, the same in every lane.
struct Scales {
  Floats scale, inverse;
};

struct PowerOfTwoRule {
  Ints highest_exponent, round_up, lowest_code;
  explicit PowerOfTwoRule(const ExponentTable& table)
      : highest_exponent(broadcast(table.highest_exponent)),
        round_up(broadcast(table.round_up)),
        lowest_code(broadcast(table.lowest_code)) {}
  static constexpr bool kDivides = false;
  static Ints magnitude(Floats a) { return magnitude_bits(a); }
  Scales operator()(Ints largest) const {
    // The sum stays positive: finite magnitudes and the carry are below 2^31 together. (NaN is put
    // back below.)
    const Ints field = min((largest + round_up) >> 23, broadcast(254));
    const Ints code = max(field - highest_exponent, lowest_code);
    const Ints is_nan = largest >= broadcast(0x7f800000);
    const Floats nan = (Floats)broadcast(0x7fc00000);
    return {is_nan ? nan : power_of_code(code),
            is_nan ? nan : power_of_code(broadcast(254) - code)};
  }
};

// Scales of any size. The smallest normal number stands in for smaller ones, among them 0.
template <bool kByReciprocal>
struct AbsmaxRule {
  Floats divisor;
  static constexpr bool kDivides = !kByReciprocal;
  static Ints magnitude(Floats a) { return finite_magnitude_bits(a); }
  Scales operator()(Ints largest) const {
    const Floats scale = max((Floats)largest / divisor, broadcast(0x1p-126f));
    return {scale, kByReciprocal ? broadcast(1.0f) / scale : scale};
  }
};

template <bool kStreams>
inline void put(float* to, Floats a) {
  if constexpr (kStreams)
    stream(to, a);
  else
    store(to, a);
}

// One whole block of kVectors vectors, kept in registers between its two readings.
template <int kVectors, bool kStreams, typename Element, typename Rule>
inline void round_whole_block(const Element& element, const Rule& rule, const float* x, float* y) {
  Floats values[kVectors];
  for (int v = 0; v < kVectors; ++v) values[v] = load(x + v * kWidth);
  Ints largest = Rule::magnitude(values[0]);
  for (int v = 1; v < kVectors; ++v) largest = max(largest, Rule::magnitude(values[v]));
  const Scales scales = rule(largest_everywhere(largest));
  for (int v = 0; v < kVectors; ++v) {
    const Floats units = Rule::kDivides ? values[v] / scales.scale : values[v] * scales.inverse;
    put<kStreams>(y + v * kWidth, element(units) * scales.scale);
  }
}

// A block of any length.
template <typename Element, typename Rule>
inline void round_any_block(const Element& element, const Rule& rule, const float* x, float* y,
                            std::int64_t count, bool streams) {
  Ints largest = broadcast(0);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) largest = max(largest, Rule::magnitude(load(x + i)));
  if (i < count) largest = max(largest, Rule::magnitude(load(x + i, count - i)));
  const Scales scales = rule(largest_everywhere(largest));
  map_run(x, y, count, streams, [&](Floats value) {
    const Floats units = Rule::kDivides ? value / scales.scale : value * scales.inverse;
    return element(units) * scales.scale;
  });
}

template <int kVectors, typename Element, typename Rule>
inline void round_whole_blocks(const Element& element, const Rule& rule, const float* x, float* y,
                               std::int64_t blocks, bool streams) {
  constexpr std::int64_t kBlock = kVectors * kWidth;
  if (streams && reinterpret_cast<std::uintptr_t>(y) % (kWidth * sizeof(float)) == 0) {
    for (std::int64_t b = 0; b < blocks; ++b)
      round_whole_block<kVectors, true>(element, rule, x + b * kBlock, y + b * kBlock);
    end_streaming();
    return;
  }
  for (std::int64_t b = 0; b < blocks; ++b)
    round_whole_block<kVectors, false>(element, rule, x + b * kBlock, y + b * kBlock);
}

template <typename Element, typename Rule>
inline void round_row_of_blocks(const Element& element, const Rule& rule, const float* x, float* y,
                                std::int64_t count, std::int64_t block, bool streams) {
  const std::int64_t blocks = count / block;
  if (block == kWidth)
    round_whole_blocks<1>(element, rule, x, y, blocks, streams);
  else if (block == 2 * kWidth)
    round_whole_blocks<2>(element, rule, x, y, blocks, streams);
  else if (block == 4 * kWidth)
    round_whole_blocks<4>(element, rule, x, y, blocks, streams);
  else if (block == 8 * kWidth)
    round_whole_blocks<8>(element, rule, x, y, blocks, streams);
  else
    for (std::int64_t b = 0; b < blocks; ++b)
      round_any_block(element, rule, x + b * block, y + b * block, block, streams);
  if (const std::int64_t rest = count % block; rest > 0)
    round_any_block(element, rule, x + blocks * block, y + blocks * block, rest, streams);
}

template <typename Rule>
inline void round_blocks_by(const ElementTable& table, const Rule& rule, const BlockArgs& args) {
  with_element(table, [&](const auto& element) {
    // Rows of whole blocks are one long row.
    const bool is_even = args.columns % args.block == 0;
    const std::int64_t rows = is_even ? 1 : args.rows;
    const std::int64_t columns = is_even ? args.rows * args.columns : args.columns;
    for (std::int64_t r = 0; r < rows; ++r)
      round_row_of_blocks(element, rule, args.x + r * columns, args.y + r * columns, columns,
                          args.block, args.streams);
  });
}

void round_blocks(const ElementTable& table, const ExponentTable& exponents,
                  const BlockArgs& args) {
  round_blocks_by(table, PowerOfTwoRule(exponents), args);
}

void round_scaled_blocks(const ElementTable& table, float divisor, bool by_reciprocal,
                         const BlockArgs& args) {
  if (by_reciprocal)
    round_blocks_by(table, AbsmaxRule<true>{broadcast(divisor)}, args);
  else
    round_blocks_by(table, AbsmaxRule<false>{broadcast(divisor)}, args);
}

inline void move_ends(IntegerElement& element, float zero) {
  element.move(zero);
}
template <typename Element>
inline void move_ends(Element&, float) {}

void round_given_blocks(const ElementTable& table, const GivenScales& given,
                        const BlockArgs& args) {
  with_element(table, [&](const auto& element) {
    std::int64_t index = 0;
    for (std::int64_t r = 0; r < args.rows; ++r)
      for (std::int64_t c = 0; c < args.columns; c += args.block, ++index) {
        const float scale = given.scales[index];
        auto moved = element;
        if (given.zeros != nullptr) move_ends(moved, given.zeros[index]);
        const std::int64_t at = r * args.columns + c;
        const std::int64_t count = args.columns - c < args.block ? args.columns - c : args.block;
        round_run_by(moved, {.x = args.x + at,
                             .y = args.y + at,
                             .count = count,
                             .scale = scale,
                             .inverse = given.is_power_of_two ? 1 / scale : 0,
                             .streams = args.streams});
      }
  });
}
