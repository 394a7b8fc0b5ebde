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
constexpr std::int64_t kSumNumbers = 4 * kTileLines * kTileLines;
// Of filters, beside the image that they meet.
constexpr std::int64_t kNearBytes = std::int64_t{1} << 15;

struct RoundedLayout {
  SplitFrame frame;                         // with lines of an even length
  bool is_paired;                           // two pixels of 16 channels a row
  std::int64_t grain;                       // channels of a row that belong to one pixel
  std::int64_t windows;                     // of a tile of x
  std::int64_t tiles, pixels, block, sums;  // `block`: numbers of so many channels

  // `least`: pixels that are laid out at least, zeros behind them included.
  explicit RoundedLayout(const SplitFrame& given, std::int64_t least = 0)
      : frame(given), is_paired(given.channels % kRowNumbers != 0) {
    frame.line += frame.line % 2;
    grain = is_paired ? kWindowGrain : kRowNumbers;
    windows = is_paired ? 2 * kTileLines : kTileLines;
    tiles = divide_up(flat_windows(frame), windows);
    pixels = tiles * windows + flat_reach(frame) + 2;
    const std::int64_t lines = (frame.out_height + frame.rows - 1) * frame.line;
    if (pixels < lines) pixels = lines;
    if (pixels < least) pixels = least;
    pixels += pixels % 2;
    block = pixels * grain;
    sums = frame.channels / grain * block * 2;
  }
  // With the sums of four tiles behind the image, and behind them a number for each filter.
  std::int64_t size(std::int64_t n) const { return sums + (kSumNumbers + n) * 4; }
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

// Rounds an image: `make(c)` gives what makes 16 channels from c on of the pixel that begins at
// place `at`. Whether all of it is below the limit: then no product with the zeros of a pair is
// NaN.
template <typename Make>
[[gnu::always_inline]] inline bool lay_out_rounded(const RoundedLayout& layout, float most,
                                                   const Make& make, std::uint16_t* to) {
  const Vec limit = broadcast(most);
  Mask are_small = first_lanes(kWidth);
  const std::int64_t channels = layout.frame.channels;
  const auto put = [&](TwoVectors two, std::uint16_t* place) {
    are_small &= small_lanes(two, limit);
    _mm512_storeu_si512(place, first_part_of(two));
  };
  for (std::int64_t c = 0; c < channels; c += layout.grain, to += layout.block) {
    const auto lower = make(c), upper = make(layout.is_paired ? c : c + kWidth);
    over_frame(
        layout.frame, layout.pixels,
        [&](std::int64_t pixel, std::int64_t at, bool is_pair) {
          std::uint16_t* const place = to + pixel * layout.grain;
          at *= channels;
          if (!layout.is_paired) {
            put({lower(at), upper(at)}, place);
            if (is_pair) put({lower(at + channels), upper(at + channels)}, place + kRowNumbers);
          } else if (is_pair) {
            put({lower(at), lower(at + channels)}, place);
          } else {
            // The last of a line, which zeros follow.
            put({lower(at), broadcast(0.0f)}, place);
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

inline std::int64_t number_bytes(bool is_narrow) {
  return is_narrow ? 2 : 4;
}
inline Lying behind(Lying a, std::int64_t count) {
  return {static_cast<const char*>(a.at) + count * number_bytes(a.is_narrow), a.is_narrow};
}
inline Written behind(Written a, std::int64_t count) {
  return {static_cast<char*>(a.at) + count * number_bytes(a.is_narrow), a.is_narrow};
}
[[gnu::always_inline]] inline Vec widened(__m256i a) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(a), 16))};
}
[[gnu::always_inline]] inline Vec load(Lying a, std::int64_t at) {
  if (!a.is_narrow) return load(static_cast<const float*>(a.at) + at);
  return widened(_mm256_loadu_si256(
      reinterpret_cast<const __m256i*>(static_cast<const std::uint16_t*>(a.at) + at)));
}
// To nearest even by the processor's own conversion, as operands are; what is subnormal is 0.
[[gnu::always_inline]] inline __m256i rounded(Vec a) {
  return __builtin_bit_cast(__m256i, _mm512_cvtneps_pbh(a.value));
}
// What is written to narrow places is a bfloat16 number.
[[gnu::always_inline]] inline void store(Written a, std::int64_t at, Vec value) {
  if (!a.is_narrow) return store(static_cast<float*>(a.at) + at, value);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(static_cast<std::uint16_t*>(a.at) + at),
                      rounded(value));
}

// Images as they lie.
struct LyingPixels {
  Lying x;
  [[gnu::always_inline]] Vec operator()(std::int64_t at) const { return load(x, at); }
};

// Those that a norm and relu make.
template <bool HasResidual, bool IsKept>
struct FrontPixels {
  Lying x, residual;
  float* made;
  Vec center, slope, bias;

