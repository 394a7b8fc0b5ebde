// The gradient of a convolution's filters from floats that are sums of three bfloat16 numbers each,
// for a file that has included split_windows.inl.h: see split_window_table.h.
//
// The sum goes over pixels, two in each word of a tile. dy is turned around: 16 filters of 32
// pixels are a tile of each part. Of x, pairs of neighbours lie in lines of 16 channels, which are
// a tile wherever they begin; windows at odd distances see other pairs, so there are two copies.
// Between two lines both have zeros. A tap's sums have a register of their own. Rounded numbers,
// which have one part, are laid out as rounded_windows.inl.h does it, and both are made of that.

constexpr std::int64_t kGradientStep = 32;
constexpr int kMostTaps = 5;
// Steps whose numbers are near while all taps meet them: of parts in the nearest cache; of rounded
// numbers there are so few that sums are better left in registers for longer.
constexpr std::int64_t gradient_steps(bool is_rounded) {
  return is_rounded ? 32 : 4;
}
constexpr std::int64_t kPairNumbers = 2 * kWindowGrain;

struct GradientScratch {
  SplitFrame frame;                   // with lines of an even length where numbers are rounded
  std::int64_t parts;                 // of a number
  std::int64_t steps, pixels, pairs;  // of a copy
  std::int64_t copy, block;           // of x, numbers: of one pairing, and of 16 channels
  std::int64_t dy, size;
  GradientScratch(const SplitFrame& given, std::int64_t n, bool is_rounded)
      : frame(given), parts(is_rounded ? 1 : kParts) {
    if (is_rounded) frame.line += frame.line % 2;
    steps = divide_up(flat_windows(frame), kGradientStep);
    pixels = steps * kGradientStep + flat_reach(frame);
    const std::int64_t lines = (frame.out_height + frame.rows - 1) * frame.line;
    if (pixels < lines) pixels = lines;
    pairs = (pixels + 3) / 2;  // one more, for the last of those at odd distances
    copy = parts * pairs * kPairNumbers;
    block = 2 * copy;
    dy = frame.channels / kWindowGrain * block * 2;
    size = dy + n * steps * kGradientStep * parts * 2;  // a multiple of a cache line
  }
};

// Goes through the pixels of an image, `line` from one line to the next, and zeros at the others.
struct FlatPixels {
  const float* from;
  std::int64_t step, width, height;  // floats of a pixel; pixels of a line; lines
  std::int64_t begin, line;  // where a line begins, zeros included, and its pixels with them
  std::int64_t row;          // of the next: negative in front of the first
  std::int64_t column = begin;

  [[gnu::always_inline]] Vec next() {
    const bool is_inside = column >= 0 && column < width && row >= 0 && row < height;
    const Vec pixel = is_inside ? load(from + (row * width + column) * step) : broadcast(0.0f);
    if (++column == begin + line) {
      column = begin;
      ++row;
    }
    return pixel;
  }
};

// The first halves of two pixels of 16 channels and then the second: pairs in each channel.
inline __m512i pair_order() {
  alignas(64) std::uint16_t order[kPairNumbers];
  for (std::uint16_t i = 0; i < kPairNumbers; ++i)
    order[i] = static_cast<std::uint16_t>(i % 2 * kWindowGrain + i / 2);
  return _mm512_load_si512(order);
}

// The parts of x by pairs of pixels; whether all of it may be split.
inline bool lay_out_pairs(const SplitFrame& frame, const GradientScratch& parts, const float* x,
                          std::uint16_t* to) {
  const Vec limit = broadcast(kMostSplitGradient);
  Mask are_small = first_lanes(kWidth);
  const __m512i in_pairs = pair_order();
  const std::int64_t part_numbers = parts.pairs * kPairNumbers;
  for (std::int64_t c = 0; c < frame.channels; c += kWindowGrain, to += parts.block) {
    FlatPixels pixels{.from = x + c,
                      .step = frame.channels,
                      .width = frame.width,
                      .height = frame.height,
                      .begin = -frame.left,
                      .line = frame.line,
                      .row = -frame.top};
    SplitParts before{};
    for (std::int64_t i = 0; i < parts.pairs; ++i) {
      const Vec first = pixels.next();
      const TwoVectors two{first, pixels.next()};
      are_small &= small_lanes(two, limit);
      const SplitParts now = parts_of(two);
#pragma GCC unroll 3
      for (int part = 0; part < kParts; ++part) {
        std::uint16_t* const line = to + part * part_numbers + i * kPairNumbers;
        _mm512_store_si512(line, _mm512_permutexvar_epi16(in_pairs, now.bits[part]));
        // The second pixel of the pair before and the first of this one.
        if (i > 0)
          _mm512_store_si512(
              line + parts.copy - kPairNumbers,
              _mm512_permutexvar_epi16(in_pairs,
                                       _mm512_alignr_epi64(now.bits[part], before.bits[part], 4)));
      }
      before = now;
    }
  }
  return are_small == first_lanes(kWidth);
}

