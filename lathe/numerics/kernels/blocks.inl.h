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
  Floats third = {}, fourth = {};  // for methods that need more numbers
};
LATHE_KERNEL_INLINE Scales lane_of(const Scales& all, int lane) {
  return {broadcast_lane(all.scale, lane), broadcast_lane(all.inverse, lane),
          broadcast_lane(all.third, lane), broadcast_lane(all.fourth, lane)};
}

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

// How the values of a block are rounded. A method tells which magnitude a value counts with, what
// follows from the largest of them, as many blocks at once as there are lanes, and rounds by that.
// Here: an element of a format under a scale.
template <typename Element, typename Rule>
struct ScaledElements {
  Element element;
  Rule rule;
  LATHE_KERNEL_INLINE static Ints magnitude(Floats a) { return Rule::magnitude(a); }
  LATHE_KERNEL_INLINE Scales scales(Ints largest) const { return rule(largest); }
  LATHE_KERNEL_INLINE Floats round(Floats value, const Scales& scales) const {
    const Floats units = Rule::kDivides ? value / scales.scale : value * scales.inverse;
    return element(units) * scales.scale;
  }
  // What a row of blocks is made of does not matter to its blocks.
  static constexpr bool kKnowsItsBand = false;
  static constexpr bool kLooksAhead = false;
};

// Blocks side by side: `rows` rows of `count` values, a block each `block` of them.
struct Band {
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t rows = 0, stride = 0, count = 0, block = 0;
  LATHE_KERNEL_INLINE Band from(std::int64_t column, std::int64_t width) const {
    return {x + column, y + column, rows, stride, width, block};
  }
  LATHE_KERNEL_INLINE Band of_one_row() const { return {x, y, 1, 0, count, block}; }
};

// Where several rows take turns: values of a row that are worth a turn, and how many values ahead
// to ask for what comes, because the processor sees rows that take turns too late by itself.
constexpr std::int64_t kLongRun = 256;
constexpr std::int64_t kAhead = 512;

// Asks for so many floats, a line of sixteen at a time.
template <std::int64_t kCount>
LATHE_KERNEL_INLINE void prefetch(const float* from) {
  for (std::int64_t i = 0; i < kCount; i += 16) __builtin_prefetch(from + i);
}

// The scales of as many blocks of kVectors vectors each as there are lanes, each in a lane, or of
// one block in all of them.
template <int kVectors, std::int64_t kBlocks, typename Method>
LATHE_KERNEL_INLINE Scales scales_of_group(const Method& method, const Band& band) {
  constexpr std::int64_t kBlock = kVectors * kWidth;
  const auto largest_of = [&](const float* from) {
    Ints all = Method::magnitude(load(from));
    for (int v = 1; v < kVectors; ++v) all = max(all, Method::magnitude(load(from + v * kWidth)));
    return all;
  };
  Ints largest[kBlocks];
  for (int b = 0; b < kBlocks; ++b) largest[b] = largest_of(band.x + b * kBlock);
  for (std::int64_t r = 1; r < band.rows; ++r)
    for (int b = 0; b < kBlocks; ++b)
      largest[b] = max(largest[b], largest_of(band.x + r * band.stride + b * kBlock));
  if constexpr (kBlocks == 1) {
    return method.scales(largest_everywhere(largest[0]));
  } else {
    static_assert(kBlocks == kWidth);
    return method.scales(largest_of_each(largest));
  }
}

template <int kVectors, bool kStreams, typename Method>
LATHE_KERNEL_INLINE void round_vectors(const Method& method, const float* x, float* y,
                                       const Scales& scales) {
  for (int v = 0; v < kVectors; ++v)
    put<kStreams>(y + v * kWidth, method.round(load(x + v * kWidth), scales));
}

// Scales that were made with a block a lane, for one block after the other.
struct ScalesInMemory {
  float scale[kWidth], inverse[kWidth], third[kWidth], fourth[kWidth];
  LATHE_KERNEL_INLINE void put(const Scales& all) {
    store(scale, all.scale);
    store(inverse, all.inverse);
    store(third, all.third);
    store(fourth, all.fourth);
  }
  LATHE_KERNEL_INLINE Scales of(int block) const {
    return {broadcast(scale[block]), broadcast(inverse[block]), broadcast(third[block]),
            broadcast(fourth[block])};
  }
};

