// Going through a panel by tile registers of 16 lines of 64 bytes: two by two tiles of sums, 32
// rows by 32 columns (tile_sums.inl.h). Few rows of blocks, and blocks that are no whole tiles, go
// by vectors.

constexpr std::int64_t kLeftRows = 2 * kTileLines;
constexpr std::int64_t kPanelGroup = 4;
constexpr double kCodeSpeed = 32;
static_assert(kStep == 4 && kDepthGrain == 64);

inline CodeLeft find_left(const CodeArgs& args, std::int64_t stride, Left* scratch) {
  const bool by_tiles = multiplies_by_tiles(args.cut);
  const bool is_whole = padded_code_depth(args.cut) == args.cut.k;
  // Tiles have all their lines: rows of the last that are not there are zeros in scratch.
  const std::int64_t tail = !is_whole  ? 0
                            : by_tiles ? args.rows / kLeftRows * kLeftRows
                                       : args.rows;
  for (std::int64_t r = tail; r < args.rows; ++r) {
    Left* const to = scratch + (r - tail) * stride;
    __builtin_memcpy(to, args.x + r * args.x_stride, static_cast<std::size_t>(args.cut.k));
    for (std::int64_t p = args.cut.k; p < stride; ++p) to[p] = 0;
  }
  if (by_tiles && tail < args.rows)
    __builtin_memset(
        scratch + (args.rows - tail) * stride, 0,
        static_cast<std::size_t>((round_up(args.rows, kLeftRows) - args.rows) * stride));
  return {args.x, args.x_stride, tail, scratch, stride};
}

// Some columns of B stay in the second-level cache while all rows meet them, 32 rows in the nearest
// one, and what becomes of their totals is done for a few panels together. Rows of y are longer
// than a page may be, and lines that nobody has near are written faster by runs of eight than by
// two.
template <typename TileOf, typename Finish>
void multiply_panels(const CodeArgs& args, const CodeLeft& left, TileOf tile_of, Finish finish) {
  if (has_block_tiles(args)) return multiply_panels_by_blocks(args, left, tile_of, finish);
  if (!multiplies_by_tiles(args.cut)) return multiply_vectors(args, left, tile_of, finish);
  constexpr std::int64_t kCachedBytes = 600 << 10;
  const std::int64_t depth = padded_code_depth(args.cut), group = kPanelGroup * kPanel;
  const std::int64_t groups = kCachedBytes / (depth * group);
  const std::int64_t cached = (groups > 0 ? groups : 1) * group;
  for (std::int64_t first = 0; first < args.n; first += cached)
    for (std::int64_t row = 0; row < args.rows; row += kLeftRows)
      for (std::int64_t from = first; from < smaller(first + cached, args.n); from += group) {
        const std::int64_t rows = smaller(args.rows - row, kLeftRows);
        const std::int64_t columns = smaller(args.n - from, group);
        for (std::int64_t c = 0; c < columns; c += kPanel) {
          const CodeTile part = rows_of_tile(tile_of(from + c), left, row);
          auto* const sums = reinterpret_cast<std::int32_t*>(part.totals) + c * kLeftRows;
          if (rows > kTileLines)
            multiply_code_tiles<true>(part, depth, sums);
          else
            multiply_code_tiles<false>(part, depth, sums);
        }
        finish(rows_of_tile(tile_of(from), left, row), row, rows, from, columns);
      }
}
