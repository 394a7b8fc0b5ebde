// Products whose operands no second-level cache holds, one block of the result at a time.
//
// The depth is cut into pieces, and the sums of a block go on from piece to piece in the caller's
// scratch. Of a piece, a panel of B meets all rows of the block before the next one is read, and
// the rows stay in the second-level cache. Each sum has one accumulator that goes through k in
// ascending order, so that a result has the bits of `gemm` whatever block it is computed in.

constexpr std::int64_t kDepth = 768;
// A line more than a piece has keeps copied rows apart in the sets of a cache.
constexpr std::int64_t kCopyStride = kDepth + 16;

// Columns that make the copy worth its time.
constexpr std::int64_t kLeastCopied = 192;

struct DepthPieces {
  std::int64_t k, count;
  explicit DepthPieces(std::int64_t depth)
      : k(depth), count(depth > kDepth ? (depth + kDepth - 1) / kDepth : 1) {}
  std::int64_t begin(std::int64_t piece) const { return piece * k / count; }
};

// Whether rows so far apart meet in one or two sets of the nearest cache, which has 64 of them for
// lines of 16 floats: a tile's rows would not fit there.
inline bool is_crowded(std::int64_t stride) {
  return stride % (16 * 32) == 0;
}

inline std::int64_t gemm_block_scratch(std::int64_t rows, std::int64_t n) {
  return rows * (kCopyStride + round_up(n, kPanel));
}

// What a product reads of x for a piece of its depth.
struct DepthPiece {
  std::int64_t from, depth;
  const float* x;  // at `from`
  std::int64_t x_stride;
  bool is_first, is_last;
};

// Calls body(piece) for each piece of the depth of a product of GemmArgs or the like; `copied` has
// kCopyStride floats for each row, which rows that are crowded are copied to.
template <typename Args, typename Body>
[[gnu::always_inline]] inline void over_depth_pieces(const Args& args, float* copied, Body body) {
  const DepthPieces pieces(args.k);
  const bool is_copied = is_crowded(args.x_stride) && args.n >= kLeastCopied;
  for (std::int64_t piece = 0; piece < pieces.count; ++piece) {
    const std::int64_t from = pieces.begin(piece), depth = pieces.begin(piece + 1) - from;
    if (is_copied)
      for (std::int64_t r = 0; r < args.rows; ++r)
        map(args.x + r * args.x_stride + from, depth, copied + r * kCopyStride,
            [](Vec a) { return a; });
    body(DepthPiece{.from = from,
                    .depth = depth,
                    .x = is_copied ? copied : args.x + from,
                    .x_stride = is_copied ? kCopyStride : args.x_stride,
                    .is_first = piece == 0,
                    .is_last = piece + 1 == pieces.count});
  }
}

inline void gemm_block(const GemmArgs& args, float* scratch) {
  const RowTiles tiles(args.rows);
  const bool goes_to_y =
      DepthPieces(args.k).count == 1 && args.activation == Unary::None && args.residual == nullptr;
  float* const all_sums = scratch + args.rows * kCopyStride;
  over_depth_pieces(args, scratch, [&](const DepthPiece& piece) {
    for (std::int64_t column = 0; column < args.n; column += kPanel) {
      const std::int64_t columns = smaller(args.n - column, kPanel);
      for (std::int64_t t = 0; t < tiles.count; ++t) {
        const std::int64_t row = tiles.begin(t), rows = tiles.begin(t + 1) - row;
        float* const sums = all_sums + column * args.rows + row * kPanel;
        float* const y = args.y + row * args.y_stride + column;
        multiply_tile({.k = piece.depth,
                       .x = piece.x + row * piece.x_stride,
                       .x_stride = piece.x_stride,
                       .panel = args.packed + column * args.k + piece.from * kPanel,
                       .y = goes_to_y ? y : sums,
                       .y_stride = goes_to_y ? args.y_stride : kPanel,
                       .columns = columns,
                       .bias = args.bias ? args.bias + column : nullptr,
                       .scale = 1.0f,
                       .accumulate = !piece.is_first,
                       .is_partial = !piece.is_last},
                      rows);
        if (piece.is_last && !goes_to_y)
          finish_rows({.rows = rows,
                       .columns = columns,
                       .sums = sums,
                       .sums_stride = kPanel,
                       .activation = args.activation,
                       .residual = args.residual
                                       ? args.residual + row * args.residual_stride + column
                                       : nullptr,
                       .residual_stride = args.residual_stride,
                       .y = y,
                       .y_stride = args.y_stride});
      }
    }
  });
}
