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

// What relu let through: everything, what its results say, or what it was of does.
enum class ReluOf { Nothing, Results, Norm };

template <bool HasMore, ReluOf Relu>
void channel_products_of(const ChannelProductsArgs& args) {
  over_lanes(args.n, [&](std::int64_t c, auto lanes) {
    const Vec center = load(args.center + c, lanes), zero = broadcast(0.0f);
    const Vec slope = Relu == ReluOf::Norm ? load(args.slope + c, lanes) : zero;
    const Vec bias = Relu == ReluOf::Norm ? load(args.bias + c, lanes) : zero;
    float* to = args.sums + c;
    for (std::int64_t first = 0; first < args.rows; first += kChannelRows, to += 2 * args.n) {
      Vec sums[4] = {zero, zero, zero, zero}, products[4] = {zero, zero, zero, zero};
      const auto add = [&](std::int64_t row, int i) {
        const std::int64_t at = row * args.n + c;
        Vec g = load(args.dy + at, lanes);
        if constexpr (HasMore) g = g + load(args.more + at, lanes);
        const Vec distance = load(args.x + at, lanes) - center;
        if constexpr (Relu != ReluOf::Nothing) {
          const Vec seen =
              Relu == ReluOf::Norm ? fma(distance, slope, bias) : load(args.relu + at, lanes);
          g = select(less(zero, seen), g, zero);
          store(args.g + at, g, lanes);
        }
        sums[i] = sums[i] + g;
        products[i] = products[i] + g * distance;
      };
      const std::int64_t end = smaller(args.rows, first + kChannelRows);
      std::int64_t r = first;
      for (; r + 4 <= end; r += 4)
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) add(r + i, i);
      for (; r < end; ++r) add(r, 0);
      store(to, (sums[0] + sums[1]) + (sums[2] + sums[3]), lanes);
      store(to + args.n, (products[0] + products[1]) + (products[2] + products[3]), lanes);
    }
  });
}

template <ReluOf Relu>
void channel_products_through(const ChannelProductsArgs& args) {
  args.more != nullptr ? channel_products_of<true, Relu>(args)
                       : channel_products_of<false, Relu>(args);
}

inline void channel_products(const ChannelProductsArgs& args) {
  if (args.slope != nullptr) return channel_products_through<ReluOf::Norm>(args);
  if (args.relu != nullptr) return channel_products_through<ReluOf::Results>(args);
  channel_products_of<false, ReluOf::Nothing>(args);
}

template <bool HasResidual, bool HasRelu>
void scale_channels_of(const ScaleChannelsArgs& args) {
  over_lanes(args.n, [&](std::int64_t c, auto lanes) {
    const Vec center = load(args.center + c, lanes), slope = load(args.slope + c, lanes);
    const Vec bias = load(args.bias + c, lanes), zero = broadcast(0.0f);
    for (std::int64_t at = c; at < args.rows * args.n; at += args.n) {
      Vec y = fma(load(args.x + at, lanes) - center, slope, bias);
      if constexpr (HasResidual) y = y + load(args.residual + at, lanes);
      if constexpr (HasRelu) y = max(zero, y);
      store(args.y + at, y, lanes);
    }
  });
}

inline void scale_channels(const ScaleChannelsArgs& args) {
  if (args.residual != nullptr)
    return args.has_relu ? scale_channels_of<true, true>(args)
                         : scale_channels_of<true, false>(args);
  return args.has_relu ? scale_channels_of<false, true>(args)
                       : scale_channels_of<false, false>(args);
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
