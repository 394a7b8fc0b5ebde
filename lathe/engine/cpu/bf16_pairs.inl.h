// Multiplying pairs of bfloat16 numbers in vector registers: `Pairs`, `load_pairs`,
// `broadcast_pairs` and `add_pairs` are those of an instruction set, and so is kPairRows.

struct PairTiles {
  std::int64_t rows, count;
  explicit PairTiles(std::int64_t all_rows)
      : rows(all_rows), count((all_rows + kPairRows - 1) / kPairRows) {}
  std::int64_t begin(std::int64_t tile) const { return tile * rows / count; }
  std::int64_t holding(std::int64_t row) const { return ((row + 1) * count - 1) / rows; }
};

inline bool reads_rows(std::int64_t /*rows*/) {
  return false;
}
constexpr bool kWorksBeside = false;

// Nothing to set up.
struct TileSession {
  TileSession() {}
};

template <int Rows>
void multiply_pair_rows(const PairTile& tile) {
  static_assert(kTileVectors == 2);
  Vec sums[Rows][2];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < 2; ++v)
      sums[r][v] = tile.accumulate ? load(tile.sums + r * kPanel + v * kWidth) : broadcast(0.0f);
  const std::uint16_t* left = tile.left;
  const std::uint16_t* right = tile.right;
  for (std::int64_t p = 0; p < tile.depth; p += 2) {
    const Pairs columns[2] = {load_pairs(right), load_pairs(right + 2 * kWidth)};
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const Pairs element = broadcast_pairs(left + r * kLeftStride);
#pragma GCC unroll 16
      for (int v = 0; v < 2; ++v) sums[r][v] = add_pairs(sums[r][v], element, columns[v]);
    }
    left += 2;
    right += 2 * kPanel;
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < 2; ++v) store(tile.sums + r * kPanel + v * kWidth, sums[r][v]);
}

template <int Rows>
void multiply_pairs_up_to(const PairTile& tile, std::int64_t rows) {
  if constexpr (Rows > 1)
    if (rows < Rows) return multiply_pairs_up_to<Rows - 1>(tile, rows);
  multiply_pair_rows<Rows>(tile);
}
template <typename Beside = NothingBeside>
void multiply_pairs(const PairTile& tile, std::int64_t rows, const Beside& /*beside*/ = {}) {
  multiply_pairs_up_to<kPairRows>(tile, rows);
}
