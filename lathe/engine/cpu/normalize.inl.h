// Layer norm and RMS norm. Sums run over four interleaved accumulators of kWidth lanes, so their
// order depends on the width of the row alone.

template <typename F>
[[gnu::always_inline]] inline float sum_over(const float* x, std::int64_t n, F f) {
  constexpr int kSums = 4;
  Vec sums[kSums];
  for (Vec& one : sums) one = broadcast(0.0f);
  std::int64_t start = 0;
  for (; start + kSums * kWidth <= n; start += kSums * kWidth)
#pragma GCC unroll 4
    for (int i = 0; i < kSums; ++i) sums[i] = sums[i] + f(load(x + start + i * kWidth));
  over_lanes(n - start, [&](std::int64_t c, auto lanes) {
    // Lanes beyond the row are made 0 after f, which need not map 0 to 0.
    sums[0] = sums[0] + select(lanes, f(load(x + start + c, lanes)), broadcast(0.0f));
  });
  return sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

inline void layer_norm(const LayerNormArgs& args) {
  const float n = static_cast<float>(args.n);
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const float* z = args.x + r * args.x_stride;
    float* y = args.y + r * args.y_stride;
    if (args.residual != nullptr) {
      const float* residual = args.residual + r * args.residual_stride;
      over_lanes(args.n, [&](std::int64_t c, auto lanes) {
        store(y + c, load(z + c, lanes) + load(residual + c, lanes), lanes);
      });
      z = y;
    }
    const float mean = sum_over(z, args.n, [](Vec a) { return a; }) / n;
    const Vec center = broadcast(mean);
    const float squares = sum_over(z, args.n, [&](Vec a) {
      const Vec distance = a - center;
      return distance * distance;
    });
    const float rstd = 1.0f / sqrt(squares / n + args.eps);
    const Vec factor = broadcast(rstd);
    over_lanes(args.n, [&](std::int64_t c, auto lanes) {
      const Vec unit = (load(z + c, lanes) - center) * factor;
      const Vec gamma = args.gamma ? load(args.gamma + c, lanes) : broadcast(1.0f);
      const Vec beta = args.beta ? load(args.beta + c, lanes) : broadcast(0.0f);
      store(y + c, fma(unit, gamma, beta), lanes);
    });
    if (args.mean != nullptr) args.mean[r] = mean;
    if (args.rstd != nullptr) args.rstd[r] = rstd;
  }
}

inline void rms_norm(const RmsNormArgs& args) {
  const float n = static_cast<float>(args.n);
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const float* x = args.x + r * args.x_stride;
    float* y = args.y + r * args.y_stride;
    const float squares = sum_over(x, args.n, [](Vec a) { return a * a; });
    const float rstd = 1.0f / sqrt(squares / n + args.eps);
    const Vec factor = broadcast(rstd);
    over_lanes(args.n, [&](std::int64_t c, auto lanes) {
      const Vec gamma = args.gamma ? load(args.gamma + c, lanes) : broadcast(1.0f);
      store(y + c, load(x + c, lanes) * factor * gamma, lanes);
    });
    if (args.rstd != nullptr) args.rstd[r] = rstd;
  }
}
