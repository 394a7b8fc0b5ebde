// Multiplying whole numbers of 8 bits in vector registers, for a file that supplies one way to do
// it:
//
//   kStep          numbers of x that one instruction multiplies
//   multiplies_by_tiles  whether a product goes by other registers, kDepthGrain deep
//   Left           how a number of x lies while it is multiplied
//   kVectorOffset  what is added to a number of a weight when it is packed, so that it is not
//                  negative; sums begin at minus that times the sum of x (sum_numbers)
//   Sums           of a vector's columns: start_sums, load_sums, store_sums, subtract_times,
//                  to_floats
//   Columns        kStep numbers of each column: load_columns, half_of
//   Element        kStep numbers of x for all columns: broadcast_element, add_codes
//
// A panel of a weight has for each kStep rows a line in which every column has its kStep numbers,
// block after block.

constexpr int kCodeRows = kTileRows;
// Tiles with blocks have sums of floats beside those of whole numbers.
constexpr int kBlockRows = (kTileRows - 2) / 2;

// Whether two lines of a panel share their bytes: the first has the lower halves.
inline bool shares_bytes(const CodeCut& cut) {
  return cut.has_nibbles && !multiplies_by_tiles(cut);
}
// What is added to a number of a weight when it is packed.
inline std::int32_t weight_offset(const CodeCut& cut) {
  if (shares_bytes(cut)) return 8;
  return multiplies_by_tiles(cut) ? 0 : kVectorOffset;
}

inline std::int64_t padded_width(const CodeCut& cut, std::int64_t block) {
  const std::int64_t width = smaller(cut.width, cut.k - block * cut.width);
  if (multiplies_by_tiles(cut)) return round_up(width, kDepthGrain);
  return round_up(width, shares_bytes(cut) ? 2 * kStep : kStep);
}
inline std::int64_t padded_code_depth(const CodeCut& cut) {
  return (cut.blocks - 1) * cut.width + padded_width(cut, cut.blocks - 1);
}
// Bytes of so many lines of kPanel numbers.
inline std::int64_t code_bytes(const CodeCut& cut, std::int64_t depth) {
  return depth * kPanel / (shares_bytes(cut) ? 2 : 1);
}
inline std::int64_t code_packed_size(std::int64_t n, const CodeCut& cut) {
  return round_up(n, kPanel) / kPanel * code_bytes(cut, padded_code_depth(cut));
}

// totals[rows, kPanel] of a panel, before the factors of rows and columns: floats of products with
// blocks, else the whole numbers themselves.
struct CodeTile {
  const CodeCut* cut;
  const Left* left;
  std::int64_t left_stride;
  const std::int8_t* panel;
  const std::int32_t* starts;         // [rows, blocks]
  const std::int32_t* zeros;          // [rows, blocks or 1], or null
  const std::int32_t* sums;           // of the panel's columns, [blocks, kPanel]
  const float* x_scales;              // [rows, blocks], where x has blocks
  const float* weight_scales;         // [blocks, kPanel], where the weight has blocks
  const std::uint8_t* weight_powers;  // the same as exponents, or null
  float* totals;
};

template <int Rows>
[[gnu::always_inline]] inline void add_block(const CodeTile& tile, std::int64_t depth,
                                             const Left* left, const std::int8_t* panel,
                                             Sums (&sums)[Rows][2]) {
  const std::int64_t stride = tile.left_stride;
  for (std::int64_t p = 0; p < depth; p += kStep) {
    const Columns columns[2] = {load_columns(panel), load_columns(panel + kStep * kWidth)};
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const Element element = broadcast_element(left + r * stride);
#pragma GCC unroll 16
      for (int v = 0; v < 2; ++v) sums[r][v] = add_codes(sums[r][v], element, columns[v]);
    }
    left += kStep;
    panel += kStep * kPanel;
  }
}

// The same where two lines share their bytes.
template <int Rows>
[[gnu::always_inline]] inline void add_nibbles(const CodeTile& tile, std::int64_t depth,
                                               const Left* left, const std::int8_t* panel,
                                               Sums (&sums)[Rows][2]) {
  const std::int64_t stride = tile.left_stride;
  for (std::int64_t p = 0; p < depth; p += 2 * kStep) {
    const Columns both[2] = {load_columns(panel), load_columns(panel + kStep * kWidth)};
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const Columns columns[2] = {half_of(both[0], half), half_of(both[1], half)};
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const Element element = broadcast_element(left + r * stride + half * kStep);
#pragma GCC unroll 16
        for (int v = 0; v < 2; ++v) sums[r][v] = add_codes(sums[r][v], element, columns[v]);
      }
    }
    left += 2 * kStep;
    panel += kStep * kPanel;
  }
}

template <bool IsShared, int Rows>
[[gnu::always_inline]] inline void add_lines(const CodeTile& tile, std::int64_t depth,
                                             const Left* left, const std::int8_t* panel,
                                             Sums (&sums)[Rows][2]) {
  if constexpr (IsShared)
    add_nibbles<Rows>(tile, depth, left, panel, sums);
  else
    add_block<Rows>(tile, depth, left, panel, sums);
}

// A block's sums without the zero points of x.
[[gnu::always_inline]] inline Sums without_zeros(const CodeTile& tile, std::int64_t block,
                                                 std::int64_t r, std::int64_t column, Sums sums) {
  if (tile.zeros == nullptr) return sums;
  const std::int64_t of_row = tile.cut->x_has_blocks ? tile.cut->blocks : 1;
  const std::int64_t index = tile.cut->x_has_blocks ? block : 0;
  return subtract_times(sums, tile.zeros[r * of_row + index], tile.sums + block * kPanel + column);
}

