// Products of rounded images by an instruction that multiplies pairs of bfloat16 numbers, for a
// file that has included rounded_layout.inl.h and window_gradient_layout.inl.h: see
// split_window_table.h.
//
// A result is a vector of 16 filters, to which each instruction adds two channels of a pixel times
// two of every filter. As many pixels of a line as there are registers for are computed together;
// nothing is computed for the zeros between two lines.

constexpr int kMostDotRows = 14;
constexpr int kMostDotVectors = 2;

// Two numbers, in all lanes.
[[gnu::always_inline]] inline __m512bh broadcast_pair(const std::uint16_t* from) {
  std::int32_t bits;
  __builtin_memcpy(&bits, from, sizeof bits);
  return __builtin_bit_cast(__m512bh, _mm512_set1_epi32(bits));
}
[[gnu::always_inline]] inline __m512bh load_pairs(const std::uint16_t* from) {
  return __builtin_bit_cast(__m512bh, _mm512_loadu_si512(from));
}

// Filters in the order in which they are met: of 32, or of the last 16, rows of the window,
// columns, blocks of channels, and two channels of each.
inline void pack_rounded_dots(const SplitFilterArgs& args) {
  const std::int64_t depth = args.taps * args.channels;
  std::uint16_t* to = args.filters;
  for (std::int64_t f = 0; f < args.n; f += kMostDotVectors * kWindowGrain)
    for (std::int64_t k = 0; k < depth; k += 2)
      for (std::int64_t v = f; v < args.n && v < f + kMostDotVectors * kWindowGrain;
           v += kWindowGrain, to += kRowNumbers) {
        const float* const from =
            args.panels + (v / args.panel * depth + k) * args.panel + v % args.panel;
        store_bf16_pairs(reinterpret_cast<std::uint32_t*>(to), load(from), load(from + args.panel));
      }
}
inline std::int64_t dot_filters_size(std::int64_t taps, std::int64_t channels, std::int64_t n) {
  return taps * channels * n;
}

// sums[Rows, Vectors] of neighbouring windows, of which the first begins at x.
template <std::int64_t Grain, int Rows, int Vectors>
void multiply_dots(const RoundedLayout& layout, const std::uint16_t* x,
                   const std::uint16_t* filters, float* sums) {
  const SplitFrame& frame = layout.frame;
  const std::int64_t blocks = frame.channels / Grain;
  __m512 own[Rows][Vectors];
#pragma GCC unroll 16
  for (auto& row : own)
#pragma GCC unroll 16
    for (__m512& sum : row) sum = _mm512_setzero_ps();
  for (std::int64_t row = 0; row < frame.rows; ++row)
    for (std::int64_t column = 0; column < frame.columns; ++column) {
      const std::uint16_t* block = x + (row * frame.line + column) * Grain;
      for (std::int64_t b = 0; b < blocks; ++b, block += layout.block)
        for (std::int64_t c = 0; c < Grain; c += 2, filters += Vectors * kRowNumbers) {
          __m512bh columns[Vectors];
#pragma GCC unroll 16
          for (int v = 0; v < Vectors; ++v) columns[v] = load_pairs(filters + v * kRowNumbers);
#pragma GCC unroll 16
          for (int r = 0; r < Rows; ++r) {
            const __m512bh pair = broadcast_pair(block + c + r * Grain);
#pragma GCC unroll 16
            for (int v = 0; v < Vectors; ++v)
              own[r][v] = _mm512_dpbf16_ps(own[r][v], columns[v], pair);
          }
        }
    }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v)
      _mm512_storeu_ps(sums + (r * Vectors + v) * kWidth, own[r][v]);
}

template <std::int64_t Grain, int Vectors, int Rows = kMostDotRows>
void multiply_dots_up_to(const RoundedLayout& layout, std::int64_t rows, const std::uint16_t* x,
                         const std::uint16_t* filters, float* sums) {
  if constexpr (Rows > 1)
    if (rows < Rows)
      return multiply_dots_up_to<Grain, Vectors, Rows - 1>(layout, rows, x, filters, sums);
  multiply_dots<Grain, Rows, Vectors>(layout, x, filters, sums);
}

template <std::int64_t Grain, int Vectors, typename ResultsOf, typename Meanwhile>
void multiply_filters(const RoundedLayout& layout, std::int64_t f, const std::uint16_t* x,
                      const std::uint16_t* filters, float* sums, const ResultsOf& results_of,
                      const Meanwhile& meanwhile) {
  const SplitFrame& frame = layout.frame;
  const std::int64_t tiles = divide_up(frame.out_width, kMostDotRows);
  for (std::int64_t line = 0; line < frame.out_height; ++line) {
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t first = tile * frame.out_width / tiles;
      const std::int64_t count = (tile + 1) * frame.out_width / tiles - first;
      multiply_dots_up_to<Grain, Vectors>(layout, count, x + (line * frame.line + first) * Grain,
                                          filters, sums);
      for (int v = 0; v < Vectors; ++v)
        results_of(f + v * kWindowGrain)(line * frame.out_width + first, count, sums + v * kWidth,
                                         Vectors * kWidth);
    }
    meanwhile(line);
  }
}

