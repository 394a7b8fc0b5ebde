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
  LATHE_KERNEL_INLINE static Ints magnitude(Floats a) { return magnitude_bits(a); }
  LATHE_KERNEL_INLINE Scales operator()(Ints largest) const {
    // The sum stays positive: finite magnitudes and the carry are below 2^31 together. (NaN is put
    // back below.)
    const Ints field = min(add_wrapping(largest, round_up) >> 23, broadcast(254));
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
  LATHE_KERNEL_INLINE static Ints magnitude(Floats a) { return finite_magnitude_bits(a); }
  LATHE_KERNEL_INLINE Scales operator()(Ints largest) const {
    const Floats scale = max((Floats)largest / divisor, broadcast(0x1p-126f));
    return {scale, kByReciprocal ? broadcast(1.0f) / scale : scale};
  }
};

inline bool is_aligned(const float* to) {
  return reinterpret_cast<std::uintptr_t>(to) % (kWidth * sizeof(float)) == 0;
}

template <bool kStreams>
LATHE_KERNEL_INLINE void put(float* to, Floats a) {
  if constexpr (kStreams)
    stream(to, a);
  else
    store(to, a);
}

template <typename Element, typename Rule>
LATHE_KERNEL_INLINE Floats round_by(const Element& element, const Rule&, Floats value,
                                    const Scales& scales) {
  const Floats units = Rule::kDivides ? value / scales.scale : value * scales.inverse;
  return element(units) * scales.scale;
}

// kBlocks blocks of kVectors vectors each. With as many blocks as a vector has lanes their scales
// are made at once, one in a lane, and the values read again from the nearest cache.
template <int kVectors, std::int64_t kBlocks, bool kStreams, typename Element, typename Rule>
LATHE_KERNEL_INLINE void round_group(const Element& element, const Rule& rule, const float* x,
                                     float* y) {
  constexpr std::int64_t kBlock = kVectors * kWidth;
  const auto largest_of = [&](const float* block) {
    Ints largest = Rule::magnitude(load(block));
    for (int v = 1; v < kVectors; ++v)
      largest = max(largest, Rule::magnitude(load(block + v * kWidth)));
    return largest;
  };
  const auto round_block = [&](const float* from, float* to, const Scales& scales) {
    for (int v = 0; v < kVectors; ++v)
      put<kStreams>(to + v * kWidth, round_by(element, rule, load(from + v * kWidth), scales));
  };
  if constexpr (kBlocks == 1) {
    round_block(x, y, rule(largest_everywhere(largest_of(x))));
  } else {
    static_assert(kBlocks == kWidth);
    Ints largest[kWidth];
    for (int b = 0; b < kWidth; ++b) largest[b] = largest_of(x + b * kBlock);
    const Scales all = rule(largest_of_each(largest));
    for (int b = 0; b < kWidth; ++b)
      round_block(x + b * kBlock, y + b * kBlock,
                  {broadcast_lane(all.scale, b), broadcast_lane(all.inverse, b)});
  }
}

template <int kVectors, bool kStreams, typename Element, typename Rule>
inline void round_whole_blocks(const Element& element, const Rule& rule, const float* x, float* y,
                               std::int64_t blocks) {
  constexpr std::int64_t kBlock = kVectors * kWidth;
  std::int64_t b = 0;
  for (; b + kWidth <= blocks; b += kWidth)
    round_group<kVectors, kWidth, kStreams>(element, rule, x + b * kBlock, y + b * kBlock);
  for (; b < blocks; ++b)
    round_group<kVectors, 1, kStreams>(element, rule, x + b * kBlock, y + b * kBlock);
}

template <int kVectors, typename Element, typename Rule>
inline void round_whole_blocks(const Element& element, const Rule& rule, const float* x, float* y,
                               std::int64_t blocks, bool streams) {
  if (!streams) return round_whole_blocks<kVectors, false>(element, rule, x, y, blocks);
  if (is_aligned(y)) return round_whole_blocks<kVectors, true>(element, rule, x, y, blocks);
  // Blocks that begin between two vectors' addresses go through a buffer in the nearest cache.
  constexpr std::int64_t kBlock = kVectors * kWidth;
  float buffer[kWidth * kBlock];
  for (std::int64_t b = 0; b < blocks; b += kWidth) {
    const std::int64_t count = blocks - b < kWidth ? blocks - b : kWidth;
    round_whole_blocks<kVectors, false>(element, rule, x + b * kBlock, buffer, count);
    map_run(buffer, y + b * kBlock, count * kBlock, true, [](Floats a) { return a; });
  }
}

// Blocks of kGroup values, several to a vector.
template <int kGroup, bool kStreams, typename Element, typename Rule>
inline void round_small_blocks(const Element& element, const Rule& rule, const float* x, float* y,
                               std::int64_t count) {
  const auto round = [&](Floats value) {
    return round_by(element, rule, value, rule(largest_in_groups<kGroup>(Rule::magnitude(value))));
  };
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) put<kStreams>(y + i, round(load(x + i)));
  if (i < count) store(y + i, round(load(x + i, count - i)), count - i);
}