template <bool IsShared, int Rows>
void multiply_whole(const CodeTile& tile) {
  Sums sums[Rows][2];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < 2; ++v) sums[r][v] = start_sums(tile.starts[r]);
  add_lines<IsShared, Rows>(tile, padded_code_depth(*tile.cut), tile.left, tile.panel, sums);
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < 2; ++v) store_sums(tile.totals + r * kPanel + v * kWidth, sums[r][v]);
}

// What a block's sums are worth in the columns of vector v; 0 where the weight has no blocks.
[[gnu::always_inline]] inline Vec scales_of_columns(const CodeTile& tile, std::int64_t block,
                                                    int v) {
  const std::int64_t at = block * kPanel + v * kWidth;
  if (!tile.cut->weight_has_blocks) return broadcast(0.0f);
  return tile.weight_powers != nullptr ? load_powers(tile.weight_powers + at)
                                       : load(tile.weight_scales + at);
}

template <bool IsShared, int Rows>
void multiply_blocks(const CodeTile& tile) {
  const CodeCut& cut = *tile.cut;
  Vec totals[Rows][2] = {};
  for (std::int64_t b = 0; b < cut.blocks; ++b) {
    Sums sums[Rows][2];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < 2; ++v) sums[r][v] = start_sums(tile.starts[r * cut.blocks + b]);
    const std::int64_t from = b * cut.width;
    add_lines<IsShared, Rows>(tile, padded_width(cut, b), tile.left + from,
                              tile.panel + code_bytes(cut, from), sums);
#pragma GCC unroll 16
    for (int v = 0; v < 2; ++v) {
      const Vec of_column = scales_of_columns(tile, b, v);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        Vec factor = of_column;
        if (cut.x_has_blocks) {
          const Vec of_row = broadcast(tile.x_scales[r * cut.blocks + b]);
          factor = cut.weight_has_blocks ? of_row * of_column : of_row;
        }
        const Vec term = to_floats(without_zeros(tile, b, r, v * kWidth, sums[r][v])) * factor;
        totals[r][v] = b == 0 ? term : totals[r][v] + term;
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < 2; ++v) store(tile.totals + r * kPanel + v * kWidth, totals[r][v]);
}

template <bool IsShared, int Rows>
void multiply_codes_up_to(const CodeTile& tile, std::int64_t rows) {
  if constexpr (Rows > 1)
    if (rows < Rows) return multiply_codes_up_to<IsShared, Rows - 1>(tile, rows);
  if constexpr (Rows <= kBlockRows)
    if (tile.cut->blocks > 1) return multiply_blocks<IsShared, Rows>(tile);
  multiply_whole<IsShared, Rows>(tile);
}
inline void multiply_codes(const CodeTile& tile, std::int64_t rows) {
  if (shares_bytes(*tile.cut)) return multiply_codes_up_to<true, kCodeRows>(tile, rows);
  multiply_codes_up_to<false, kCodeRows>(tile, rows);
}

// Where the rows of x lie that are multiplied: as they are, or in scratch, padded and widened.
// Those from `tail_row` on may lie elsewhere.
struct CodeLeft {
  const Left* rows;
  std::int64_t stride;
  std::int64_t tail_row;
  const Left* tail;
  std::int64_t tail_stride;
};

// The tile of some rows: `tile` is that of all rows.
inline CodeTile rows_of_tile(const CodeTile& tile, const CodeLeft& left, std::int64_t row) {
  const CodeCut& cut = *tile.cut;
  const std::int64_t of_row = cut.x_has_blocks ? cut.blocks : 1;
  CodeTile result = tile;
  const bool is_tail = row >= left.tail_row;
  result.left = is_tail ? left.tail + (row - left.tail_row) * left.tail_stride
                        : left.rows + row * left.stride;
  result.left_stride = is_tail ? left.tail_stride : left.stride;
  result.starts += row * cut.blocks;
  if (tile.zeros != nullptr) result.zeros += row * of_row;
  result.x_scales += row * of_row;
  return result;
}

// Some rows of a panel, the tile of all rows, by vectors: see below.
template <typename Finish>
void multiply_panel(const CodeTile& panel, const CodeLeft& left, std::int64_t begin,
                    std::int64_t end, std::int64_t column, std::int64_t columns, Finish finish) {
  const std::int64_t most = panel.cut->blocks > 1 ? kBlockRows : kCodeRows, rows = end - begin;
  const std::int64_t tiles = (rows + most - 1) / most;
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t row = begin + t * rows / tiles;
    const std::int64_t count = begin + (t + 1) * rows / tiles - row;
    const CodeTile part = rows_of_tile(panel, left, row);
    multiply_codes(part, count);
    finish(part, row, count, column, columns);
  }
}

// Calls finish(part, row, rows, column, columns) when the totals of these are there;
// tile_of(column) is the tile of all rows and a panel.
template <typename TileOf, typename Finish>
void multiply_vectors(const CodeArgs& args, const CodeLeft& left, TileOf tile_of, Finish finish) {
  for (std::int64_t column = 0; column < args.n; column += kPanel)
    multiply_panel(tile_of(column), left, 0, args.rows, column, smaller(args.n - column, kPanel),
                   finish);
}
