// The gradients of softmax.inl.h along rows.

inline void softmax_backward_rows(const SoftmaxBackwardArgs& args) {
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const float* dy = args.dy + r * args.dy_stride;
    const float* y = args.y + r * args.y_stride;
    float* dx = args.dx + r * args.dx_stride;
    Vec sums = broadcast(0.0f);
    over_lanes(args.n, [&](std::int64_t c, auto lanes) {
      sums = fma(load(dy + c, lanes), load(y + c, lanes), sums);
    });
    const Vec mean = broadcast(sum(sums));
    over_lanes(args.n, [&](std::int64_t c, auto lanes) {
      const Vec score = load(y + c, lanes) * (load(dy + c, lanes) - mean);
      store(dx + c, unless_below(kLeastScoreGradient, score), lanes);
    });
  }
}

inline void log_softmax_backward_rows(const SoftmaxBackwardArgs& args) {
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const float* dy = args.dy + r * args.dy_stride;
    const float* y = args.y + r * args.y_stride;
    float* dx = args.dx + r * args.dx_stride;
    Vec sums = broadcast(0.0f);
    over_lanes(args.n, [&](std::int64_t c, auto lanes) { sums = sums + load(dy + c, lanes); });
    const Vec total = broadcast(sum(sums));
    over_lanes(args.n, [&](std::int64_t c, auto lanes) {
      store(dx + c, fnma(exp(load(y + c, lanes)), total, load(dy + c, lanes)), lanes);
    });
  }
}
