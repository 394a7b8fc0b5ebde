// Products whose sums are cut into blocks, by tile registers, for a file that has included
// tile_sums.inl.h: 32 rows of a panel. Sums of a block are stored as whole numbers, and while tiles
// multiply the next blocks, vectors make floats of them.

// x has signed numbers or, where they are digits, unsigned ones. `step` is the tiles' depth.
template <bool IsTall, TileSigns Signs = TileSigns::Both>
void multiply_code_tiles(const CodeTile& tile, std::int64_t depth, std::int32_t* sums,
                         std::int64_t step = kDepthGrain) {
  constexpr std::int64_t kRightLine = kPanel * kStep;
  start_tiles<IsTall>(sums, false);
  for (std::int64_t p = 0; p < depth; p += step) {
    const std::int8_t* const right = tile.panel + p * kPanel;
    tile_load<6>(right, kRightLine);
    tile_load<7>(right + kTileLines * kStep, kRightLine);
    tile_load<4>(tile.left + p, tile.left_stride);
    tile_multiply_codes<0, 4, 6, Signs>();
    tile_multiply_codes<1, 4, 7, Signs>();
    if constexpr (IsTall) {
      tile_load<5>(tile.left + kTileLines * tile.left_stride + p, tile.left_stride);
      tile_multiply_codes<2, 5, 6, Signs>();
      tile_multiply_codes<3, 5, 7, Signs>();
    }
  }
  store_tiles<IsTall>(sums);
}

// How much of the depth a tile takes at once, so that none meets two blocks.
inline int code_tile_depth(const CodeCut& cut) {
  constexpr int kHalf = kDepthGrain / 2;
  return cut.blocks > 1 && cut.width % kDepthGrain != 0 ? kHalf : kDepthGrain;
}

// Vectors multiply the same panels: numbers of a weight are not negative in them, and sums begin
// at what takes that back.
inline bool has_block_tiles(const CodeArgs& args) {
  const int depth = code_tile_depth(args.cut);
  return args.cut.blocks > 1 && !shares_bytes(args.cut) && args.x_zeros == nullptr &&
         args.cut.width % depth == 0 && args.cut.k % depth == 0;
}

constexpr int kBlocksAtOnce = 2;
constexpr std::int64_t kTallSums = 2 * kTileLines * kPanel;

// totals += what Count blocks' sums are worth.
template <int Count, bool IsFirst, bool HasRowScales, bool HasColumnScales>
void add_block_sums(const CodeTile& tile, std::int64_t first, const std::int32_t* sums) {
  const std::int64_t blocks = tile.cut->blocks;
  const std::int32_t* const starts = tile.starts;
  const float* const row_scales = tile.x_scales;
  float* const totals = tile.totals;
  Vec of_column[Count][2];
#pragma GCC unroll 2
  for (int b = 0; b < Count; ++b)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) of_column[b][v] = scales_of_columns(tile, first + b, v);
  for (std::int64_t r = 0; r < 2 * kTileLines; ++r) {
    const std::int64_t at = r * blocks + first;
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const std::int64_t place = r * kPanel + v * kWidth;
      Vec total = {};
      if constexpr (!IsFirst) total = load(totals + place);
#pragma GCC unroll 2
      for (int b = 0; b < Count; ++b) {
        Vec factor = of_column[b][v];
        if constexpr (HasRowScales) {
          const Vec of_row = broadcast(row_scales[at + b]);
          factor = HasColumnScales ? of_row * factor : of_row;
        }
        const Sums whole = load_sums(sums + b * kTallSums + place);
        const Vec term = to_floats(add_to_sums(whole, starts[at + b])) * factor;
        total = IsFirst && b == 0 ? term : total + term;
      }
      store(totals + place, total);
    }
  }
}

template <bool HasRowScales, bool HasColumnScales>
void multiply_block_tiles(const CodeTile& tile) {
  const CodeCut& cut = *tile.cut;
  const std::int64_t depth = code_tile_depth(cut);
  alignas(64) std::int32_t sums[2][kBlocksAtOnce * kTallSums];
  const auto multiply = [&](std::int64_t block, std::int32_t* to) {
    const std::int64_t from = block * cut.width;
    CodeTile part = tile;
    part.left += from;
    part.panel += code_bytes(cut, from);
    multiply_code_tiles<true, TileSigns::OfA>(part, padded_width(cut, block), to, depth);
  };
  const auto add = [&](std::int64_t first, const std::int32_t* from) {
    if (first == 0)
      add_block_sums<kBlocksAtOnce, true, HasRowScales, HasColumnScales>(tile, first, from);
    else if (first + kBlocksAtOnce <= cut.blocks)
      add_block_sums<kBlocksAtOnce, false, HasRowScales, HasColumnScales>(tile, first, from);
    else
      add_block_sums<1, false, HasRowScales, HasColumnScales>(tile, first, from);
  };
  for (std::int64_t first = 0; first < cut.blocks + kBlocksAtOnce; first += kBlocksAtOnce) {
    std::int32_t* const to = sums[first / kBlocksAtOnce % 2];
    for (std::int64_t b = first; b < smaller(first + kBlocksAtOnce, cut.blocks); ++b)
      multiply(b, to + (b - first) * kTallSums);
    if (first > 0) add(first - kBlocksAtOnce, sums[(first / kBlocksAtOnce + 1) % 2]);
  }
}

// As multiply_vectors, which takes what is left of the rows.
template <typename TileOf, typename Finish>
void multiply_panels_by_blocks(const CodeArgs& args, const CodeLeft& left, TileOf tile_of,
                               Finish finish) {
  constexpr std::int64_t kRows = 2 * kTileLines;
  const std::int64_t whole = args.rows / kRows * kRows;
  for (std::int64_t column = 0; column < args.n; column += kPanel) {
    const CodeTile panel = tile_of(column);
    const std::int64_t columns = smaller(args.n - column, kPanel);
    for (std::int64_t row = 0; row < whole; row += kRows) {
      const CodeTile part = rows_of_tile(panel, left, row);
      if (!args.cut.x_has_blocks)
        multiply_block_tiles<false, true>(part);
      else if (args.cut.weight_has_blocks)
        multiply_block_tiles<true, true>(part);
      else
        multiply_block_tiles<true, false>(part);
      finish(part, row, kRows, column, columns);
    }
    multiply_panel(panel, left, whole, args.rows, column, columns, finish);
  }
}
