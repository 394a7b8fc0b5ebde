// Multiplying whole numbers of 8 bits in vector registers, for a file that supplies one way to do
// it:
//
//   kStep          numbers of x that one instruction multiplies
//   kDepthGrain    what the depth of a product without blocks is rounded up to
//   Left           how a number of x lies while it is multiplied
//   kWeightOffset  what is added to a number of a weight when it is packed, so that it is not
//                  negative; sums begin at minus that times the sum of x (sum_numbers)
//   Sums           of a vector's columns: start_sums, load_sums, subtract_times, to_floats
//   Columns        kStep numbers of each column: load_columns
//   Element        kStep numbers of x for all columns: broadcast_element, add_codes
//
// A panel of a weight has for each kStep rows a line in which every column has its kStep numbers,
// block after block.

constexpr int kCodeRows = kTileRows;
// Tiles with blocks have sums of floats beside those of whole numbers.
constexpr int kBlockRows = (kTileRows - 2) / 2;

inline std::int64_t padded_width(const CodeCut& cut, std::int64_t block) {
  if (cut.blocks == 1) return round_up(cut.k, kDepthGrain);
  return round_up(smaller(cut.width, cut.k - block * cut.width), kStep);
}
inline std::int64_t padded_code_depth(const CodeCut& cut) {
  if (cut.blocks == 1) return round_up(cut.k, kDepthGrain);
  return (cut.blocks - 1) * cut.width + padded_width(cut, cut.blocks - 1);
}
inline std::int64_t code_packed_size(std::int64_t n, const CodeCut& cut) {
  return round_up(n, kPanel) * padded_code_depth(cut);
}

// totals[rows, kPanel] of a panel, before the factors of rows and columns.
struct CodeTile {
  const CodeCut* cut;
  const Left* left;
  std::int64_t left_stride;
  const std::int8_t* panel;
  const std::int32_t* starts;  // [rows, blocks]
  const std::int32_t* zeros;   // [rows, blocks or 1], or null
  const std::int32_t* sums;    // of the panel's columns, [blocks, kPanel]
  const float* x_scales;       // [rows, blocks], where x has blocks
  const float* weight_scales;  // [blocks, kPanel], where the weight has blocks
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

// The rest of a block's sums, as floats.
[[gnu::always_inline]] inline Vec finish_sums(const CodeTile& tile, std::int64_t block, int r,
                                              int v, Sums sums) {
  if (tile.zeros != nullptr) {
    const std::int64_t of_row = tile.cut->x_has_blocks ? tile.cut->blocks : 1;
    const std::int64_t index = tile.cut->x_has_blocks ? block : 0;
    sums = subtract_times(sums, tile.zeros[r * of_row + index],
                          tile.sums + block * kPanel + v * kWidth);
  }
  return to_floats(sums);
}

template <int Rows>
void multiply_whole(const CodeTile& tile) {
  Sums sums[Rows][2];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < 2; ++v) sums[r][v] = start_sums(tile.starts[r]);
  add_block<Rows>(tile, padded_code_depth(*tile.cut), tile.left, tile.panel, sums);
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < 2; ++v)
      store(tile.totals + r * kPanel + v * kWidth, finish_sums(tile, 0, r, v, sums[r][v]));
}

template <int Rows>
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
    add_block<Rows>(tile, padded_width(cut, b), tile.left + from, tile.panel + from * kPanel, sums);
#pragma GCC unroll 16
    for (int v = 0; v < 2; ++v) {
      const Vec of_column = cut.weight_has_blocks
                                ? load(tile.weight_scales + b * kPanel + v * kWidth)
                                : broadcast(0.0f);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        Vec factor = of_column;
        if (cut.x_has_blocks) {
          const Vec of_row = broadcast(tile.x_scales[r * cut.blocks + b]);
          factor = cut.weight_has_blocks ? of_row * of_column : of_row;
        }
        const Vec term = finish_sums(tile, b, r, v, sums[r][v]) * factor;
        totals[r][v] = b == 0 ? term : totals[r][v] + term;
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < 2; ++v) store(tile.totals + r * kPanel + v * kWidth, totals[r][v]);
}

template <int Rows>
void multiply_codes_up_to(const CodeTile& tile, std::int64_t rows) {
  if constexpr (Rows > 1)
    if (rows < Rows) return multiply_codes_up_to<Rows - 1>(tile, rows);
  if constexpr (Rows <= kBlockRows)
    if (tile.cut->blocks > 1) return multiply_blocks<Rows>(tile);
  multiply_whole<Rows>(tile);
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

// Calls finish(row, rows) when the totals of these rows are there.
template <typename Finish>
void multiply_vectors(const CodeTile& tile, const CodeLeft& left, std::int64_t rows,
                      Finish finish) {
  const std::int64_t most = tile.cut->blocks > 1 ? kBlockRows : kCodeRows;
  const std::int64_t tiles = (rows + most - 1) / most;
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t row = t * rows / tiles, count = (t + 1) * rows / tiles - row;
    multiply_codes_up_to<kCodeRows>(rows_of_tile(tile, left, row), count);
    finish(row, count);
  }
}
