// Multiplying pairs of bfloat16 numbers in tile registers of 16 lines of 64 bytes: two by two tiles
// of sums, 32 rows by 32 columns. `tile_zero`, `tile_load`, `tile_store`, `tile_multiply` and
// `TileSession` are the processor's (tiles_amx.h) or stand for them (tiles_emulated.h).

constexpr std::int64_t kPairRows = 2 * kTileLines;
constexpr double kPairSpeed = 16;

// Tiles begin at multiples of kPairRows: scratch has room for a last one that is not full.
struct PairTiles {
  std::int64_t rows, count;
  explicit PairTiles(std::int64_t all_rows)
      : rows(all_rows), count((all_rows + kPairRows - 1) / kPairRows) {}
  std::int64_t begin(std::int64_t tile) const { return smaller(tile * kPairRows, rows); }
  static std::int64_t holding(std::int64_t row) { return row / kPairRows; }
};

// Whether so many rows are multiplied where they lie, because no tile reads beyond them.
inline bool reads_rows(std::int64_t rows) {
  return rows % kTileLines == 0;
}
constexpr bool kWorksBeside = true;

// Vectors have nothing to do while tiles are multiplied: they work on `beside`.
template <bool IsTall, typename Beside>
void multiply_tiles(const PairTile& tile, Beside& beside) {
  constexpr std::int64_t kRightLine = kPanel * 4;
  const std::int64_t left_line = tile.left_stride * 2;
  start_tiles<IsTall>(tile.sums, tile.accumulate);
  for (std::int64_t p = 0; p < tile.depth; p += 2 * kTileLines) {
    const std::uint16_t* const right = tile.right + p * kPanel;
    tile_load<6>(right, kRightLine);
    tile_load<7>(right + 2 * kTileLines, kRightLine);
    tile_load<4>(tile.left + p, left_line);
    tile_multiply<0, 4, 6>();
    tile_multiply<1, 4, 7>();
    if constexpr (IsTall) {
      tile_load<5>(tile.left + kTileLines * tile.left_stride + p, left_line);
      tile_multiply<2, 5, 6>();
      tile_multiply<3, 5, 7>();
    }
    beside.some(p / (2 * kTileLines));
  }
  store_tiles<IsTall>(tile.sums);
}

template <typename Beside = NothingBeside>
void multiply_pairs(const PairTile& tile, std::int64_t rows, Beside beside = {}) {
  if (rows > kTileLines)
    multiply_tiles<true>(tile, beside);
  else
    multiply_tiles<false>(tile, beside);
}