// Groups of blocks with their scales, row after row: memory takes a long run faster than short ones
// of several rows in turn. What comes after them is asked for on the way, unless it is one row,
// which the processor does by itself.
template <int kVectors, bool kStreams, bool kHasRows, typename Method>
LATHE_KERNEL_INLINE void round_groups(const Method& method, const Band& band,
                                      const ScalesInMemory* scales) {
  constexpr std::int64_t kBlock = kVectors * kWidth;
  constexpr std::int64_t kGroup = kWidth * kBlock;
  for (std::int64_t r = 0; r < band.rows; ++r)
    for (std::int64_t g = 0; g < band.count; g += kGroup)
      for (int b = 0; b < kWidth; ++b) {
        const std::int64_t at = r * band.stride + g + b * kBlock;
        if (kHasRows) prefetch<kBlock>(band.x + at + kAhead);
        round_vectors<kVectors, kStreams>(method, band.x + at, band.y + at,
                                          scales[g / kGroup].of(b));
      }
}

// Groups of blocks of a row. Where scales are the end of a long chain of steps, those of the next
// group are begun before this one's values.
template <int kVectors, bool kStreams, typename Method>
LATHE_KERNEL_INLINE void round_groups_ahead(const Method& method, const Band& band) {
  constexpr std::int64_t kGroup = kWidth * kVectors * kWidth;
  if (band.count == 0) return;
  ScalesInMemory scales;
  Scales next = {};
  for (std::int64_t at = 0; at <= band.count; at += kGroup) {
    scales.put(next);
    if (at < band.count) next = scales_of_group<kVectors, kWidth>(method, band.from(at, kGroup));
    if (at > 0)
      round_groups<kVectors, kStreams, false>(method, band.from(at - kGroup, kGroup), &scales);
  }
}

// The values of a group are read again from the nearest cache. A function of its own for one row
// and for several, that is compiled once for all its callers; what it is given by value stays in
// registers.
template <int kVectors, bool kStreams, bool kHasRows, typename Method>
LATHE_KERNEL_APART void round_whole_blocks(Method method, Band given) {
  const Band band = kHasRows ? given : given.of_one_row();
  constexpr std::int64_t kBlock = kVectors * kWidth;
  constexpr std::int64_t kGroup = kWidth * kBlock;
  const std::int64_t groups = band.count / kGroup * kGroup;
  if constexpr (kHasRows) {
    constexpr std::int64_t kMost = kLongRun > kGroup ? kLongRun / kGroup * kGroup : kGroup;
    ScalesInMemory scales[kMost / kGroup];
    for (std::int64_t at = 0; at < groups; at += kMost) {
      const Band run = band.from(at, groups - at < kMost ? groups - at : kMost);
      for (std::int64_t g = 0; g < run.count; g += kGroup)
        scales[g / kGroup].put(scales_of_group<kVectors, kWidth>(method, run.from(g, kGroup)));
      round_groups<kVectors, kStreams, true>(method, run, scales);
    }
  } else if constexpr (Method::kLooksAhead) {
    round_groups_ahead<kVectors, kStreams>(method, band.from(0, groups));
  } else {
    for (std::int64_t at = 0; at < groups; at += kGroup) {
      const Scales all = scales_of_group<kVectors, kWidth>(method, band.from(at, kGroup));
      for (int b = 0; b < kWidth; ++b)
        round_vectors<kVectors, kStreams>(method, band.x + at + b * kBlock,
                                          band.y + at + b * kBlock, lane_of(all, b));
    }
  }
  for (std::int64_t at = groups; at < band.count; at += kBlock) {
    const Scales own = scales_of_group<kVectors, 1>(method, band.from(at, kBlock));
    for (std::int64_t r = 0; r < band.rows; ++r)
      round_vectors<kVectors, kStreams>(method, band.x + at + r * band.stride,
                                        band.y + at + r * band.stride, own);
  }
}

