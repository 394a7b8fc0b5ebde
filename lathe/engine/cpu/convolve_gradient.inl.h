// The gradient of a convolution's weight: dy of a pixel by the line of x under its window, added up
// over all pixels of an image. A tile of the gradient stays in registers while they pass by; both
// operands are read where they lie.

template <int Rows, int Vectors, typename Lanes>
void gradient_tile(const ConvolveGradientArgs& args, std::int64_t first, std::int64_t column,
                   const Lanes (&lanes)[Vectors]) {
  float* const dw = args.dw + first * args.dw_stride + column;
  Vec sums[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v)
      sums[r][v] =
          args.accumulate ? load(dw + r * args.dw_stride + v * kWidth, lanes[v]) : broadcast(0.0f);
  for (std::int64_t line = 0; line < args.lines; ++line) {
    const float* dy = args.dy + line * args.dy_line + first;
    const float* x = args.x + line * args.x_line + column;
    for (std::int64_t pixel = 0; pixel < args.pixels; ++pixel) {
      Vec columns[Vectors];
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) columns[v] = load(x + v * kWidth, lanes[v]);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const Vec element = broadcast(dy[r]);
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) sums[r][v] = fma(element, columns[v], sums[r][v]);
      }
      dy += args.dy_step;
      x += args.x_step;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v)
      store(dw + r * args.dw_stride + v * kWidth, sums[r][v], lanes[v]);
}

template <int Rows>
void gradient_up_to(const ConvolveGradientArgs& args, std::int64_t first, std::int64_t rows,
                    std::int64_t column) {
  if constexpr (Rows > 1)
    if (rows < Rows) return gradient_up_to<Rows - 1>(args, first, rows, column);
  static_assert(kTileVectors == 2);
  const std::int64_t columns = args.k - column;
  if (columns >= 2 * kWidth)
    gradient_tile<Rows, 2, Whole>(args, first, column, {Whole{}, Whole{}});
  else if (columns > kWidth)
    gradient_tile<Rows, 2, Mask>(args, first, column,
                                 {first_lanes(kWidth), first_lanes(columns - kWidth)});
  else if (columns == kWidth)
    gradient_tile<Rows, 1, Whole>(args, first, column, {Whole{}});
  else
    gradient_tile<Rows, 1, Mask>(args, first, column, {first_lanes(columns)});
}

// The same of filters in the lanes, a panel of them at a time: an image of few channels would leave
// most lanes of its lines empty.
inline void gradient_of_panels(const ConvolveGradientArgs& args) {
  constexpr std::int64_t kMostLines = 32;
  float turned[kMostLines * kPanel];
  for (std::int64_t f = 0; f < args.n; f += kPanel)
    for (std::int64_t first = 0; first < args.k; first += kMostLines) {
      const std::int64_t filters = smaller(args.n - f, kPanel);
      const std::int64_t lines = smaller(args.k - first, kMostLines);
      float* const dw = args.dw + f * args.dw_stride + first;
      const auto over_both = [&](auto visit) {
        for (std::int64_t r = 0; r < filters; ++r)
          for (std::int64_t c = 0; c < lines; ++c)
            visit(dw[r * args.dw_stride + c], turned[c * kPanel + r]);
      };
      if (args.accumulate) over_both([](float from, float& to) { to = from; });
      ConvolveGradientArgs other = args;
      other.n = lines, other.k = filters;
      other.dy = args.x + first, other.dy_line = args.x_line, other.dy_step = args.x_step;
      other.x = args.dy + f, other.x_line = args.dy_line, other.x_step = args.dy_step;
      other.dw = turned, other.dw_stride = kPanel;
      const RowTiles tiles(lines);
      for (std::int64_t t = 0; t < tiles.count; ++t)
        gradient_up_to<kTileRows>(other, tiles.begin(t), tiles.begin(t + 1) - tiles.begin(t), 0);
      over_both([](float& to, float from) { to = from; });
    }
}

inline void convolve_gradient(const ConvolveGradientArgs& args) {
  // One vector of 16 filters, as Winograd's products of layers of 16 channels have, is one tile.
  constexpr int kHeldRows = 16;
  if constexpr (kTileRows * kTileVectors >= kHeldRows)
    if (args.n == kHeldRows && args.k == kWidth)
      return gradient_tile<kHeldRows, 1, Whole>(args, 0, 0, {Whole{}});
  const auto vectors = [](std::int64_t count) { return (count + kWidth - 1) / kWidth; };
  if (args.k * vectors(args.n) < args.n * vectors(args.k)) return gradient_of_panels(args);
  const RowTiles tiles(args.n);
  for (std::int64_t column = 0; column < args.k; column += kPanel)
    for (std::int64_t t = 0; t < tiles.count; ++t)
      gradient_up_to<kTileRows>(args, tiles.begin(t), tiles.begin(t + 1) - tiles.begin(t), column);
}
