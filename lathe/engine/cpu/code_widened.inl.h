// Products of floats with a weight of whole numbers, for a file that has included gemm_block.inl.h,
// code_numbers_*.h, code_scales.inl.h, code_digits_*.h or code_no_digits.h, and code_fours_*.h or
// code_no_fours.h. It goes as
// gemm_block does, with a piece of a panel made floats before all rows of the block meet it.

inline std::int64_t widened_scratch_bytes(std::int64_t rows, std::int64_t n, std::int64_t k,
                                          std::int64_t width) {
  const std::int64_t by_floats = (gemm_block_scratch(rows, n) + kDepth * kPanel) * 4;
  if (kWidenedStep == 1) return by_floats;
  const std::int64_t by_digits = smaller(rows, kFewWidenedRows) * digit_row_bytes(k, width);
  return by_digits > by_floats ? by_digits : by_floats;
}

// The same of a weight that lies by fours, a vector's columns after the other. Columns that are not
// there are 0.
inline void widen_by_fours(const WidenedArgs& args, std::int64_t column, std::int64_t from,
                           std::int64_t depth, float* to) {
  const std::int64_t blocks = (args.k + args.width - 1) / args.width;
  for (std::int64_t v = 0; v < kPanel; v += kWidth) {
    const bool is_there = column + v < args.n;
    const std::int8_t* const numbers = numbers_of_panel(args, column + v);
    for (std::int64_t p = from; p < from + depth;) {
      const std::int64_t block = p / args.width;
      const std::int64_t end = smaller(from + depth, (block + 1) * args.width);
      const Vec scale =
          is_there ? load_scales(args, (column + v) * blocks + block * kWidth) : broadcast(0.0f);
      for (; p < end; ++p)
        store(to + (p - from) * kPanel + v,
              is_there ? numbers_by_fours(args, numbers, p) * scale : scale);
    }
  }
}

// to[depth, kPanel] = the panel's rows from `from` on, times their scales.
inline void widen_panel(const WidenedArgs& args, std::int64_t column, std::int64_t from,
                        std::int64_t depth, float* to) {
  if (args.step > 1) return widen_by_fours(args, column, from, depth, to);
  const std::int64_t blocks = (args.k + args.width - 1) / args.width;
  const std::int8_t* const panel = numbers_of_panel(args, column);
  static_assert(kTileVectors == 2);
  for (std::int64_t p = from; p < from + depth;) {
    const std::int64_t line = column * blocks + p / args.width * kPanel;
    const Vec first_scale = load_scales(args, line),
              second_scale = load_scales(args, line + kWidth);
    const std::int64_t end = smaller(from + depth, (p / args.width + 1) * args.width);
    if (args.has_nibbles) {
      for (; p < end; ++p, to += kPanel) {
        const std::int8_t* const numbers = panel + p / 2 * kPanel;
        const int half = static_cast<int>(p % 2);
        store(to, numbers_of_half(load_nibbles(numbers), half) * first_scale);
        store(to + kWidth, numbers_of_half(load_nibbles(numbers + kWidth), half) * second_scale);
      }
      continue;
    }
    for (; p < end; ++p, to += kPanel) {
      const std::int8_t* const numbers = panel + p * kPanel;
      store(to, load_numbers(numbers) * first_scale);
      store(to + kWidth, load_numbers(numbers + kWidth) * second_scale);
    }
  }
}

// Few rows: numbers become floats in registers, and the order of sums is the same.

// totals += the rows of x at p times one line of weights, `Vectors` of them.
template <int Rows, int Vectors>
[[gnu::always_inline]] inline void add_line(const WidenedArgs& args, std::int64_t p,
                                            const Vec (&weights)[Vectors],
                                            Vec (&totals)[Rows][Vectors]) {
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    const Vec element = broadcast(args.x[r * args.x_stride + p]);
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) totals[r][v] = fma(element, weights[v], totals[r][v]);
  }
}

// Columns of `Vectors` / 2 panels. One row has too few sums in one of them to hide how long an
// addition takes.
template <bool HasNibbles, int Rows, int Vectors>
void multiply_few_widened(const WidenedArgs& args, std::int64_t column, float* sums) {
  const std::int64_t blocks = (args.k + args.width - 1) / args.width;
  Vec totals[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) totals[r][v] = broadcast(0.0f);
  const std::int8_t* panels[Vectors / 2];
#pragma GCC unroll 16
  for (int v = 0; v < Vectors / 2; ++v) panels[v] = numbers_of_panel(args, column + v * kPanel);
  for (std::int64_t b = 0; b < blocks; ++b) {
    Vec scales[Vectors];
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v)
      scales[v] =
          load_scales(args, (column + v / 2 * kPanel) * blocks + b * kPanel + v % 2 * kWidth);
    const std::int64_t end = smaller(args.k, (b + 1) * args.width);
    Vec weights[Vectors];
    if constexpr (HasNibbles) {
      for (std::int64_t p = b * args.width; p < end; p += 2) {
        Nibbles both[Vectors];
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v)
          both[v] = load_nibbles(panels[v / 2] + p / 2 * kPanel + v % 2 * kWidth);
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 16
          for (int v = 0; v < Vectors; ++v) weights[v] = numbers_of_half(both[v], half) * scales[v];
          add_line<Rows, Vectors>(args, p + half, weights, totals);
        }
      }
    } else {
      for (std::int64_t p = b * args.width; p < end; ++p) {
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v)
          weights[v] = load_numbers(panels[v / 2] + p * kPanel + v % 2 * kWidth) * scales[v];
        add_line<Rows, Vectors>(args, p, weights, totals);
      }
    }
  }
  const Vec one = broadcast(1.0f);