template <int kVectors, typename Method>
LATHE_KERNEL_INLINE void round_whole_blocks(const Method& method, const Band& band, bool streams) {
  const bool is_streamed = streams && is_aligned(band.y) && band.stride % kWidth == 0;
  if (band.rows > 1)
    return is_streamed ? round_whole_blocks<kVectors, true, true>(method, band)
                       : round_whole_blocks<kVectors, false, true>(method, band);
  if (is_streamed) return round_whole_blocks<kVectors, true, false>(method, band);
  if (!streams) return round_whole_blocks<kVectors, false, false>(method, band);
  // Blocks that begin between two vectors' addresses go through a buffer in the nearest cache.
  constexpr std::int64_t kBlocks = kWidth * kVectors * kWidth;
  float buffer[kBlocks];
  for (std::int64_t at = 0; at < band.count; at += kBlocks) {
    const std::int64_t count = band.count - at < kBlocks ? band.count - at : kBlocks;
    Band part = band.from(at, count);
    part.y = buffer;
    round_whole_blocks<kVectors, false, false>(method, part);
    map_run(buffer, band.y + at, count, true, [](Floats a) { return a; });
  }
}

LATHE_KERNEL_INLINE Scales halves_of(const Scales& all, int vector) {
  return {broadcast_halves(all.scale, vector), broadcast_halves(all.inverse, vector),
          broadcast_halves(all.third, vector), broadcast_halves(all.fourth, vector)};
}

// Blocks of half a vector, the scales of as many as there are lanes at once.
template <bool kStreams, bool kHasRows, typename Method>
LATHE_KERNEL_APART void round_half_blocks(Method method, Band given) {
  const Band band = kHasRows ? given : given.of_one_row();
  const auto largest_at = [&](std::int64_t at, auto read) {
    Ints largest = Method::magnitude(read(band.x + at));
    for (std::int64_t r = 1; r < band.rows; ++r)
      largest = max(largest, Method::magnitude(read(band.x + r * band.stride + at)));
    return largest;
  };
  constexpr int kVectors = kWidth / 2;
  constexpr std::int64_t kGroup = kVectors * kWidth;
  constexpr int kGroups = kLongRun / kGroup > 0 ? kLongRun / kGroup : 1;
  std::int64_t at = 0;
  for (; at + kGroups * kGroup <= band.count; at += kGroups * kGroup) {
    Scales scales[kGroups];
    for (int g = 0; g < kGroups; ++g) {
      Ints largest[kVectors];
      for (int v = 0; v < kVectors; ++v)
        largest[v] =
            largest_at(at + g * kGroup + v * kWidth, [](const float* from) { return load(from); });
      scales[g] = method.scales(largest_of_halves(largest));
    }
    for (std::int64_t r = 0; r < band.rows; ++r)
      for (int g = 0; g < kGroups; ++g)
        for (int v = 0; v < kVectors; ++v) {
          const std::int64_t i = r * band.stride + at + g * kGroup + v * kWidth;
          if (kHasRows) prefetch<kWidth>(band.x + i + kAhead);
          put<kStreams>(band.y + i, method.round(load(band.x + i), halves_of(scales[g], v)));
        }
  }
  for (; at < band.count; at += kWidth) {
    const std::int64_t count = band.count - at < kWidth ? band.count - at : kWidth;
    const auto read = [&](const float* from) { return load(from, count); };
    const Scales scales = method.scales(largest_of_half(largest_at(at, read)));
    for (std::int64_t i = at, r = 0; r < band.rows; ++r, i += band.stride)
      store(band.y + i, method.round(read(band.x + i), scales), count);
  }
}

template <typename Method>
LATHE_KERNEL_INLINE void round_half_blocks(const Method& method, const Band& band, bool streams) {
  const bool is_streamed = streams && is_aligned(band.y) && band.stride % kWidth == 0;
  if (band.rows > 1)
    is_streamed ? round_half_blocks<true, true>(method, band)
                : round_half_blocks<false, true>(method, band);
  else
    is_streamed ? round_half_blocks<true, false>(method, band)
                : round_half_blocks<false, false>(method, band);
}

