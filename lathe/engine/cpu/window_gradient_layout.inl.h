// How images of x and dy lie for the gradient of a convolution's filters, whose sum goes over
// pixels, two in each word, for a file that has included rounded_layout.inl.h: see
// split_window_table.h.
//
// dy is turned around: 16 filters of 32 pixels lie side by side. Of x, pairs of neighbours lie in
// lines of 16 channels, wherever windows begin; those at odd distances see other pairs, so there
// are two copies. Between two lines both have zeros. Rounded numbers are laid out as for windows
// first, and both are made of that.

constexpr std::int64_t kGradientStep = 32;
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

// The first halves of two pixels of 16 channels and then the second: pairs in each channel.
inline __m512i pair_order() {
  alignas(64) std::uint16_t order[kPairNumbers];
  for (std::uint16_t i = 0; i < kPairNumbers; ++i)
    order[i] = static_cast<std::uint16_t>(i % 2 * kWindowGrain + i / 2);
  return _mm512_load_si512(order);
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
inline std::int64_t rounded_gradient_scratch_bytes(const SplitFrame& frame, std::int64_t n) {
  const GradientScratch scratch(frame, n, true);
  const RoundedPair pair(scratch, n);
  return scratch.size + pair.x.sums + pair.dy.sums;
}
