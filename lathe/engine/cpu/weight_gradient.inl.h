// The gradient of a linear layer's weight: the tiles of gemm.inl.h with the rows as the inner
// index. A tile of dw takes a column of dy, whose elements lie dy_stride apart, by a panel of x.

inline void weight_gradient(const WeightGradientArgs& args) {
  // A panel of a block of rows stays in the nearest cache while all of dy passes by it. What a
  // block adds to dw goes through memory, which does not change its bits.
  constexpr std::int64_t kBlockRows = 192;
  alignas(64) float panel[kBlockRows * kPanel];
  const RowTiles tiles(args.n);
  std::int64_t row = 0;
  do {  // without rows, once: the sums are 0 then
    const std::int64_t rows = smaller(args.rows - row, kBlockRows);
    for (std::int64_t column = 0; column < args.k; column += kPanel) {
      const std::int64_t columns = smaller(args.k - column, kPanel);
      pack_b(args.x + row * args.x_stride + column, columns, rows, 1, args.x_stride, panel);
      for (std::int64_t t = 0; t < tiles.count; ++t) {
        const std::int64_t first = tiles.begin(t);
        multiply_tile({.k = rows,
                       .x = args.dy + row * args.dy_stride + first,
                       .x_stride = 1,
                       .x_step = args.dy_stride,
                       .panel = panel,
                       .y = args.dw + first * args.dw_stride + column,
                       .y_stride = args.dw_stride,
                       .columns = columns,
                       .bias = nullptr,
                       .scale = 1.0f,
                       .accumulate = args.accumulate || row > 0},
                      tiles.begin(t + 1) - first);
      }
    }
    row += kBlockRows;
  } while (row < args.rows);
}