// One block of any length and any number of rows.
template <typename Method>
inline void round_tile(const Method& method, const Band& tile, bool streams) {
  Ints largest = broadcast(0);
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    const float* row = tile.x + r * tile.stride;
    std::int64_t i = 0;
    for (; i + kWidth <= tile.count; i += kWidth)
      largest = max(largest, Method::magnitude(load(row + i)));
    if (i < tile.count) largest = max(largest, Method::magnitude(load(row + i, tile.count - i)));
  }
  const Scales scales = method.scales(largest_everywhere(largest));
  for (std::int64_t r = 0; r < tile.rows; ++r)
    map_run(tile.x + r * tile.stride, tile.y + r * tile.stride, tile.count, streams,
            [&](Floats value) { return method.round(value, scales); });
}

template <typename Method>
inline void round_band(const Method& method, const Band& band, bool streams) {
  const std::int64_t block = band.block;
  const std::int64_t whole = band.count / block * block;
  const Band blocks = band.from(0, whole);
  // Values are read twice, so a group must stay in the second cache.
  const bool is_small = band.rows * block * kWidth <= 1 << 16;
  if (block == kWidth && is_small) {
    round_whole_blocks<1>(method, blocks, streams);
  } else if (block == 2 * kWidth && is_small) {
    round_whole_blocks<2>(method, blocks, streams);
  } else if (block == 4 * kWidth && is_small) {
    round_whole_blocks<4>(method, blocks, streams);
  } else if (block == 8 * kWidth && is_small) {
    round_whole_blocks<8>(method, blocks, streams);
  } else if (kWidth > 8 && block == kWidth / 2) {
    if constexpr (kWidth > 8) round_half_blocks(method, blocks, streams);
  } else {
    for (std::int64_t at = 0; at < whole; at += block)
      round_tile(method, band.from(at, block), streams && block > 64);
  }
  if (whole < band.count) round_tile(method, band.from(whole, band.count - whole), false);
}

template <typename Method>
inline void round_one_band(const Method& method, const Band& band, bool streams) {
  if constexpr (Method::kKnowsItsBand) {
    Method own = method;
    own.start(band);
    return round_band(own, band, streams);
  } else {
    return round_band(method, band, streams);
  }
}

template <typename Method>
inline void round_matrix(const Method& method, const BlockArgs& args) {
  Band band{args.x, args.y, 1, 0, args.columns, args.block};
  std::int64_t bands = args.rows;
  if (args.block_rows == 1 && args.columns % args.block == 0 && !Method::kKnowsItsBand) {
    // Rows of whole blocks are one long row.
    bands = 1;
    band.count = args.rows * args.columns;
  }
  if (args.block_rows == 1) {
    for (std::int64_t r = 0; r < bands; ++r, band.x += band.count, band.y += band.count)
      round_one_band(method, band, args.streams);
  } else {
    band.stride = args.columns;
    for (std::int64_t r = 0; r < args.rows; r += args.block_rows) {
      band.rows = args.rows - r < args.block_rows ? args.rows - r : args.block_rows;
      band.x = args.x + r * args.columns;
      band.y = args.y + r * args.columns;
      round_one_band(method, band, args.streams);
    }
  }
  if (args.streams) end_streaming();
}

// Only integers and narrow minifloats have shared exponents, only integers and levels float scales.
void round_blocks(const ElementTable& table, const ExponentTable& exponents,
                  const BlockArgs& args) {
  const PowerOfTwoRule rule(exponents);
  if (table.kind == ElementTable::Kind::Integer)
    round_matrix(ScaledElements<IntegerElement, PowerOfTwoRule>{IntegerElement(table), rule}, args);
  else
    round_matrix(ScaledElements<MinifloatElement, PowerOfTwoRule>{MinifloatElement(table), rule},
                 args);
}

void round_scaled_blocks(const ElementTable& table, float divisor, bool by_reciprocal,
                         const BlockArgs& args) {
  if (by_reciprocal)
    round_matrix(
        ScaledElements<LevelElement, AbsmaxRule<true>>{LevelElement(table), {broadcast(divisor)}},
        args);
  else
    round_matrix(ScaledElements<IntegerElement, AbsmaxRule<false>>{IntegerElement(table),
                                                                   {broadcast(divisor)}},
                 args);
}