// The windows of a laid out image times the filters; `meanwhile(part, parts)` asks for what comes
// next.
template <typename ResultsOf, typename Meanwhile>
void multiply_laid_out(const RoundedLayout& layout, std::int64_t n, const std::uint16_t* x,
                       const std::uint16_t* filters, float* sums, const ResultsOf& results_of,
                       const Meanwhile& meanwhile) {
  const SplitFrame& frame = layout.frame;
  const std::int64_t depth = frame.rows * frame.columns * frame.channels;
  const std::int64_t groups = divide_up(n, kMostDotVectors * kWindowGrain);
  std::int64_t group = 0;
  const auto ask = [&](std::int64_t line) {
    meanwhile(group * frame.out_height + line, groups * frame.out_height);
  };
  for (std::int64_t f = 0; f < n; ++group) {
    const bool is_pair = f + kWindowGrain < n;
    if (layout.is_paired && is_pair)
      multiply_filters<kWindowGrain, 2>(layout, f, x, filters, sums, results_of, ask);
    else if (layout.is_paired)
      multiply_filters<kWindowGrain, 1>(layout, f, x, filters, sums, results_of, ask);
    else if (is_pair)
      multiply_filters<kRowNumbers, 2>(layout, f, x, filters, sums, results_of, ask);
    else
      multiply_filters<kRowNumbers, 1>(layout, f, x, filters, sums, results_of, ask);
    f += (is_pair ? 2 : 1) * kWindowGrain;
    filters += (is_pair ? 2 : 1) * kWindowGrain * depth;
  }
}

// Some taps of 16 channels and of some filters, of all images: a vector of sums for each tap and
// filter, to which an instruction adds two pixels.
struct DotTaps {
  std::int64_t images, image;  // and from one to the next
  std::int64_t steps;
  const std::uint16_t* dy;
  const std::uint16_t* x[3];
  float* dw[3];
  std::int64_t dw_stride;
  bool accumulate;
};

template <int Taps, int Filters>
void add_dots(const DotTaps& taps) {
  __m512 sums[Filters][Taps];
#pragma GCC unroll 16
  for (int f = 0; f < Filters; ++f)
#pragma GCC unroll 16
    for (int t = 0; t < Taps; ++t)
      sums[f][t] =
          taps.accumulate ? _mm512_loadu_ps(taps.dw[t] + f * taps.dw_stride) : _mm512_setzero_ps();
  for (std::int64_t image = 0; image < taps.images; ++image) {
    const std::uint16_t* dy = taps.dy + image * taps.image;
    const std::uint16_t* x[Taps];
#pragma GCC unroll 16
    for (int t = 0; t < Taps; ++t) x[t] = taps.x[t] + image * taps.image;
    for (std::int64_t step = 0; step < taps.steps; ++step, dy += kTileNumbers)
      for (std::int64_t pair = 0; pair < kGradientStep; pair += 2) {
        __m512bh pixels[Taps];
#pragma GCC unroll 16
        for (int t = 0; t < Taps; ++t) {
          pixels[t] = load_pairs(x[t]);
          x[t] += kPairNumbers;
        }
#pragma GCC unroll 16
        for (int f = 0; f < Filters; ++f) {
          const __m512bh windows = broadcast_pair(dy + f * kGradientStep + pair);
#pragma GCC unroll 16
          for (int t = 0; t < Taps; ++t)
            sums[f][t] = _mm512_dpbf16_ps(sums[f][t], pixels[t], windows);
        }
      }
  }
#pragma GCC unroll 16
  for (int f = 0; f < Filters; ++f)
#pragma GCC unroll 16
    for (int t = 0; t < Taps; ++t) _mm512_storeu_ps(taps.dw[t] + f * taps.dw_stride, sums[f][t]);
}

// The products of some images that are laid out one behind another.
inline void add_rounded_laid_out(const SplitWindowGradientArgs& args,
                                 const GradientScratch& scratch) {
  const SplitFrame& frame = scratch.frame;
  const auto* const images = static_cast<const std::uint16_t*>(args.scratch);
  for (std::int64_t c = 0; c < frame.channels; c += kWindowGrain)
    for (std::int64_t row = 0; row < frame.rows; ++row)
      for (std::int64_t column = 0; column < frame.columns;) {
        const std::int64_t rest = frame.columns - column;
        const std::int64_t count = rest < 3 ? rest : 3, filters = count == 1 ? 16 : 8;
        for (std::int64_t f = 0; f < args.n; f += filters) {
          DotTaps taps{.images = args.images,
                       .image = scratch.size / 2,
                       .steps = scratch.steps,
                       .dy = images + scratch.dy / 2 +
                             f / kWindowGrain * scratch.steps * kTileNumbers +
                             f % kWindowGrain * kGradientStep,
                       .x = {},
                       .dw = {},
                       .dw_stride = args.dw_stride,
                       .accumulate = args.accumulate};
          for (std::int64_t t = 0; t < count; ++t) {
            const std::int64_t shift = row * frame.line + column + t;
            taps.x[t] = images + c / kWindowGrain * scratch.block + shift % 2 * scratch.copy +
                        shift / 2 * kPairNumbers;
            taps.dw[t] = args.dw + f * args.dw_stride +
                         (row * frame.columns + column + t) * frame.channels + c;
          }
          if (count == 3)
            add_dots<3, 8>(taps);
          else if (count == 2)
            add_dots<2, 8>(taps);
          else
            add_dots<1, 16>(taps);
        }
        column += count;
      }
}
