// Products of rounded images in tile registers, for a file that has included split_windows.inl.h
// and rounded_layout.inl.h: see split_window_table.h.
//
// A row of a tile is 32 numbers. Where channels come in 32s, they are those of a pixel, and a tile
// is 16 neighbouring pixels for a tap. 16 channels are those of two neighbours: 16 such pairs are
// what the windows at even places see of two taps, and those at odd places of another two. A window
// of three columns is two pairs instead of three taps; one of a pair's four products of taps is
// with zeros.

constexpr std::int64_t kRowBytes = 2 * kRowNumbers;
// Of filters, beside the image that they meet.
constexpr std::int64_t kNearBytes = std::int64_t{1} << 15;

// What a tile of x meets for a row of the window: taps, or pairs of them.
inline std::int64_t steps_of_row(const RoundedLayout& layout) {
  return layout.is_paired ? layout.frame.columns / 2 + 1 : layout.frame.columns;
}
// Tiles of filters that 16 filters have for all of a window.
inline std::int64_t filter_tiles(const RoundedLayout& layout) {
  return layout.frame.rows * steps_of_row(layout) * (layout.frame.channels / layout.grain) *
         (layout.is_paired ? 2 : 1);
}

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

// Some tiles of x times some of filters, four sums in all: those of tile i of x and j of filters
// are in register `Filters` i + j. `between` is called after each step, for vectors have nothing to
// do meanwhile.
template <int Filters, typename Between>
[[gnu::always_inline]] inline void multiply_rounded_tiles(
    const RoundedLayout& layout, std::int64_t tiles, const std::uint16_t* x,
    const std::uint16_t* filters, std::int64_t distance, const Between& between) {
  const SplitFrame& frame = layout.frame;
  const std::int64_t blocks = frame.channels / layout.grain, steps = steps_of_row(layout);
  const std::int64_t next = (layout.is_paired ? 2 : 1) * kTileNumbers;
  constexpr std::int64_t kTile = kTileLines * kRowNumbers;
  zero_tiles<4>();
  for (std::int64_t row = 0; row < frame.rows; ++row)
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::uint16_t* at = x + row * frame.line * layout.grain + step * kRowNumbers;
      for (std::int64_t block = 0; block < blocks; ++block, at += layout.block, filters += next) {
        tile_load<6>(filters, kTileLine);
        tile_load<4>(at, kRowBytes);
        tile_multiply<0, 4, 6>();
        if constexpr (Filters == 2) {
          tile_load<7>(filters + distance, kTileLine);
          tile_multiply<1, 4, 7>();
          if (tiles > 1) {
            tile_load<5>(at + kTile, kRowBytes);
            tile_multiply<2, 5, 6>();
            tile_multiply<3, 5, 7>();
          }
        } else if (tiles > 1) {
          tile_load<5>(at + kTile, kRowBytes);
          tile_multiply<1, 5, 6>();
          if (tiles > 2) {
            tile_load<4>(at + 2 * kTile, kRowBytes);
            tile_multiply<2, 4, 6>();
          }
          if (tiles > 3) {
            tile_load<5>(at + 3 * kTile, kRowBytes);
            tile_multiply<3, 5, 6>();
          }
        }
        between();
      }
    }
}

// Sums of tiles that wait to be taken: `results_of(f)` gives what takes those of 16 filters.
template <typename ResultsOf>
struct WaitingSums {
  const SplitFrame& frame;
  const ResultsOf& results_of;
  std::int64_t step;         // floats from a window to the next
  std::int64_t filters = 0;  // how many times 16
  std::int64_t first = 0, end = 0, line = 0, f = 0;
  const float* sums = nullptr;

  [[gnu::always_inline]] void take_line() {
    if (filters == 0) return;
    const std::int64_t begin = line * frame.line;
    const std::int64_t left = first > begin ? first - begin : 0;
    const std::int64_t right = end - begin < frame.out_width ? end - begin : frame.out_width;
    if (left < right)
      results_of(f)(line * frame.out_width + left, right - left,
                    sums + (begin + left - first) * step, step);
    ++line;
    if (line < frame.out_height && line * frame.line < end) return;
    line = first / frame.line;
    f += kWindowGrain;
    sums += kTileLines;
    --filters;
  }
};

// The windows of a laid out image times the filters; `meanwhile(part, parts)` asks for what comes
// next. The sums of some tiles are taken, line by line, while the next ones are multiplied.
template <typename ResultsOf, typename Meanwhile>
[[gnu::always_inline]] inline void multiply_laid_out(const RoundedLayout& layout, std::int64_t n,
                                                     const std::uint16_t* x,
                                                     const std::uint16_t* all_filters, float* sums,
                                                     const ResultsOf& results_of,
                                                     const Meanwhile& meanwhile) {
  const TileSession session;
  const SplitFrame& frame = layout.frame;
  const std::int64_t of_filters = filter_tiles(layout) * kTileNumbers;
  // Two tiles of filters are what even and odd places see, or 16 filters and the next 16. Filters
  // that the nearest cache does not keep had better meet four tiles of x, and an odd tile of them
  // has to.
  const bool are_far = 2 * n / kWindowGrain * of_filters > kNearBytes;
  const std::int64_t of_x = layout.is_paired || !(are_far || n % kRowNumbers != 0) ? 2 : 4;
  const std::int64_t at_once = layout.is_paired || of_x == 4 ? kWindowGrain : 2 * kWindowGrain;
  const std::int64_t distance = layout.is_paired ? kTileNumbers : of_filters;
  const std::int64_t groups = divide_up(layout.tiles, of_x);
  WaitingSums<ResultsOf> waiting{frame, results_of,
                                 at_once == kWindowGrain ? kTileLines : 2 * kTileLines};
  const std::int64_t steps = groups * divide_up(n, at_once) * frame.rows * steps_of_row(layout) *
                             (frame.channels / layout.grain);
  std::int64_t done = 0;
  const auto between = [&] {
    waiting.take_line();
    meanwhile(done++, steps);
  };
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t tile = group * of_x;
    const std::int64_t tiles = layout.tiles - tile < of_x ? layout.tiles - tile : of_x;
    const std::uint16_t* const from = x + tile * kTileLines * kRowNumbers;
    for (std::int64_t f = 0; f < n; f += at_once) {
      const std::uint16_t* const filters = all_filters + f / kWindowGrain * of_filters;
      if (of_x == 2)
        multiply_rounded_tiles<2>(layout, tiles, from, filters, distance, between);
      else
        multiply_rounded_tiles<1>(layout, tiles, from, filters, distance, between);
      while (waiting.filters > 0) waiting.take_line();
      // Lines of two tiles of filters take turns.
      constexpr std::int64_t kNext = kTileLines * kTileLines;
      const std::int64_t line = of_x == 2 ? 2 * kTileLine : kTileLine;
      const std::int64_t second = of_x == 2 ? kTileLines : kNext;
      tile_store<0>(sums, line);
      tile_store<1>(sums + second, line);
      tile_store<2>(sums + 2 * kNext, line);
      tile_store<3>(sums + 2 * kNext + second, line);
      waiting.first = tile * layout.windows;
      waiting.end = waiting.first + tiles * layout.windows;
      waiting.line = waiting.first / frame.line;
      waiting.f = f;
      waiting.sums = sums;
      waiting.filters = at_once / kWindowGrain;
    }
  }
  while (waiting.filters > 0) waiting.take_line();
}