// The parts of dy turned around; whether all of it may be split.
inline bool lay_out_turned(const SplitFrame& frame, std::int64_t n, const GradientScratch& parts,
                           const float* dy, std::uint16_t* to) {
  const Vec limit = broadcast(kMostSplitGradient);
  Mask are_small = first_lanes(kWidth);
  for (std::int64_t f = 0; f < n; f += kWindowGrain) {
    FlatPixels windows{.from = dy + f,
                       .step = n,
                       .width = frame.out_width,
                       .height = frame.out_height,
                       .begin = 0,
                       .line = frame.line,
                       .row = 0};
    for (std::int64_t step = 0; step < parts.steps; ++step, to += kParts * kTileNumbers) {
      Vec halves[2][kWidth];
      for (auto& half : halves) {
        for (Vec& row : half) {
          row = windows.next();
          are_small &= less(abs(row), limit);
        }
        transpose(half);
      }
      for (std::int64_t i = 0; i < kWidth; ++i)
        store_parts({halves[0][i], halves[1][i]}, kTileNumbers, to + i * kGradientStep);
    }
  }
  return are_small == first_lanes(kWidth);
}

// What a rounded image holds of 16 channels, or filters, from c on: 64 bytes of a pixel and the
// one behind it.
struct RoundedPixels {
  const std::uint16_t* from;
  std::int64_t step;  // numbers of a pixel

  RoundedPixels(const RoundedLayout& layout, const std::uint16_t* image, std::int64_t c)
      : from(image + c / layout.grain * layout.block + c % layout.grain), step(layout.grain) {}
  [[gnu::always_inline]] __m512i two(std::int64_t pixel) const {
    const std::uint16_t* const at = from + pixel * step;
    if (step == kWindowGrain) return _mm512_loadu_si512(at);
    const auto half = [](const std::uint16_t* place) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(place));
    };
    return _mm512_inserti64x4(_mm512_castsi256_si512(half(at)), half(at + step), 1);
  }
};

// Both of a rounded image: x in pairs of pixels, and dy, which begins at pixel `first` of what is
// laid out, turned around.
inline void put_rounded_pairs(const RoundedLayout& layout, const GradientScratch& scratch,
                              const std::uint16_t* x, std::uint16_t* to) {
  const __m512i in_pairs = pair_order();
  const bool has_odd = scratch.frame.columns > 1;
  for (std::int64_t c = 0; c < scratch.frame.channels; c += kWindowGrain, to += scratch.block) {
    const RoundedPixels pixels(layout, x, c);
    for (std::int64_t i = 0; i < scratch.pairs; ++i) {
      std::uint16_t* const line = to + i * kPairNumbers;
      _mm512_store_si512(line, _mm512_permutexvar_epi16(in_pairs, pixels.two(2 * i)));
      if (has_odd)
        _mm512_store_si512(line + scratch.copy,
                           _mm512_permutexvar_epi16(in_pairs, pixels.two(2 * i + 1)));
    }
  }
}
inline void put_rounded_turned(const RoundedLayout& layout, const GradientScratch& scratch,
                               std::int64_t first, std::int64_t n, const std::uint16_t* dy,
                               std::uint16_t* to) {
  const __m512i in_pairs = pair_order();
  for (std::int64_t f = 0; f < n; f += kWindowGrain) {
    const RoundedPixels windows(layout, dy, f);
    for (std::int64_t step = 0; step < scratch.steps; ++step, to += kTileNumbers) {
      Vec rows[kWidth];
      for (std::int64_t i = 0; i < kWidth; ++i)
        rows[i] = {_mm512_castsi512_ps(
            _mm512_permutexvar_epi16(in_pairs, windows.two(first + step * kGradientStep + 2 * i)))};
      transpose(rows);
      for (std::int64_t i = 0; i < kWidth; ++i)
        _mm512_store_ps(to + i * kGradientStep, rows[i].value);
    }
  }
}

