// Softmax cross-entropy along rows and its gradient, by the parts of softmax.inl.h.

inline void cross_entropy_rows(const CrossEntropyArgs& args) {
  for (std::int64_t r = 0; r < args.rows; ++r) {
    if (args.labels[r] == args.ignore_index) continue;
    const float* x = args.logits + r * args.logits_stride;
    const auto score_at = [&](std::int64_t c, auto lanes) {
      return select(lanes, load(x + c, lanes), broadcast(-kInfinity));
    };
    const float top = largest_score(args.classes, score_at);
    const float total = weigh_scores(args.classes, top, score_at,
                                     [](std::int64_t, auto, Vec) { /* only the sum */ });
    *args.sum += (double{top} - double{x[args.labels[r]]}) + double{log_of(total)};
    ++*args.count;
  }
}

inline void cross_entropy_backward_rows(const CrossEntropyBackwardArgs& args) {
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const float* x = args.logits + r * args.logits_stride;
    float* dx = args.dlogits + r * args.dlogits_stride;
    const std::int64_t label = args.labels[r];
    if (label == args.ignore_index) {
      over_lanes(args.classes,
                 [&](std::int64_t c, auto lanes) { store(dx + c, broadcast(0.0f), lanes); });
      continue;
    }
    const auto score_at = [&](std::int64_t c, auto lanes) {
      return select(lanes, load(x + c, lanes), broadcast(-kInfinity));
    };
    const float top = largest_score(args.classes, score_at);
    const float total = weigh_scores(
        args.classes, top, score_at,
        [&](std::int64_t c, auto lanes, Vec weights) { store(dx + c, weights, lanes); });
    const float at_label = (dx[label] / total - 1.0f) * args.dsum;
    const float factor = args.dsum / total;
    const float least = kLeastScoreGradient / (factor < 0.0f ? -factor : factor);
    const Vec factors = broadcast(factor);
    map(dx, args.classes, dx, [&](Vec a) { return unless_below(least, a) * factors; });
    dx[label] = at_label;
  }
}
