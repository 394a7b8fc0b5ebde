// What scales are made of: ranges and mean magnitudes. Included inside a namespace by the kernel
// files, after blocks.inl.h.

// Calls `take(vector, lanes)` for the whole run; the lanes of a short last vector are 0.
template <typename Take>
inline void for_vectors(const float* x, std::int64_t count, Take take) {
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) take(load(x + i));
  if (i < count) take(load(x + i, count - i));
}

std::uint32_t largest_magnitude(const float* x, std::int64_t count) {
  Ints largest = broadcast(0);
  for_vectors(x, count, [&](Floats a) { largest = max(largest, magnitude_bits(a)); });
  return static_cast<std::uint32_t>(largest_everywhere(largest)[0]);
}

float largest_finite(const float* x, std::int64_t count) {
  Ints largest = broadcast(0);
  for_vectors(x, count, [&](Floats a) { largest = max(largest, finite_magnitude_bits(a)); });
  return ((Floats)largest_everywhere(largest))[0];
}

void finite_range(const float* x, std::int64_t count, float* low, float* high) {
  // The lanes of a short vector are 0, so its values are taken one by one.
  Floats lows = broadcast(*low);
  Floats highs = broadcast(*high);
  const std::int64_t whole = count / kWidth * kWidth;
  for (std::int64_t i = 0; i < whole; i += kWidth) {
    const Floats a = load(x + i);
    const Ints is_finite = magnitude_bits(a) < broadcast(0x7f800000);
    lows = is_finite ? min(a, lows) : lows;
    highs = is_finite ? max(a, highs) : highs;
  }
  for (std::int64_t lane = 0; lane < kWidth; ++lane) {
    *low = lows[lane] < *low ? lows[lane] : *low;
    *high = highs[lane] > *high ? highs[lane] : *high;
  }
  for (std::int64_t i = whole; i < count; ++i) {
    if (x[i] - x[i] != 0) continue;  // NaN and infinities
    *low = x[i] < *low ? x[i] : *low;
    *high = x[i] > *high ? x[i] : *high;
  }
}

// Sixteen sums, whatever the width of a vector: element i belongs to sum i modulo 16.
struct SixteenSums {
  using Half __attribute__((vector_size(kWidth * sizeof(float) / 2))) = float;
  using Doubles __attribute__((vector_size(kWidth * sizeof(float)))) = double;
  static constexpr int kVectors = 16 / kWidth;
  Doubles low[kVectors] = {}, high[kVectors] = {};

  static Doubles widen(Half a) { return __builtin_convertvector(a, Doubles); }
  void add(int v, Floats a) {
    Half halves[2];
    __builtin_memcpy(halves, &a, sizeof a);
    low[v] += widen(halves[0]);
    high[v] += widen(halves[1]);
  }
  double total() const {
    double sums[16];
    for (int v = 0; v < kVectors; ++v) {
      __builtin_memcpy(sums + v * kWidth, &low[v], sizeof low[v]);
      __builtin_memcpy(sums + v * kWidth + kWidth / 2, &high[v], sizeof high[v]);
    }
    for (int half = 8; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
    return sums[0];
  }
};

// The sum of magnitude(x) in the order that SixteenSums fixes; magnitude(0) = 0.
template <typename Magnitude>
inline double sum_in_order(const float* x, std::int64_t count, Magnitude magnitude) {
  SixteenSums sums;
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    for (int v = 0; v < SixteenSums::kVectors; ++v)
      sums.add(v, magnitude(load(x + i + v * kWidth)));
  for (int v = 0; i < count; ++v, i += kWidth)
    sums.add(v, magnitude(count - i >= kWidth ? load(x + i) : load(x + i, count - i)));
  return sums.total();
}

MagnitudeSum magnitudes_above(const float* x, std::int64_t count, float above) {
  const Floats limit = broadcast(above);
  MagnitudeSum result;
  // Each lane counts down, because a true comparison is -1; the total is taken before 32 bits fill.
  constexpr std::int64_t kPiece = std::int64_t{1} << 30;
  for (std::int64_t start = 0; start < count; start += kPiece) {
    const std::int64_t length = count - start < kPiece ? count - start : kPiece;
    Ints counts = broadcast(0);
    result.sum += sum_in_order(x + start, length, [&](Floats a) {
      const Floats magnitude = (Floats)finite_magnitude_bits(a);
      const Ints is_above = magnitude > limit;
      counts += is_above;
      return (Floats)((Ints)magnitude & is_above);
    });
    for (std::int64_t lane = 0; lane < kWidth; ++lane) result.count -= counts[lane];
  }
  return result;
}

// sign(residual) * alpha; a residual of 0 counts as positive.
inline Floats sign_term(Floats residual, Floats alpha) {
  return residual >= broadcast(0.0f) ? alpha : -alpha;
}

double residual_magnitudes(const float* x, std::int64_t count, const float* alphas, int terms) {
  SixteenSums sums;
  const auto magnitude = [&](Floats a) {
    Floats residual = a;
    for (int t = 0; t < terms; ++t) residual -= sign_term(residual, broadcast(alphas[t]));
    return finite_magnitude_bits(a) == magnitude_bits(a) ? (Floats)finite_magnitude_bits(residual)
                                                         : broadcast(0.0f);
  };
  // A short last vector holds zeros, whose residuals are not 0: those lanes are cut after.
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    for (int v = 0; v < SixteenSums::kVectors; ++v)
      sums.add(v, magnitude(load(x + i + v * kWidth)));
  for (int v = 0; i < count; ++v, i += kWidth) {
    float lanes[kWidth] = {};
    const std::int64_t left = count - i < kWidth ? count - i : kWidth;
    store(lanes, magnitude(load(x + i, left)), left);
    sums.add(v, load(lanes));
  }
  return sums.total();
}

void sign_terms(const float* alphas, int terms, const RunArgs& args) {
  if (terms == 1) {
    const Floats alpha = broadcast(alphas[0]);
    map_run(args.x, args.y, args.count, args.streams,
            [&](Floats value) { return value == value ? sign_term(value, alpha) : value; });
    return;
  }
  map_run(args.x, args.y, args.count, args.streams, [&](Floats value) {
    Floats sum = sign_term(value, broadcast(alphas[0]));
    Floats residual = value - sum;
    for (int t = 1; t < terms; ++t) {
      const Floats term = sign_term(residual, broadcast(alphas[t]));
      residual -= term;
      sum += term;
    }
    return value == value ? sum : value;
  });
}

void ternary(float delta, float alpha, const RunArgs& args) {
  const Floats limit = broadcast(delta);
  const Floats size = broadcast(alpha);
  map_run(args.x, args.y, args.count, args.streams, [&](Floats value) {
    const Floats sign = value > broadcast(0.0f) ? size : -size;
    const Floats magnitude = (Floats)magnitude_bits(value);
    const Floats rounded = magnitude > limit ? sign : broadcast(0.0f);
    return value == value ? rounded : value;
  });
}
