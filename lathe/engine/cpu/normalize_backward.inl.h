// The gradients of layer norm and RMS norm. With u the normalised x and g = dy gamma,
//   dx = rstd (g - mean(g) - u mean(g u)),  dgamma = sum over rows of dy u,  dbeta = that of dy;
// RMS norm has no mean to take off, so its dx lacks the second term and its dbeta does not exist.

// What dx of a row needs to know of all its elements; slope is mean(g u).
struct NormRow {
  float center, mean_g, rstd, slope;
};

struct VecPair {
  Vec first, second;
};
struct SumPair {
  float first, second;
};

// The sums of both parts of f(column, lanes), in two interleaved accumulators each.
template <typename F>
[[gnu::always_inline]] inline SumPair sum_pairs(std::int64_t n, F f) {
  const Vec zero = broadcast(0.0f);
  VecPair even = {zero, zero};
  VecPair odd = {zero, zero};
  std::int64_t start = 0;
  for (; start + 2 * kWidth <= n; start += 2 * kWidth) {
    const VecPair a = f(start, Whole{});
    const VecPair b = f(start + kWidth, Whole{});
    even = {even.first + a.first, even.second + a.second};
    odd = {odd.first + b.first, odd.second + b.second};
  }
  over_lanes(n - start, [&](std::int64_t c, auto lanes) {
    const VecPair a = f(start + c, lanes);
    even = {even.first + select(lanes, a.first, zero), even.second + select(lanes, a.second, zero)};
  });
  return {sum(even.first + odd.first), sum(even.second + odd.second)};
}

template <bool Centered>
void norm_backward(const NormBackwardArgs& args) {
  const float n = static_cast<float>(args.n);
  const auto weighted = [&](std::int64_t r, std::int64_t c, auto lanes) {
    const Vec dy = load(args.dy + r * args.dy_stride + c, lanes);
    return args.gamma ? dy * load(args.gamma + c, lanes) : dy;
  };
  const auto distance = [&](std::int64_t r, std::int64_t c, auto lanes, Vec center) {
    const Vec x = load(args.x + r * args.x_stride + c, lanes);
    return Centered ? x - center : x;
  };
  const auto take_means = [&](std::int64_t r, NormRow& row) {
    const SumPair sums = sum_pairs(args.n, [&](std::int64_t c, auto lanes) {
      return VecPair{load(args.x + r * args.x_stride + c, lanes), weighted(r, c, lanes)};
    });
    row.center = sums.first / n;
    row.mean_g = sums.second / n;
  };
  // The sum of g u is that of g times the distance, as soon as rstd is known: no pass of its own.
  const auto take_products = [&](std::int64_t r, NormRow& row) {
    const Vec center = broadcast(row.center);
    const SumPair sums = sum_pairs(args.n, [&](std::int64_t c, auto lanes) {
      const Vec away = distance(r, c, lanes, center);
      return VecPair{away * away, weighted(r, c, lanes) * away};
    });
    row.rstd = 1.0f / sqrt(sums.first / n + args.eps);
    row.slope = sums.second / n * row.rstd;
  };
  const auto write = [&](std::int64_t r, const NormRow& row) {
    const Vec center = broadcast(row.center);
    const Vec mean = broadcast(row.mean_g);
    const Vec rstd = broadcast(row.rstd);
    const Vec slope = broadcast(row.slope);
    const float* add = args.dx_add ? args.dx_add + r * args.dx_add_stride : nullptr;
    float* to = args.dx + r * args.dx_stride;
    over_lanes(args.n, [&](std::int64_t c, auto lanes) {
      const Vec dy = load(args.dy + r * args.dy_stride + c, lanes);
      const Vec u = distance(r, c, lanes, center) * rstd;
      const Vec g = weighted(r, c, lanes);
      const Vec dx = fnma(u, slope, Centered ? g - mean : g) * rstd;
      store(to + c, add ? dx + load(add + c, lanes) : dx, lanes);
      if (args.dgamma) store(args.dgamma + c, fma(dy, u, load(args.dgamma + c, lanes)), lanes);
      if (args.dbeta) store(args.dbeta + c, load(args.dbeta + c, lanes) + dy, lanes);
    });
  };

  // One step for several rows before the next: a row's steps wait for each other, rows do not.
  constexpr std::int64_t kGroup = 8;
  NormRow group[kGroup];
  for (std::int64_t first = 0; first < args.rows; first += kGroup) {
    const std::int64_t rows = smaller(args.rows - first, kGroup);
    for (std::int64_t r = 0; r < rows; ++r) {
      group[r] = {};
      if constexpr (Centered) take_means(first + r, group[r]);
    }
    for (std::int64_t r = 0; r < rows; ++r) take_products(first + r, group[r]);
    for (std::int64_t r = 0; r < rows; ++r) write(first + r, group[r]);
  }
}

inline void layer_norm_backward(const NormBackwardArgs& args) {
  norm_backward<true>(args);
}

inline void rms_norm_backward(const NormBackwardArgs& args) {
  norm_backward<false>(args);
}
