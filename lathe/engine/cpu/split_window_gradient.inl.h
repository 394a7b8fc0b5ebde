// The gradient of a convolution's filters in tile registers, from floats that are sums of three
// bfloat16 numbers each or from rounded ones, for a file that has included split_windows.inl.h and
// window_gradient_layout.inl.h: see split_window_table.h.
//
// 16 filters of 32 pixels of dy are a tile of each part, and 32 pixels of 16 channels of x wherever
// they begin. A tap's sums have a register of their own.

constexpr int kMostTaps = 5;
// Steps whose numbers are near while all taps meet them: of parts in the nearest cache; of rounded
// numbers there are so few that sums are better left in registers for longer.
constexpr std::int64_t gradient_steps(bool is_rounded) {
  return is_rounded ? 32 : 4;
}

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

inline void add_rounded_laid_out(const SplitWindowGradientArgs& args,
                                 const GradientScratch& scratch) {
  add_laid_out<true>(args, scratch);
}

inline bool add_split_gradient(const SplitWindowGradientArgs& args) {
  const SplitFrame& frame = args.frame;
  const GradientScratch scratch(frame, args.n, false);
  for (std::int64_t i = 0; i < args.images; ++i) {
    const Lying x = behind(args.x, i * frame.height * frame.width * frame.channels);
    const Lying dy = behind(args.dy, i * frame.out_height * frame.out_width * args.n);
    auto* const place = reinterpret_cast<std::uint16_t*>(static_cast<unsigned char*>(args.scratch) +
                                                         i * scratch.size);
    if (!lay_out_turned(frame, args.n, scratch, static_cast<const float*>(dy.at),
                        place + scratch.dy / 2) ||
        !lay_out_pairs(frame, scratch, static_cast<const float*>(x.at), place))
      return false;
  }
  add_laid_out<false>(args, scratch);
  return true;
}
