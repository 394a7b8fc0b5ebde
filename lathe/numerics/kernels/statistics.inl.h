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

// The order of codecs/sum_order.h, whatever the width of a vector.
struct SixteenSums {
  using Half __attribute__((vector_size(kWidth * sizeof(float) / 2))) = float;
  using Doubles __attribute__((vector_size(kWidth * sizeof(float)))) = double;
  static constexpr int kVectors = SumOrder::kSums / kWidth;
  Doubles low[kVectors] = {}, high[kVectors] = {};

  static Doubles widen(Half a) { return __builtin_convertvector(a, Doubles); }
  LATHE_KERNEL_INLINE void add(int v, Floats a) {
    Half halves[2];
    __builtin_memcpy(halves, &a, sizeof a);
    low[v] += widen(halves[0]);
    high[v] += widen(halves[1]);
  }
  double total() const {
    double sums[SumOrder::kSums];
    for (int v = 0; v < kVectors; ++v) {
      __builtin_memcpy(sums + v * kWidth, &low[v], sizeof low[v]);
      __builtin_memcpy(sums + v * kWidth + kWidth / 2, &high[v], sizeof high[v]);
    }
    return add_halves(sums);
  }
  static double add_halves(double* sums) {
    for (int half = SumOrder::kSums / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
    return sums[0];
  }
};

// The sum of magnitude(values) of a chunk. Lanes beyond the end are not added.
template <int kRun, typename Magnitude>
LATHE_KERNEL_INLINE double sum_by_runs(const float* x, std::int64_t count, Magnitude magnitude) {
  SixteenSums sums;
  std::int64_t i = 0;
  for (; i + 16 * kRun <= count; i += 16 * kRun)
    for (int v = 0; v < SixteenSums::kVectors; ++v) {
      Floats run = magnitude(load(x + i + v * kWidth));
      for (int step = 1; step < kRun; ++step)
        run += magnitude(load(x + i + step * 16 + v * kWidth));
      sums.add(v, run);
    }
  for (int v = 0; i + kWidth <= count; v = (v + 1) % SixteenSums::kVectors, i += kWidth)
    sums.add(v, magnitude(load(x + i)));
  if (i < count) {
    float lanes[kWidth] = {};
    store(lanes, magnitude(load(x + i, count - i)), count - i);
    sums.add(static_cast<int>(i / kWidth % SixteenSums::kVectors), load(lanes));
  }
  return sums.total();
}

// The sum of sum_of(chunk, size) over all chunks.
template <typename SumOf>
LATHE_KERNEL_INLINE double sum_by_chunks(const float* x, std::int64_t count, SumOf sum_of) {
  if (count <= SumOrder::kChunk) return sum_of(x, count);
  double sums[SumOrder::kSums] = {};
  for (std::int64_t at = 0, chunk = 0; at < count; at += SumOrder::kChunk, ++chunk) {
    const std::int64_t rest = count - at;
    sums[chunk % SumOrder::kSums] +=
        sum_of(x + at, rest < SumOrder::kChunk ? rest : SumOrder::kChunk);
  }
  return SixteenSums::add_halves(sums);
}

template <typename Magnitude>
LATHE_KERNEL_INLINE double sum_in_order(const float* x, std::int64_t count, Magnitude magnitude) {
  return sum_by_chunks(x, count, [&](const float* chunk, std::int64_t size) {
    const double sum = sum_by_runs<SumOrder::kRun>(chunk, size, magnitude);
    // Eight magnitudes of the largest floats together are beyond float.
    return sum - sum == 0 ? sum : sum_by_runs<1>(chunk, size, magnitude);
  });
}

MagnitudeSum magnitudes_above(const float* x, std::int64_t count, float above) {
  if (above < 0)
    return {sum_in_order(x, count, [](Floats a) { return (Floats)finite_magnitude_bits(a); }),
            count};
  const Floats limit = broadcast(above);
  // Each lane counts down, because a true comparison is -1.
  Ints counts = broadcast(0);
  const auto magnitude_above = [&](Floats a) {
    const Floats magnitude = (Floats)finite_magnitude_bits(a);
    const Ints is_above = magnitude > limit;
    counts += is_above;
    return is_above ? magnitude : broadcast(0.0f);
  };
  MagnitudeSum result;
  result.sum = sum_by_chunks(x, count, [&](const float* chunk, std::int64_t size) {
    const Ints before = counts;
    const double sum = sum_by_runs<SumOrder::kRun>(chunk, size, magnitude_above);
    if (sum - sum == 0) return sum;
    counts = before;
    return sum_by_runs<1>(chunk, size, magnitude_above);
  });
  for (std::int64_t lane = 0; lane < kWidth; ++lane) result.count -= counts[lane];
  return result;
}

MagnitudeSum numbers_above(const float* x, std::int64_t count, float above) {
  const Floats limit = broadcast(above);
  Ints counts = broadcast(0);
  const auto magnitude_above = [&](Floats a) {
    const Floats magnitude = (Floats)magnitude_bits(a);
    const Ints is_above = magnitude > limit;
    counts += is_above;
    return is_above ? magnitude : broadcast(0.0f);
  };
  const double sum = sum_by_chunks(x, count, [&](const float* chunk, std::int64_t size) {
    return sum_by_runs<1>(chunk, size, magnitude_above);
  });
  // The lanes of a short last vector are 0.
  const std::int64_t beyond = above < 0 ? (kWidth - count % kWidth) % kWidth : 0;
  MagnitudeSum result{sum, -beyond};
  for (std::int64_t lane = 0; lane < kWidth; ++lane) result.count -= counts[lane];
  return result;
}

// sign(residual) * alpha; a residual of 0 counts as positive.
inline Floats sign_term(Floats residual, Floats alpha) {
  return residual >= broadcast(0.0f) ? alpha : -alpha;
}

template <int kTerms>
struct Terms {
  constexpr operator int() const { return kTerms; }  // NOLINT(google-explicit-constructor)
};
// Calls body with the number of terms as a constant where it is a usual one, else with 0.
template <typename Body>
LATHE_KERNEL_INLINE auto with_terms(int terms, Body body) {
  switch (terms) {
    case 1:
      return body(Terms<1>{});
    case 2:
      return body(Terms<2>{});
    case 3:
      return body(Terms<3>{});
    default:
      return body(Terms<0>{});
  }
}

double residual_magnitudes(const float* x, std::int64_t count, const float* alphas, int terms) {
  if (terms == 0) return magnitudes_above(x, count, -1).sum;
  return with_terms(terms, [&](auto constant) {
    const int number = constant > 0 ? static_cast<int>(constant) : terms;
    return sum_in_order(x, count, [=](Floats a) {
      Floats residual = a;
      for (int t = 0; t < number; ++t) residual -= sign_term(residual, broadcast(alphas[t]));
      // What is not finite stays so, and counts for nothing.
      return (Floats)finite_magnitude_bits(residual);
    });
  });
}

void sign_terms(const float* alphas, int terms, const RunArgs& args) {
  with_terms(terms, [&](auto constant) {
    const int number = constant > 0 ? static_cast<int>(constant) : terms;
    map_run(args.x, args.y, args.count, args.streams, [=](Floats value) {
      Floats sum = sign_term(value, broadcast(alphas[0]));
      Floats residual = value - sum;
      for (int t = 1; t < number; ++t) {
        const Floats term = sign_term(residual, broadcast(alphas[t]));
        residual -= term;
        sum += term;
      }
      return value == value ? sum : value;
    });
  });
  if (args.streams) end_streaming();
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
  if (args.streams) end_streaming();
}