  FrontPixels(const WindowFront& front, Lying given, std::int64_t c)
      : x(behind(given, c)),
        residual(HasResidual ? behind(front.residual, c) : Lying{}),
        made(IsKept ? front.made + c : nullptr),
        center(load(front.center + c)),
        slope(load(front.slope + c)),
        bias(load(front.bias + c)) {}
  [[gnu::always_inline]] Vec operator()(std::int64_t at) const {
    Vec y = fma(load(x, at) - center, slope, bias);
    if constexpr (HasResidual) y = y + load(residual, at);
    y = max(broadcast(0.0f), y);
    if constexpr (IsKept) store(made + at, y);
    return y;
  }
};

template <bool HasResidual, bool IsKept>
bool lay_out_front_of(const RoundedLayout& layout, float most, const WindowFront& front, Lying x,
                      std::uint16_t* to) {
  return lay_out_rounded(
      layout, most, [&](std::int64_t c) { return FrontPixels<HasResidual, IsKept>(front, x, c); },
      to);
}

inline bool lay_out_x(const RoundedLayout& layout, float most, const WindowFront& front, Lying x,
                      std::uint16_t* to) {
  if (front.center == nullptr)
    return lay_out_rounded(
        layout, most, [&](std::int64_t c) { return LyingPixels{behind(x, c)}; }, to);
  if (front.residual.at != nullptr)
    return front.made != nullptr ? lay_out_front_of<true, true>(layout, most, front, x, to)
                                 : lay_out_front_of<true, false>(layout, most, front, x, to);
  return front.made != nullptr ? lay_out_front_of<false, true>(layout, most, front, x, to)
                               : lay_out_front_of<false, false>(layout, most, front, x, to);
}

// Some tiles of x times some of filters, four sums in all: those of tile i of x and j of filters
// are in register `Filters` i + j. `between` is called after each step, for vectors have nothing to
// do meanwhile.
template <int Filters, typename Between>
[[gnu::always_inline]] inline void multiply_rounded_tiles(
    const RoundedLayout& layout, std::int64_t tiles, const std::uint16_t* x,
    const std::uint16_t* filters, std::int64_t distance, const Between& between) {
  const SplitFrame& frame = layout.frame;
  const std::int64_t blocks = frame.channels / layout.grain, steps = layout.steps_of_row();
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

[[gnu::always_inline]] inline Vec rounded_result(Vec a) {
  return widened(rounded(a));
}

// Adds a vector to 16 numbers.
[[gnu::always_inline]] inline void add_doubles(double* to, Vec a) {
  const auto add = [](double* place, __m256 half) {
    _mm512_storeu_pd(place, _mm512_add_pd(_mm512_loadu_pd(place), _mm512_cvtps_pd(half)));
  };
  add(to, _mm512_castps512_ps256(a.value));
  add(to + kWidth / 2, upper_half(a.value));
}

// Adds up what add(i, a, b) adds to two vectors for each i below `count`, and that to 16 numbers of
// sums[2, n] each. Neighbours add to vectors of their own, so that no addition waits for the last.
template <typename Add>
[[gnu::always_inline]] inline void add_both_sums(std::int64_t count, const Add& add, double* sums,
                                                 std::int64_t n) {
  const Vec zero = broadcast(0.0f);
  Vec a[2] = {zero, zero}, b[2] = {zero, zero};
  std::int64_t i = 0;
  for (; i + 2 <= count; i += 2) add(i, a[0], b[0]), add(i + 1, a[1], b[1]);
  if (i < count) add(i, a[0], b[0]);
  add_doubles(sums, a[0] + a[1]);
  add_doubles(sums + n, b[0] + b[1]);
}

// Writes the results of 16 filters, and sums how far they are from the first one of the image and
// the squares of that: of a line in floats.
template <bool HasMoments>
struct RoundedResults {
  Written y;
  std::int64_t n;
  Vec bias;
  float* first;  // [n]
  double* sums;  // [2, n]

  RoundedResults(const SplitWindowArgs& args, float* place, std::int64_t f)
      : y(behind(args.y, f)),
        n(args.n),
        bias(args.bias != nullptr ? near_bf16(load(args.bias + f)) : broadcast(0.0f)),
        first(place + f),
        sums(HasMoments ? args.moments + f : nullptr) {}

  // Those of some neighbouring windows, from number `at` on, whose sums lie `step` floats apart.
  [[gnu::always_inline]] void operator()(std::int64_t at, std::int64_t count, const float* from,
                                         std::int64_t step) const {
    const auto result = [&](std::int64_t i) {
      return rounded_result(load(from + i * step) + bias);
    };
    const Written to = behind(y, at * n);
    if constexpr (!HasMoments) {
      for (std::int64_t i = 0; i < count; ++i) store(to, i * n, result(i));
      return;
    }
    if (at == 0) store(first, result(0));
    const Vec origin = load(first);
    const auto add = [&](std::int64_t i, Vec& total, Vec& squares) {
      const Vec value = result(i), distance = value - origin;
      store(to, i * n, value);
      total = total + distance;
      squares = fma(distance, distance, squares);
    };
    add_both_sums(count, add, sums, n);
  }
};

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
  const SplitFrame& frame = layout.frame;
  const std::int64_t of_filters = layout.filter_tiles() * kTileNumbers;
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
  const std::int64_t steps = groups * divide_up(n, at_once) * frame.rows * layout.steps_of_row() *
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

template <bool HasMoments>
void multiply_rounded_windows_of(const SplitWindowArgs& args, const RoundedLayout& layout,
                                 const std::uint16_t* x, float* sums) {
  const SplitFrame& frame = args.frame;
  const std::int64_t read = frame.height * frame.width * frame.channels;
  const std::int64_t windows = frame.out_height * frame.out_width;
  const TileSession session;
  multiply_laid_out(
      layout, args.n, x, args.filters, sums,
      [&](std::int64_t f) { return RoundedResults<HasMoments>(args, sums + kSumNumbers, f); },
      // As for floats: what comes next arrives meanwhile.
      [&](std::int64_t part, std::int64_t parts) {
        ask_for<true>(args.y.at, part, parts, windows * args.n * number_bytes(args.y.is_narrow));
        if (args.next != nullptr)
          ask_for<false>(args.next, part, parts, read * number_bytes(args.x.is_narrow));
      });
  if constexpr (HasMoments) {
    // The mean, and the squares of the distances from it.
    const auto count = static_cast<double>(windows);
    for (std::int64_t f = 0; f < args.n; ++f) {
      const double mean = args.moments[f] / count;
      args.moments[args.n + f] -= mean * args.moments[f];
      args.moments[f] = mean + (sums + kSumNumbers)[f];
    }
  }
}

inline bool multiply_rounded_windows(const SplitWindowArgs& args) {
  const RoundedLayout layout(args.frame);
  auto* const memory = static_cast<unsigned char*>(args.scratch);
  auto* const x = reinterpret_cast<std::uint16_t*>(memory);
  auto* const sums = reinterpret_cast<float*>(memory + layout.sums);
  if (!lay_out_x(layout, kMostSplit, args.front, args.x, x)) return false;
  if (args.moments == nullptr) {
    multiply_rounded_windows_of<false>(args, layout, x, sums);
    return true;
  }
  for (std::int64_t i = 0; i < 2 * args.n; ++i) args.moments[i] = 0;
  multiply_rounded_windows_of<true>(args, layout, x, sums);
  return true;
}

inline void pack_window_filters(const SplitFilterArgs& args) {
  if (args.is_rounded) return pack_rounded_filters(args);
  pack_split_filters(args);
}

inline std::int64_t window_scratch_bytes(const SplitFrame& frame, std::int64_t n) {
  const std::int64_t of_parts = WindowScratch(frame).size, rounded = RoundedLayout(frame).size(n);
  return of_parts > rounded ? of_parts : rounded;
}

inline bool multiply_windows(const SplitWindowArgs& args) {
  return args.is_rounded ? multiply_rounded_windows(args) : multiply_split_windows(args);
}