// How an image of x and one of dy are laid out for that: the latter as if its windows were pixels.
struct RoundedPair {
  RoundedLayout x, dy;
  RoundedPair(const GradientScratch& scratch, std::int64_t n)
      : x(scratch.frame, 2 * scratch.pairs + 2),
        dy({.height = scratch.frame.out_height,
            .width = scratch.frame.out_width,
            .channels = n,
            .rows = 1,
            .columns = 1,
            .top = 0,
            .left = 0,
            .out_height = scratch.frame.out_height,
            .out_width = scratch.frame.out_width,
            .line = scratch.frame.line},
           scratch.steps * kGradientStep + 2) {}
};

inline std::int64_t window_gradient_scratch_bytes(const SplitFrame& frame, std::int64_t n) {
  const GradientScratch rounded(frame, n, true), in_parts(frame, n, false);
  const RoundedPair pair(rounded, n);
  const std::int64_t size = rounded.size + pair.x.sums + pair.dy.sums;
  return size > in_parts.size ? size : in_parts.size;
}

// Some taps of 16 filters and 16 channels.
struct GradientTaps {
  std::int64_t steps, pairs;
  const std::uint16_t* dy;
  const std::uint16_t* x[kMostTaps];
  float* dw[kMostTaps];
  std::int64_t dw_bytes;  // from a filter to the next
  bool accumulate;
  bool begins, ends;  // or the sums are in their registers, and stay there
};

template <int Taps, int At = 0>
[[gnu::always_inline]] inline void start_taps(const GradientTaps& taps) {
  if constexpr (At < Taps) {
    if (taps.accumulate)
      tile_load<At>(taps.dw[At], taps.dw_bytes);
    else
      tile_zero<At>();
    start_taps<Taps, At + 1>(taps);
  }
}
template <int Taps, int At = 0>
[[gnu::always_inline]] inline void store_taps(const GradientTaps& taps) {
  if constexpr (At < Taps) {
    tile_store<At>(taps.dw[At], taps.dw_bytes);
    store_taps<Taps, At + 1>(taps);
  }
}
// The part of dy in register 5 times what each tap sees of x.
template <int Taps, int At = 0>
[[gnu::always_inline]] inline void multiply_taps(const GradientTaps& taps, std::int64_t at) {
  if constexpr (At < Taps) {
    tile_load<6 + At % 2>(taps.x[At] + at, kTileLine);
    tile_multiply<At, 5, 6 + At % 2>();
    multiply_taps<Taps, At + 1>(taps, at);
  }
}

template <bool IsRounded, int Taps>
void add_taps(const GradientTaps& taps) {
  static_assert(Taps <= kMostTaps);
  if (taps.begins) start_taps<Taps>(taps);
  const std::int64_t part = taps.pairs * kPairNumbers;
  for (std::int64_t step = 0; step < taps.steps; ++step) {
    const std::uint16_t* const dy = taps.dy + step * (IsRounded ? 1 : kParts) * kTileNumbers;
    const std::int64_t x = step * kTileNumbers;
    if constexpr (!IsRounded) {
      tile_load<5>(dy + 2 * kTileNumbers, kTileLine);
      multiply_taps<Taps>(taps, x);
      tile_load<5>(dy + kTileNumbers, kTileLine);
      multiply_taps<Taps>(taps, x);
      multiply_taps<Taps>(taps, x + part);
    }
    tile_load<5>(dy, kTileLine);
    if constexpr (!IsRounded) {
      multiply_taps<Taps>(taps, x + 2 * part);
      multiply_taps<Taps>(taps, x + part);
    }
    multiply_taps<Taps>(taps, x);
  }
  if (taps.ends) store_taps<Taps>(taps);
}

template <bool IsRounded, int Taps = kMostTaps>
void add_up_to(const GradientTaps& taps, std::int64_t count) {
  if constexpr (Taps > 1)
    if (count < Taps) return add_up_to<IsRounded, Taps - 1>(taps, count);
  add_taps<IsRounded, Taps>(taps);
}