#pragma GCC unroll 16
  for (int v = 0; v < Vectors; ++v) {
    const std::int64_t from = column + v * kWidth;
    const Mask lanes = first_lanes(smaller(args.n > from ? args.n - from : 0, kWidth));
    const Vec bias = args.bias ? load(args.bias + from, lanes) : broadcast(0.0f);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
      store(sums + (v / 2 * Rows + r) * kPanel + v % 2 * kWidth, fma(totals[r][v], one, bias));
  }
}

template <bool HasNibbles, int Rows>
void multiply_few_up_to(const WidenedArgs& args, std::int64_t column, float* sums) {
  if constexpr (Rows > 1)
    if (args.rows < Rows) return multiply_few_up_to<HasNibbles, Rows - 1>(args, column, sums);
  multiply_few_widened<HasNibbles, Rows, 2>(args, column, sums);
}

inline void finish_widened(const WidenedArgs& args, std::int64_t row, std::int64_t rows,
                           std::int64_t column, const float* sums) {
  finish_rows(
      {.rows = rows,
       .columns = smaller(args.n - column, kPanel),
       .sums = sums,
       .sums_stride = kPanel,
       .activation = args.activation,
       .residual = args.residual ? args.residual + row * args.residual_stride + column : nullptr,
       .residual_stride = args.residual_stride,
       .y = args.y + row * args.y_stride + column,
       .y_stride = args.y_stride});
}

inline void multiply_few(const WidenedArgs& args) {
  float sums[kFewWidenedRows * kPanel];
  static_assert(kFewWidenedRows >= 2);
  std::int64_t column = 0;
  for (; args.rows == 1 && column + kPanel < args.n; column += 2 * kPanel) {
    if (args.has_nibbles)
      multiply_few_widened<true, 1, 4>(args, column, sums);
    else
      multiply_few_widened<false, 1, 4>(args, column, sums);
    for (int panel = 0; panel < 2; ++panel)
      finish_widened(args, 0, 1, column + panel * kPanel, sums + panel * kPanel);
  }
  for (; column < args.n; column += kPanel) {
    if (args.has_nibbles)
      multiply_few_up_to<true, kFewWidenedRows>(args, column, sums);
    else
      multiply_few_up_to<false, kFewWidenedRows>(args, column, sums);
    finish_widened(args, 0, args.rows, column, sums);
  }
}

template <bool HasNibbles, int Vectors>
void multiply_digits_up_to(const WidenedArgs& args, const DigitRow& row, std::int64_t column,
                           float* sums) {
  if constexpr (Vectors > 1)
    if (args.n - column <= (Vectors - 1) * kWidth)
      return multiply_digits_up_to<HasNibbles, Vectors - 1>(args, row, column, sums);
  multiply_digits<HasNibbles, Vectors>(args, row, column, sums);
}

// The same in whole numbers, row by row: columns are near when the second row meets them.
inline void multiply_few_by_digits(const WidenedArgs& args) {
  constexpr int kVectors = 4;
  DigitRow rows[kFewWidenedRows];
  for (std::int64_t r = 0; r < args.rows; ++r) rows[r] = make_digit_row(args, r);
  float sums[kVectors * kWidth];
  for (std::int64_t column = 0; column < args.n; column += kVectors * kWidth)
    for (std::int64_t r = 0; r < args.rows; ++r) {
      if (args.has_nibbles)
        multiply_digits_up_to<true, kVectors>(args, rows[r], column, sums);
      else
        multiply_digits_up_to<false, kVectors>(args, rows[r], column, sums);
      const std::int64_t end = smaller(args.n, column + kVectors * kWidth);
      for (std::int64_t from = column; from < end; from += kPanel)
        finish_widened(args, r, 1, from, sums + (from - column));
    }
}

inline void multiply_widened(const WidenedArgs& args) {
  if (args.step > 1 && args.is_few) return multiply_few_by_digits(args);
  if (args.step == 1 && args.rows <= kFewWidenedRows) return multiply_few(args);
  const RowTiles tiles(args.rows);
  auto* const copied = static_cast<float*>(args.scratch);
  float* const all_sums = copied + args.rows * kCopyStride;
  float* const panel = copied + gemm_block_scratch(args.rows, args.n);
  over_depth_pieces(args, copied, [&](const DepthPiece& piece) {
    for (std::int64_t column = 0; column < args.n; column += kPanel) {
      const std::int64_t columns = smaller(args.n - column, kPanel);
      widen_panel(args, column, piece.from, piece.depth, panel);
      for (std::int64_t t = 0; t < tiles.count; ++t) {
        const std::int64_t row = tiles.begin(t), rows = tiles.begin(t + 1) - row;
        float* const sums = all_sums + column * args.rows + row * kPanel;
        multiply_tile({.k = piece.depth,
                       .x = piece.x + row * piece.x_stride,
                       .x_stride = piece.x_stride,
                       .panel = panel,
                       .y = sums,
                       .y_stride = kPanel,
                       .columns = columns,
                       .bias = args.bias ? args.bias + column : nullptr,
                       .scale = 1.0f,
                       .accumulate = !piece.is_first,
                       .is_partial = !piece.is_last},
                      rows);
        if (piece.is_last) finish_widened(args, row, rows, column, sums);
      }
    }
  });
}
