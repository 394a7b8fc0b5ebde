// Some columns of a matrix as a matrix of their own, and back: around `gemm` for weights that lack
// whole columns or rows.

inline void take_columns(const TakeColumnsArgs& args) {
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const float* x = args.x + r * args.x_stride;
    float* y = args.y + r * args.y_stride;
    for (std::int64_t c = 0; c < args.chosen; ++c) y[c] = x[args.columns[c]];
  }
}

inline void spread_columns(const SpreadColumnsArgs& args) {
  // What the other columns are before the residual is the same in every row.
  with_function(args.activation, [&](auto f) {
    over_lanes(args.n, [&](std::int64_t c, auto lanes) {
      const Vec bias = args.bias ? load(args.bias + c, lanes) : broadcast(0.0f);
      store(args.others + c, f(broadcast(0.0f) + bias), lanes);
    });
  });
  for (std::int64_t r = 0; r < args.rows; ++r) {
    float* x = args.x + r * args.x_stride;
    float* y = args.y + r * args.y_stride;
    if (args.residual == nullptr) {
      map(args.others, args.n, y, [](Vec a) { return a; });
    } else {
      // y may be the residual, so the chosen columns read it first.
      const float* residual = args.residual + r * args.residual_stride;
      for (std::int64_t c = 0; c < args.chosen; ++c) x[c] = x[c] + residual[args.columns[c]];
      over_lanes(args.n, [&](std::int64_t c, auto lanes) {
        store(y + c, load(args.others + c, lanes) + load(residual + c, lanes), lanes);
      });
    }
    for (std::int64_t c = 0; c < args.chosen; ++c) y[args.columns[c]] = x[c];
  }
}
