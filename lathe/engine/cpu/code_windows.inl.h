// Products of whole numbers whose rows are windows of an image, for a file that has included
// code_gemm.inl.h and whose vectors multiply numbers of x as they lie.

static_assert(kStep == kWindowStep && sizeof(Left) == 1);

template <bool IsShared, int Rows>
void multiply_lying(const CodeWindowArgs& args, const CodeTile& tile) {
  Sums sums[Rows][2];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < 2; ++v) sums[r][v] = start_sums(tile.starts[r]);
  const std::int64_t of_line = code_bytes(*tile.cut, args.length);
  for (std::int64_t line = 0; line < args.lines; ++line)
    add_lines<IsShared, Rows>(tile, args.length, tile.left + line * args.line_step,
                              tile.panel + line * of_line, sums);
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < 2; ++v) store_sums(tile.totals + r * kPanel + v * kWidth, sums[r][v]);
}

template <bool IsShared, int Rows = kCodeRows>
void multiply_lying_up_to(const CodeWindowArgs& args, const CodeTile& tile, std::int64_t rows) {
  if constexpr (Rows > 1)
    if (rows < Rows) return multiply_lying_up_to<IsShared, Rows - 1>(args, tile, rows);
  multiply_lying<IsShared, Rows>(args, tile);
}

// A panel of the weight meets all windows before the next one does.
inline void code_multiply_windows(const CodeWindowArgs& args) {
  const CodeArgs& product = args.product;
  const std::int32_t offset = weight_offset(product.cut);
  const std::int64_t tiles = (args.pixels + kCodeRows - 1) / kCodeRows;
  alignas(64) float totals[kCodeRows * kPanel];
  std::int32_t starts[kCodeRows];
  for (std::int64_t column = 0; column < product.n; column += kPanel) {
    CodeTile tile = tile_of_panel(product, starts, totals, column);
    tile.left_stride = args.x_step;
    const std::int64_t columns = smaller(product.n - column, kPanel);
    for (std::int64_t line = 0; line * args.pixels < product.rows; ++line)
      for (std::int64_t t = 0; t < tiles; ++t) {
        const std::int64_t first = t * args.pixels / tiles;
        const std::int64_t count = (t + 1) * args.pixels / tiles - first;
        const std::int64_t window = line * args.pixels + first;
        for (std::int64_t i = 0; i < count; ++i) starts[i] = -offset * args.sums[window + i];
        tile.left = args.x[line] + first * args.x_step;
        if (shares_bytes(product.cut))
          multiply_lying_up_to<true>(args, tile, count);
        else
          multiply_lying_up_to<false>(args, tile, count);
        finish_codes(product, window, count, column, columns, tile.weight_scales,
                     [&](std::int64_t r, std::int64_t c) {
                       return to_floats(load_sums(totals + r * kPanel + c));
                     });
      }
  }
}

inline void code_sum_pixels(const std::int8_t* x, std::int64_t pixels, std::int64_t channels,
                            std::int32_t* sums) {
  if (channels != kWindowStep)
    for (std::int64_t i = 0; i < pixels; ++i) sums[i] = sum_numbers(x + i * channels, channels);
  else
    for (std::int64_t i = 0; i < pixels; ++i)
      sums[i] = x[4 * i] + x[4 * i + 1] + x[4 * i + 2] + x[4 * i + 3];
}

constexpr auto kMultiplyWindows = code_multiply_windows;
constexpr auto kSumPixels = code_sum_pixels;
