// How an image lies whose numbers are rounded to bfloat16, what is rounded on the way there and
// what is done to results, for a file that has included split_parts.inl.h and window_frame.inl.h:
// see split_window_table.h.
//
// Channels lie in blocks of 32, or of 16 where there are no 32s, pixel behind pixel with the zeros
// around them, and lines have an even number of those: two pixels of 16 channels, of which the
// first one's place is even, do not cross a cache line.

constexpr std::int64_t kRowNumbers = 32;
constexpr std::int64_t kSumNumbers = 4 * kTileLines * kTileLines;

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
};

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
