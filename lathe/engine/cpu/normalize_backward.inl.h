// The gradients of layer norm and RMS norm. With u the normalised x and g = dy gamma,
//   dx = rstd (g - mean(g) - u mean(g u)),  dgamma = sum over rows of dy u,  dbeta = that of dy;
// RMS norm has no mean to take off, so its dx lacks the second term and its dbeta does not exist.

// What both have: u = (x - center) rstd, whose row's sums are taken before dx is written.
struct NormBackwardRow {
  std::int64_t n;
  const float* dy;
  const float* x;
  const float* gamma;
  const float* dx_add;
  float* dx;
  float* dgamma;
  float* dbeta;
  float center, rstd;
};

template <bool Centered>
void norm_backward_row(const NormBackwardRow& row) {
  const Vec center = broadcast(row.center);
  const Vec rstd = broadcast(row.rstd);
  const auto unit = [&](std::int64_t c, auto lanes) {
    const Vec x = load(row.x + c, lanes);
    return (Centered ? x - center : x) * rstd;
  };
  const auto weighted = [&](Vec dy, std::int64_t c, auto lanes) {
    return row.gamma ? dy * load(row.gamma + c, lanes) : dy;
  };
  Vec sums = broadcast(0.0f);
  Vec products = broadcast(0.0f);
  over_lanes(row.n, [&](std::int64_t c, auto lanes) {
    // Lanes beyond the row are 0 in dy and so in all that is added.
    const Vec dy = load(row.dy + c, lanes);
    const Vec u = unit(c, lanes);
    const Vec g = weighted(dy, c, lanes);
    sums = sums + g;
    products = fma(g, u, products);
    if (row.dgamma) store(row.dgamma + c, fma(dy, u, load(row.dgamma + c, lanes)), lanes);
    if (row.dbeta) store(row.dbeta + c, load(row.dbeta + c, lanes) + dy, lanes);
  });
  const float n = static_cast<float>(row.n);
  const Vec mean = broadcast(Centered ? sum(sums) / n : 0.0f);
  const Vec slope = broadcast(sum(products) / n);
  over_lanes(row.n, [&](std::int64_t c, auto lanes) {
    const Vec g = weighted(load(row.dy + c, lanes), c, lanes);
    const Vec rest = fnma(unit(c, lanes), slope, Centered ? g - mean : g);
    const Vec dx = rest * rstd;
    store(row.dx + c, row.dx_add ? dx + load(row.dx_add + c, lanes) : dx, lanes);
  });
}

inline void layer_norm_backward(const LayerNormBackwardArgs& args) {
  const float n = static_cast<float>(args.n);
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const float* x = args.x + r * args.x_stride;
    const float mean = sum_over(x, args.n, [](Vec a) { return a; }) / n;
    const Vec center = broadcast(mean);
    const float squares = sum_over(x, args.n, [&](Vec a) {
      const Vec distance = a - center;
      return distance * distance;
    });
    norm_backward_row<true>({.n = args.n,
                             .dy = args.dy + r * args.dy_stride,
                             .x = x,
                             .gamma = args.gamma,
                             .dx_add = args.dx_add ? args.dx_add + r * args.dx_add_stride : nullptr,
                             .dx = args.dx + r * args.dx_stride,
                             .dgamma = args.dgamma,
                             .dbeta = args.dbeta,
                             .center = mean,
                             .rstd = 1.0f / sqrt(squares / n + args.eps)});
  }
}

inline void rms_norm_backward(const RmsNormBackwardArgs& args) {
  const float n = static_cast<float>(args.n);
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const float* x = args.x + r * args.x_stride;
    const float squares = sum_over(x, args.n, [](Vec a) { return a * a; });
    norm_backward_row<false>(
        {.n = args.n,
         .dy = args.dy + r * args.dy_stride,
         .x = x,
         .gamma = args.gamma,
         .dx_add = args.dx_add ? args.dx_add + r * args.dx_add_stride : nullptr,
         .dx = args.dx + r * args.dx_stride,
         .dgamma = args.dgamma,
         .dbeta = nullptr,
         .center = 0.0f,
         .rstd = 1.0f / sqrt(squares / n + args.eps)});
  }
}