// The products of some images that are laid out one behind another.
template <bool IsRounded>
void add_laid_out(const SplitWindowGradientArgs& args, const GradientScratch& scratch) {
  const SplitFrame& frame = scratch.frame;
  auto* const memory = static_cast<unsigned char*>(args.scratch);
  const TileSession session;
  const std::int64_t taps = frame.rows * frame.columns, groups = divide_up(taps, kMostTaps);
  // The steps of all images are counted through, and cut again where an image ends.
  const std::int64_t steps = args.images * scratch.steps;
  for (std::int64_t begin = 0; begin < steps; begin += gradient_steps(IsRounded)) {
    const std::int64_t rest = steps - begin;
    const std::int64_t end =
        begin + (rest < gradient_steps(IsRounded) ? rest : gradient_steps(IsRounded));
    for (std::int64_t c = 0; c < frame.channels; c += kWindowGrain)
      for (std::int64_t f = 0; f < args.n; f += kWindowGrain)
        for (std::int64_t group = 0; group < groups; ++group) {
          const std::int64_t first = group * taps / groups;
          const std::int64_t count = (group + 1) * taps / groups - first;
          for (std::int64_t at = begin; at < end;) {
            const std::int64_t image = at / scratch.steps, step = at % scratch.steps;
            const std::int64_t of_image = scratch.steps - step;
            unsigned char* const place = memory + image * scratch.size;
            const auto* const x = reinterpret_cast<const std::uint16_t*>(place);
            const auto* const dy = reinterpret_cast<const std::uint16_t*>(place + scratch.dy);
            GradientTaps some{
                .steps = end - at < of_image ? end - at : of_image,
                .pairs = scratch.pairs,
                .dy = dy + (f / kWindowGrain * scratch.steps + step) * scratch.parts * kTileNumbers,
                .x = {},
                .dw = {},
                .dw_bytes = args.dw_stride * 4,
                .accumulate = args.accumulate || begin > 0,
                .begins = at == begin,
                .ends = end - at <= of_image};
            for (std::int64_t t = 0; t < count; ++t) {
              const std::int64_t tap = first + t;
              const std::int64_t shift = tap / frame.columns * frame.line + tap % frame.columns;
              some.x[t] = x + c / kWindowGrain * scratch.block + shift % 2 * scratch.copy +
                          (step * kGradientStep + shift) / 2 * kPairNumbers;
              some.dw[t] = args.dw + f * args.dw_stride + tap * frame.channels + c;
            }
            add_up_to<IsRounded>(some, count);
            at += some.steps;
          }
        }
  }
}

inline bool add_window_gradient(const SplitWindowGradientArgs& args) {
  const SplitFrame& frame = args.frame;
  const GradientScratch scratch(frame, args.n, args.is_rounded);
  const RoundedPair pair(scratch, args.n);
  auto* const memory = static_cast<unsigned char*>(args.scratch);
  auto* const rounded = reinterpret_cast<std::uint16_t*>(memory + args.images * scratch.size);
  for (std::int64_t i = 0; i < args.images; ++i) {
    const Lying x = behind(args.x, i * frame.height * frame.width * frame.channels);
    const Lying dy = behind(args.dy, i * frame.out_height * frame.out_width * args.n);
    auto* const x_place = reinterpret_cast<std::uint16_t*>(memory + i * scratch.size);
    auto* const dy_place = x_place + scratch.dy / 2;
    if (!args.is_rounded) {
      if (!lay_out_turned(frame, args.n, scratch, static_cast<const float*>(dy.at), dy_place) ||
          !lay_out_pairs(frame, scratch, static_cast<const float*>(x.at), x_place))
        return false;
      continue;
    }
    std::uint16_t* const rounded_dy = rounded + pair.x.sums / 2;
    if (!lay_out_x(pair.x, kMostSplitGradient, {}, x, rounded) ||
        !lay_out_x(pair.dy, kMostSplitGradient, {}, dy, rounded_dy))
      return false;
    put_rounded_pairs(pair.x, scratch, rounded, x_place);
    put_rounded_turned(pair.dy, scratch, 0, args.n, rounded_dy, dy_place);
  }
  if (args.is_rounded)
    add_laid_out<true>(args, scratch);
  else
    add_laid_out<false>(args, scratch);
  return true;
}
