// Batch norms of images whose channels lie side by side: a row is a pixel, a column a channel.

// The sums over rows of what `term` gives for a row, four side by side so that an addition need not
// wait for the one before it.
template <typename Term>
[[gnu::always_inline]] inline Vec sum_of_rows(std::int64_t rows, Term term) {
  Vec sums[4] = {broadcast(0.0f), broadcast(0.0f), broadcast(0.0f), broadcast(0.0f)};
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4)
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sums[i] = sums[i] + term(r + i);
  for (; r < rows; ++r) sums[0] = sums[0] + term(r);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

inline void channel_moments(const ChannelMomentsArgs& args) {
  const Vec share = broadcast(1.0f / static_cast<float>(args.rows));
  over_lanes(args.n, [&](std::int64_t c, auto lanes) {
    const float* const x = args.x + c;
    const Vec mean =
        sum_of_rows(args.rows, [&](std::int64_t r) { return load(x + r * args.n, lanes); }) * share;
    const Vec squares = sum_of_rows(args.rows, [&](std::int64_t r) {
      const Vec distance = load(x + r * args.n, lanes) - mean;
      return distance * distance;
    });
    store(args.means + c, mean, lanes);
    store(args.squares + c, squares, lanes);
  });
}

inline void channel_products(const ChannelProductsArgs& args) {
  over_lanes(args.n, [&](std::int64_t c, auto lanes) {
    const float *const dy = args.dy + c, *const x = args.x + c;
    const Vec center = load(args.center + c, lanes);
    const Vec sums =
        sum_of_rows(args.rows, [&](std::int64_t r) { return load(dy + r * args.n, lanes); });
    const Vec products = sum_of_rows(args.rows, [&](std::int64_t r) {
      return load(dy + r * args.n, lanes) * (load(x + r * args.n, lanes) - center);
    });
    store(args.sums + c, sums, lanes);
    store(args.products + c, products, lanes);
  });
}

inline void scale_channels(const ScaleChannelsArgs& args) {
  over_lanes(args.n, [&](std::int64_t c, auto lanes) {
    const Vec center = load(args.center + c, lanes), slope = load(args.slope + c, lanes);
    const Vec bias = load(args.bias + c, lanes);
    for (std::int64_t at = c; at < args.rows * args.n; at += args.n)
      store(args.y + at, fma(load(args.x + at, lanes) - center, slope, bias), lanes);
  });
}

inline void scale_channels_backward(const ScaleChannelsBackwardArgs& args) {
  over_lanes(args.n, [&](std::int64_t c, auto lanes) {
    const Vec center = load(args.center + c, lanes), factor = load(args.factor + c, lanes);
    const Vec shift = load(args.shift + c, lanes), slope = load(args.slope + c, lanes);
    for (std::int64_t at = c; at < args.rows * args.n; at += args.n) {
      const Vec rest = load(args.dy + at, lanes) - shift;
      store(args.dx + at, factor * fnma(load(args.x + at, lanes) - center, slope, rest), lanes);
    }
  });
}
