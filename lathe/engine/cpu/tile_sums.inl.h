// Two by two tiles of sums, 32 rows of a panel, or the upper two of them: registers 0 to 3, for a
// file that has included gemm.inl.h and tile registers (tiles_amx.h or tiles_emulated.h).

constexpr std::int64_t kTileLines = 16;
static_assert(kPanel == 2 * kTileLines);
constexpr std::int64_t kSumsLine = kPanel * 4;

// From sums[rows, kPanel], or from 0.
template <bool IsTall, typename Sum>
inline void start_tiles(const Sum* sums, bool accumulate) {
  const Sum* const lower = sums + kTileLines * kPanel;
  if (accumulate) {
    tile_load<0>(sums, kSumsLine);
    tile_load<1>(sums + kTileLines, kSumsLine);
    if constexpr (IsTall) {
      tile_load<2>(lower, kSumsLine);
      tile_load<3>(lower + kTileLines, kSumsLine);
    }
    return;
  }
  tile_zero<0>();
  tile_zero<1>();
  if constexpr (IsTall) {
    tile_zero<2>();
    tile_zero<3>();
  }
}

template <bool IsTall, typename Sum>
inline void store_tiles(Sum* sums) {
  tile_store<0>(sums, kSumsLine);
  tile_store<1>(sums + kTileLines, kSumsLine);
  if constexpr (IsTall) {
    tile_store<2>(sums + kTileLines * kPanel, kSumsLine);
    tile_store<3>(sums + kTileLines * kPanel + kTileLines, kSumsLine);
  }
}
