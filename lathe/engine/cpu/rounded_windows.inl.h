// Convolutions of numbers that are rounded to bfloat16, for a file that has included
// split_windows.inl.h: see split_window_table.h.
//
// A row of a tile is 32 numbers. Where channels come in 32s, they are those of a pixel, and a tile
// is 16 neighbouring pixels for a tap. 16 channels are those of two neighbours, of which the first
// one's place is even, so that no row crosses a cache line: 16 such pairs are what the windows at
// even places see of two taps, and those at odd places of another two. A window of three columns
// is two pairs instead of three taps; one of a pair's four products of taps is with zeros.

constexpr std::int64_t kRowNumbers = 32;
constexpr std::int64_t kRowBytes = 2 * kRowNumbers;
constexpr int kTilesOfX = 2, kTilesOfFilters = 2;

struct RoundedLayout {
  SplitFrame frame;      // with lines of an even length where pixels are in pairs
  bool is_paired;        // two pixels of 16 channels a row
  std::int64_t grain;    // channels of a row that belong to one pixel
  std::int64_t windows;  // of a tile of x
  std::int64_t tiles, pixels, block, sums, size;  // `block`: numbers of so many channels

  explicit RoundedLayout(const SplitFrame& given)
      : frame(given), is_paired(given.channels % kRowNumbers != 0) {
    if (is_paired) frame.line += frame.line % 2;
    grain = is_paired ? kWindowGrain : kRowNumbers;
    windows = is_paired ? 2 * kTileLines : kTileLines;
    tiles = divide_up(flat_windows(frame), windows);
    pixels = tiles * windows + flat_reach(frame) + 2;
    const std::int64_t lines = (frame.out_height + frame.rows - 1) * frame.line;
    if (pixels < lines) pixels = lines;
    pixels += pixels % 2;
    block = pixels * grain;
    sums = frame.channels / grain * block * 2;
    size = sums + kTilesOfX * kTilesOfFilters * kTileLines * kTileLine;
  }
  // What a tile of x meets for a row of the window: taps, or pairs of them.
  std::int64_t steps_of_row() const { return is_paired ? frame.columns / 2 + 1 : frame.columns; }
  // Tiles of filters that 16 filters have for all of a window.
  std::int64_t filter_tiles() const {
    return frame.rows * steps_of_row() * (frame.channels / grain) * (is_paired ? 2 : 1);
  }
};

// Two rows of the panels, or zeros, as a line of a tile.
inline void pack_rounded_line(const float* even, const float* odd, std::uint16_t* to) {
  store_bf16_pairs(reinterpret_cast<std::uint32_t*>(to), even ? load(even) : broadcast(0.0f),
                   odd ? load(odd) : broadcast(0.0f));
}

// Filters in the order in which they are met: for 16 of them rows, steps, blocks of channels, and
// where pixels are in pairs first what even places see and then what odd ones do.
inline void pack_rounded_filters(const SplitFilterArgs& args) {
  const bool is_paired = args.channels % kRowNumbers != 0;
  const std::int64_t grain = is_paired ? kWindowGrain : kRowNumbers;
  const std::int64_t rows = args.taps / args.columns, depth = args.taps * args.channels;
  const std::int64_t steps = is_paired ? args.columns / 2 + 1 : args.columns;
  std::uint16_t* to = args.filters;
  for (std::int64_t f = 0; f < args.n; f += kWindowGrain) {
    const float* const column = args.panels + f / args.panel * depth * args.panel + f % args.panel;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t step = 0; step < steps; ++step)
        for (std::int64_t c = 0; c < args.channels; c += grain)
          for (std::int64_t odd = 0; odd < (is_paired ? 2 : 1); ++odd) {
            for (std::int64_t i = 0; i < kTileLines; ++i, to += kRowNumbers) {
              const std::int64_t channel = 2 * i % grain;
              const std::int64_t tap = is_paired ? 2 * step - odd + 2 * i / grain : step;
              const bool is_inside = tap >= 0 && tap < args.columns;
              const float* const from =
                  column + ((row * args.columns + tap) * args.channels + c + channel) * args.panel;
              pack_rounded_line(is_inside ? from : nullptr, is_inside ? from + args.panel : nullptr,
                                to);
            }
          }
  }
}