// A block of any length and any number of rows.
template <typename Element, typename Rule>
inline void round_tile(const Element& element, const Rule& rule, const float* x, float* y,
                       std::int64_t rows, std::int64_t count, std::int64_t stride, bool streams) {
  Ints largest = broadcast(0);
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * stride;
    std::int64_t i = 0;
    for (; i + kWidth <= count; i += kWidth) largest = max(largest, Rule::magnitude(load(row + i)));
    if (i < count) largest = max(largest, Rule::magnitude(load(row + i, count - i)));
  }
  const Scales scales = rule(largest_everywhere(largest));
  for (std::int64_t r = 0; r < rows; ++r)
    map_run(x + r * stride, y + r * stride, count, streams,
            [&](Floats value) { return round_by(element, rule, value, scales); });
}

template <typename Element, typename Rule>
inline void round_row(const Element& element, const Rule& rule, const float* x, float* y,
                      std::int64_t count, std::int64_t block, bool streams) {
  const std::int64_t blocks = count / block;
  const std::int64_t whole = blocks * block;
  if (block == kWidth)
    round_whole_blocks<1>(element, rule, x, y, blocks, streams);
  else if (block == 2 * kWidth)
    round_whole_blocks<2>(element, rule, x, y, blocks, streams);
  else if (block == 4 * kWidth)
    round_whole_blocks<4>(element, rule, x, y, blocks, streams);
  else if (block == 8 * kWidth)
    round_whole_blocks<8>(element, rule, x, y, blocks, streams);
  else if (kWidth > 8 && block == 8 && streams && is_aligned(y))
    round_small_blocks<8, true>(element, rule, x, y, whole);
  else if (kWidth > 8 && block == 8)
    round_small_blocks<8, false>(element, rule, x, y, whole);
  else
    for (std::int64_t at = 0; at < whole; at += block)
      round_tile(element, rule, x + at, y + at, 1, block, 0, streams && block > 64);
  if (whole < count) round_tile(element, rule, x + whole, y + whole, 1, count - whole, 0, false);
}

template <typename Element, typename Rule>
inline void round_matrix(const Element& element, const Rule& rule, const BlockArgs& args) {
  if (args.block_rows > 1) {
    for (std::int64_t r = 0; r < args.rows; r += args.block_rows)
      for (std::int64_t c = 0; c < args.columns; c += args.block) {
        const std::int64_t at = r * args.columns + c;
        const std::int64_t rows = args.rows - r < args.block_rows ? args.rows - r : args.block_rows;
        const std::int64_t count = args.columns - c < args.block ? args.columns - c : args.block;
        round_tile(element, rule, args.x + at, args.y + at, rows, count, args.columns, false);
      }
    return;
  }
  // Rows of whole blocks are one long row.
  const bool is_even = args.columns % args.block == 0;
  const std::int64_t rows = is_even ? 1 : args.rows;
  const std::int64_t columns = is_even ? args.rows * args.columns : args.columns;
  for (std::int64_t r = 0; r < rows; ++r)
    round_row(element, rule, args.x + r * columns, args.y + r * columns, columns, args.block,
              args.streams);
  if (args.streams) end_streaming();
}

// Only integers and narrow minifloats have shared exponents, only integers and levels float scales.
void round_blocks(const ElementTable& table, const ExponentTable& exponents,
                  const BlockArgs& args) {
  const PowerOfTwoRule rule(exponents);
  if (table.kind == ElementTable::Kind::Integer)
    round_matrix(IntegerElement(table), rule, args);
  else
    round_matrix(MinifloatElement(table), rule, args);
}

void round_scaled_blocks(const ElementTable& table, float divisor, bool by_reciprocal,
                         const BlockArgs& args) {
  if (by_reciprocal)
    round_matrix(LevelElement(table), AbsmaxRule<true>{broadcast(divisor)}, args);
  else
    round_matrix(IntegerElement(table), AbsmaxRule<false>{broadcast(divisor)}, args);
}

inline void move_ends(IntegerElement& element, float zero) {
  element.move(zero);
}
template <typename Element>
inline void move_ends(Element&, float) {}

// Blocks of whole vectors under given scales.
template <bool kStreams, typename Element>
inline void round_given_vectors(const Element& element, const GivenScales& given,
                                const BlockArgs& args) {
  std::int64_t index = 0;
  for (std::int64_t r = 0; r < args.rows; ++r)
    for (std::int64_t c = 0; c < args.columns; c += args.block, ++index) {
      auto moved = element;
      if (given.zeros != nullptr) move_ends(moved, given.zeros[index]);
      const Floats scale = broadcast(given.scales[index]);
      const Floats inverse = broadcast(1.0f) / scale;
      const std::int64_t start = r * args.columns + c;
      const std::int64_t end =
          start + (args.columns - c < args.block ? args.columns - c : args.block);
      for (std::int64_t i = start; i < end; i += kWidth) {
        const Floats value = load(args.x + i);
        const Floats units = given.is_power_of_two ? value * inverse : value / scale;
        put<kStreams>(args.y + i, moved(units) * scale);
      }
    }
}

void round_given_blocks(const ElementTable& table, const GivenScales& given,
                        const BlockArgs& args) {
  const bool has_whole_vectors = args.block % kWidth == 0 && args.columns % kWidth == 0;
  with_element(table, [&](const auto& element) {
    if (has_whole_vectors && args.streams && is_aligned(args.y))
      return round_given_vectors<true>(element, given, args);
    if (has_whole_vectors && !args.streams) return round_given_vectors<false>(element, given, args);
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
  if (args.streams) end_streaming();
}
