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

inline void convolve_gradient(const ConvolveGradientArgs& args) {
  // One vector of 16 filters, as Winograd's products of layers of 16 channels have, is one tile.
  constexpr int kHeldRows = 16;
  if constexpr (kTileRows * kTileVectors >= kHeldRows)
    if (args.n == kHeldRows && args.k == kWidth)
      return gradient_tile<kHeldRows, 1, Whole>(args, 0, 0, {Whole{}});
  const RowTiles tiles(args.n);
  for (std::int64_t column = 0; column < args.k; column += kPanel)
    for (std::int64_t t = 0; t < tiles.count; ++t)
      gradient_up_to<kTileRows>(args, tiles.begin(t), tiles.begin(t + 1) - tiles.begin(t), column);
}