// Whether all of it may be split: then no product with the zeros of a pair is NaN.
inline bool lay_out_rounded(const SplitWindowArgs& args, const RoundedLayout& layout,
                            std::uint16_t* to) {
  const Vec limit = broadcast(kMostSplit);
  Mask are_small = first_lanes(kWidth);
  const std::int64_t channels = args.frame.channels;
  const auto put = [&](TwoVectors two, std::uint16_t* place) {
    are_small &= small_lanes(two, limit);
    _mm512_storeu_si512(place, first_part_of(two));
  };
  for (std::int64_t c = 0; c < channels; c += layout.grain, to += layout.block) {
    over_frame(
        layout.frame, args.x + c, layout.pixels,
        [&](std::int64_t pixel, const float* from, bool is_pair) {
          std::uint16_t* const place = to + pixel * layout.grain;
          if (!layout.is_paired) {
            put({load(from), load(from + kWidth)}, place);
            if (is_pair) put({load(from + channels), load(from + channels + kWidth)}, place + 32);
          } else if (is_pair) {
            put({load(from), load(from + channels)}, place);
          } else {
            // The last of a line, which zeros follow.
            put({load(from), broadcast(0.0f)}, place);
          }
        },
        [&](std::int64_t pixel, std::int64_t count) {
          std::uint16_t* const place = to + pixel * layout.grain;
          for (std::int64_t i = 0; i < count * layout.grain; i += kWidth)
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(place + i), _mm256_setzero_si256());
        });
  }
  return are_small == first_lanes(kWidth);
}

// One or two tiles of x times one or two of filters: sums of tile i of x and j of filters are in
// register 2 i + j.
template <int Xs, int Filters>
void multiply_rounded_tiles(const RoundedLayout& layout, const std::uint16_t* x,
                            const std::uint16_t* filters, std::int64_t distance) {
  const SplitFrame& frame = layout.frame;
  const std::int64_t blocks = frame.channels / layout.grain, steps = layout.steps_of_row();
  const std::int64_t next = (layout.is_paired ? 2 : 1) * kTileNumbers;
  zero_tiles<4>();
  for (std::int64_t row = 0; row < frame.rows; ++row)
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::uint16_t* at = x + row * frame.line * layout.grain + step * kRowNumbers;
      for (std::int64_t block = 0; block < blocks; ++block, at += layout.block, filters += next) {
        tile_load<4>(at, kRowBytes);
        tile_load<6>(filters, kTileLine);
        tile_multiply<0, 4, 6>();
        if constexpr (Filters == 2) {
          tile_load<7>(filters + distance, kTileLine);
          tile_multiply<1, 4, 7>();
        }
        if constexpr (Xs == 2) {
          tile_load<5>(at + kTileLines * kRowNumbers, kRowBytes);
          tile_multiply<2, 5, 6>();
          if constexpr (Filters == 2) tile_multiply<3, 5, 7>();
        }
      }
    }
}

// To nearest even by the processor's own conversion, as operands are; what is subnormal is 0.
[[gnu::always_inline]] inline Vec rounded_result(Vec a) {
  const __m256i bits = __builtin_bit_cast(__m256i, _mm512_cvtneps_pbh(a.value));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}

// Results of 16 filters from `f` on, whose sums of the windows from `first` on lie `step` floats
// apart.
inline void store_rounded(const SplitWindowArgs& args, const SplitFrame& frame, std::int64_t f,
                          std::int64_t first, std::int64_t count, const float* sums,
                          std::int64_t step) {
  const Vec bias = args.bias != nullptr ? near_bf16(load(args.bias + f)) : broadcast(0.0f);
  const std::int64_t end = first + count;
  for (std::int64_t line = first / frame.line; line < frame.out_height; ++line) {
    const std::int64_t begin = line * frame.line;
    if (begin >= end) break;
    const std::int64_t from = first > begin ? first - begin : 0;
    const std::int64_t to = end - begin < frame.out_width ? end - begin : frame.out_width;
    float* const y = args.y + line * frame.out_width * args.n + f;
    const float* const of_line = sums + (begin - first) * step;
    for (std::int64_t w = from; w < to; ++w)
      store(y + w * args.n, rounded_result(load(of_line + w * step) + bias));
  }
}

