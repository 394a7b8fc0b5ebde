// Products of floats with a weight of whole numbers, for a file that has included gemm_block.inl.h
// and code_numbers_*.h. It goes as gemm_block does, with a piece of a panel made floats before all
// rows of the block meet it.

inline std::int64_t widened_scratch_bytes(std::int64_t rows, std::int64_t n) {
  return (gemm_block_scratch(rows, n) + kDepth * kPanel) * 4;
}

// The scales of a vector's columns, `at` numbers from the first panel's.
inline Vec load_scales(const WidenedArgs& args, std::int64_t at) {
  return args.powers != nullptr ? load_powers(args.powers + at) : load(args.scales + at);
}

// to[depth, kPanel] = the panel's rows from `from` on, times their scales.
inline void widen_panel(const WidenedArgs& args, std::int64_t column, std::int64_t from,
                        std::int64_t depth, float* to) {
  const std::int64_t blocks = (args.k + args.width - 1) / args.width;
  const std::int8_t* numbers = args.numbers + column * args.k + from * kPanel;
  static_assert(kTileVectors == 2);
  for (std::int64_t p = from; p < from + depth;) {
    const std::int64_t line = column * blocks + p / args.width * kPanel;
    const Vec first_scale = load_scales(args, line),
              second_scale = load_scales(args, line + kWidth);
    const std::int64_t end = smaller(from + depth, (p / args.width + 1) * args.width);
    for (; p < end; ++p, numbers += kPanel, to += kPanel) {
      store(to, load_numbers(numbers) * first_scale);
      store(to + kWidth, load_numbers(numbers + kWidth) * second_scale);
    }
  }
}

// Few rows: numbers become floats in registers, and the order of sums is the same.
constexpr int kFewWidenedRows = 4;

template <int Rows>
void multiply_few_widened(const WidenedArgs& args, std::int64_t column, float* sums) {
  const std::int64_t blocks = (args.k + args.width - 1) / args.width;
  const std::int8_t* numbers = args.numbers + column * args.k;
  Vec totals[Rows][2];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < 2; ++v) totals[r][v] = broadcast(0.0f);
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t line = column * blocks + b * kPanel;
    const Vec scales[2] = {load_scales(args, line), load_scales(args, line + kWidth)};
    const std::int64_t end = smaller(args.k, (b + 1) * args.width);
    for (std::int64_t p = b * args.width; p < end; ++p, numbers += kPanel) {
      const Vec weights[2] = {load_numbers(numbers) * scales[0],
                              load_numbers(numbers + kWidth) * scales[1]};
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const Vec element = broadcast(args.x[r * args.x_stride + p]);
#pragma GCC unroll 16
        for (int v = 0; v < 2; ++v) totals[r][v] = fma(element, weights[v], totals[r][v]);
      }
    }
  }
  const Vec one = broadcast(1.0f);
  const std::int64_t columns = smaller(args.n - column, kPanel);
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < 2; ++v) {
      const Mask lanes = first_lanes(columns > v * kWidth ? columns - v * kWidth : 0);
      const Vec bias = args.bias ? load(args.bias + column + v * kWidth, lanes) : broadcast(0.0f);
      store(sums + r * kPanel + v * kWidth, fma(totals[r][v], one, bias));
    }
}

template <int Rows>
void multiply_few_up_to(const WidenedArgs& args, std::int64_t column, float* sums) {
  if constexpr (Rows > 1)
    if (args.rows < Rows) return multiply_few_up_to<Rows - 1>(args, column, sums);
  multiply_few_widened<Rows>(args, column, sums);
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

inline void multiply_widened(const WidenedArgs& args) {
  if (args.rows <= kFewWidenedRows) {
    float sums[kFewWidenedRows * kPanel];
    for (std::int64_t column = 0; column < args.n; column += kPanel) {
      multiply_few_up_to<kFewWidenedRows>(args, column, sums);
      finish_widened(args, 0, args.rows, column, sums);
    }
    return;
  }
  const RowTiles tiles(args.rows);
  const DepthPieces pieces(args.k);
  const bool is_copied = is_crowded(args.x_stride) && args.n >= kLeastCopied;
  auto* const copied = static_cast<float*>(args.scratch);
  float* const all_sums = copied + args.rows * kCopyStride;
  float* const panel = copied + gemm_block_scratch(args.rows, args.n);
  for (std::int64_t piece = 0; piece < pieces.count; ++piece) {
    const std::int64_t from = pieces.begin(piece), depth = pieces.begin(piece + 1) - from;
    const bool is_last = piece + 1 == pieces.count;
    const float* const x = is_copied ? copied : args.x + from;
    const std::int64_t x_stride = is_copied ? kCopyStride : args.x_stride;
    if (is_copied)
      for (std::int64_t r = 0; r < args.rows; ++r)
        map(args.x + r * args.x_stride + from, depth, copied + r * kCopyStride,
            [](Vec a) { return a; });
    for (std::int64_t column = 0; column < args.n; column += kPanel) {
      const std::int64_t columns = smaller(args.n - column, kPanel);
      widen_panel(args, column, from, depth, panel);
      for (std::int64_t t = 0; t < tiles.count; ++t) {
        const std::int64_t row = tiles.begin(t), rows = tiles.begin(t + 1) - row;
        float* const sums = all_sums + column * args.rows + row * kPanel;
        multiply_tile({.k = depth,
                       .x = x + row * x_stride,
                       .x_stride = x_stride,
                       .panel = panel,
                       .y = sums,
                       .y_stride = kPanel,
                       .columns = columns,
                       .bias = args.bias ? args.bias + column : nullptr,
                       .scale = 1.0f,
                       .accumulate = piece > 0,
                       .is_partial = !is_last},
                      rows);
        if (is_last) finish_widened(args, row, rows, column, sums);
      }
    }
  }
}