inline bool multiply_rounded_windows(const SplitWindowArgs& args) {
  const RoundedLayout layout(args.frame);
  auto* const memory = static_cast<unsigned char*>(args.scratch);
  auto* const x = reinterpret_cast<std::uint16_t*>(memory);
  auto* const sums = reinterpret_cast<float*>(memory + layout.sums);
  if (!lay_out_rounded(args, layout, x)) return false;
  const TileSession session;
  const SplitFrame& frame = layout.frame;
  const std::int64_t of_filters = layout.filter_tiles() * kTileNumbers;
  const std::int64_t groups = divide_up(layout.tiles, kTilesOfX);
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t tile = group * kTilesOfX;
    const bool has_two = tile + 1 < layout.tiles;
    const std::uint16_t* const from = x + tile * kTileLines * kRowNumbers;
    // As for floats: what comes next arrives meanwhile.
    ask_for<true>(args.y, group, groups, frame.out_height * frame.out_width * args.n);
    if (args.next != nullptr)
      ask_for<false>(args.next, group, groups, frame.height * frame.width * frame.channels);
    const std::int64_t first = tile * layout.windows;
    const std::int64_t count = (has_two ? 2 : 1) * layout.windows;
    // Two tiles of filters are what even and odd places see, or 16 filters and the next 16.
    const std::int64_t at_once = layout.is_paired ? kWindowGrain : 2 * kWindowGrain;
    const std::int64_t distance = layout.is_paired ? kTileNumbers : of_filters;
    for (std::int64_t f = 0; f < args.n; f += at_once) {
      const std::uint16_t* const filters = args.filters + f / kWindowGrain * of_filters;
      const bool has_more = layout.is_paired || f + kWindowGrain < args.n;
      if (has_more && has_two)
        multiply_rounded_tiles<2, 2>(layout, from, filters, distance);
      else if (has_more)
        multiply_rounded_tiles<1, 2>(layout, from, filters, distance);
      else if (has_two)
        multiply_rounded_tiles<2, 1>(layout, from, filters, distance);
      else
        multiply_rounded_tiles<1, 1>(layout, from, filters, distance);
      // Lines of both take turns.
      constexpr std::int64_t kNextX = 2 * kTileLines * kTileLines;
      tile_store<0>(sums, 2 * kTileLine);
      tile_store<1>(sums + kTileLines, 2 * kTileLine);
      tile_store<2>(sums + kNextX, 2 * kTileLine);
      tile_store<3>(sums + kNextX + kTileLines, 2 * kTileLine);
      if (layout.is_paired) {
        store_rounded(args, frame, f, first, count, sums, kTileLines);
        continue;
      }
      for (std::int64_t more = 0; more < (has_more ? 2 : 1); ++more)
        store_rounded(args, frame, f + more * kWindowGrain, first, count, sums + more * kTileLines,
                      2 * kTileLines);
    }
  }
  return true;
}

inline void pack_window_filters(const SplitFilterArgs& args) {
  if (args.is_rounded) return pack_rounded_filters(args);
  pack_split_filters(args);
}

inline std::int64_t window_scratch_bytes(const SplitFrame& frame, std::int64_t) {
  const std::int64_t of_parts = WindowScratch(frame).size, rounded = RoundedLayout(frame).size;
  return of_parts > rounded ? of_parts : rounded;
}

inline bool multiply_windows(const SplitWindowArgs& args) {
  return args.is_rounded ? multiply_rounded_windows(args) : multiply_split_windows(args);
}
