// Products of floats that are sums of three bfloat16 numbers each, for a file that has included its
// vectors, gemm.inl.h, tile_sums.inl.h and split_parts.inl.h: see split_table.h.
//
// Tiles lie one behind another, 16 lines of 64 bytes each, in the order in which they are read: for
// each 32 elements of k, 16 rows of x have three parts of one tile, and a panel of B has its parts
// of two. Both are split into scratch, a piece of the depth at a time (split_block.inl.h): the rows
// of x once for all columns of the block, a panel of B once for all its rows. A weight stays as
// long as floats are, so that few rows are multiplied as fast as it comes from memory.

constexpr std::int64_t kSplitRows = 2 * kTileLines;
constexpr std::int64_t kLeftStep = kParts * kTileNumbers;
constexpr std::int64_t kRightStep = kParts * 2 * kTileNumbers;
constexpr std::int64_t kStepLines = 2 * kTileLines;  // of a panel
// Of a piece: the parts of 256 rows, of a panel and the sums of a block take half of a second-level
// cache.
constexpr std::int64_t kSplitDepth = 384;
constexpr std::int64_t kCacheLine = 64;
static_assert(kWidth == kTileLines && kTileNumbers == kTileLines * kSplitGrain);

// A weight as `pack` wrote it: the floats of a tile's lines, in each the first of two for every
// column and then the second, and of a panel two tiles for each 32 elements of k.
struct FloatPanels {
  static constexpr int kRightParts = kParts;
  static constexpr bool kHasLines = true;
  static constexpr bool kMayBeLarge = false;
  const float* packed;
  std::int64_t k;

  const float* tiles(std::int64_t column, std::int64_t p) const {
    return packed + column * k + p * kPanel;
  }
  // One line of a piece of a panel.
  void split_line(std::int64_t column, std::int64_t from, std::int64_t line,
                  std::uint16_t* to) const {
    const float* const numbers = tiles(column, from) + line * kSplitGrain;
    store_pair_parts(load(numbers), load(numbers + kWidth), 2 * kTileNumbers,
                     to + line / kStepLines * kRightStep + line % kStepLines * kSplitGrain);
  }
  void ask_for_line(std::int64_t column, std::int64_t from, std::int64_t line) const {
    const auto* const numbers =
        reinterpret_cast<const char*>(tiles(column, from) + line * kSplitGrain);
    ask_to_read(numbers);
    ask_to_read(numbers + kCacheLine);
  }
  // One row of the product as floats.
  template <typename Args>
  void multiply_row(const Args& args, std::int64_t row) const;
};

inline std::int64_t split_packed_size(std::int64_t n, std::int64_t k) {
  return round_up(n, kPanel) * k;
}

inline void split_pack(const float* weight, std::int64_t n, std::int64_t k, float* packed) {
  const FloatPanels panels{packed, k};
  for (std::int64_t j = 0; j < round_up(n, kPanel); ++j) {
    const std::int64_t place = j % kPanel / kTileLines * kTileNumbers + j % kTileLines;
    for (std::int64_t p = 0; p < k; p += 2) {
      const std::int64_t tile =
          panels.tiles(j / kPanel * kPanel, p / kSplitGrain * kSplitGrain) - packed;
      float* const to = packed + tile + place + p % kSplitGrain / 2 * kSplitGrain;
      to[0] = j < n ? weight[j * k + p] : 0.0f;
      to[kWidth] = j < n ? weight[j * k + p + 1] : 0.0f;
    }
  }
}

// Some rows of x, at most two tiles of them, and where their parts go.
struct LeftPiece {
  const float* x;
  std::int64_t distance;  // from one row to the next, or of x that lies in columns, of those
  std::int64_t rows;      // there are
  std::int64_t padded;    // and so many are written: zeros, where there are no more
  bool are_followed;      // by as many rows, which are asked for
  std::int64_t depth;     // there is
  std::int64_t steps;     // and so much is written
  std::uint16_t* left;
  unsigned char* is_float;  // set for a row with a number that may not be split

  std::uint16_t* place(std::int64_t step, std::int64_t row) const {
    return left + (row / kTileLines * steps + step) * kLeftStep + row % kTileLines * kSplitGrain;
  }
  void split_line(std::int64_t step, std::int64_t row, TwoVectors line, Vec limit) const {
    if (small_lanes(line, limit) != first_lanes(kWidth)) is_float[row] = 1;
    store_parts(line, kTileNumbers, place(step, row));
  }
};

// They are split a step at a time.
struct SplitRows : LeftPiece {
  static constexpr bool kAreColumns = false;

  void split(std::int64_t step, std::int64_t begin, std::int64_t end) const {
    const Vec limit = broadcast(kMostSplit);
    for (std::int64_t r = begin; r < end; ++r) {
      if (r >= rows) {
        store_parts({broadcast(0.0f), broadcast(0.0f)}, kTileNumbers, place(step, r));
        continue;
      }
      const float* const from = x + r * distance + step * kSplitGrain;
      if (are_followed) {
        const auto* const next = reinterpret_cast<const char*>(from + kSplitRows * distance);
        ask_to_read(next);
        ask_to_read(next + kCacheLine);
      }
      split_line(step, r, {load(from), load(from + kWidth)}, limit);
    }
  }
};

// Two panels: one is multiplied while the next one is split.
constexpr std::int64_t kRightBytes = kSplitDepth * kPanel * kParts * 2;
struct SplitScratch {
  std::int64_t rows;  // those of whole tiles
  std::int64_t right, floats, sums, is_float, is_large, size;
  SplitScratch(std::int64_t block_rows, std::int64_t n)
      : rows(round_up(block_rows, kTileLines)),
        right(rows * kSplitDepth * kParts * 2),
        floats(right + 2 * kRightBytes),
        sums(floats + kSplitDepth * kPanel * 4),
        is_float(sums + round_up(block_rows, kSplitRows) * round_up(n, kPanel) * 4),
        is_large(is_float + round_up(block_rows, 64)),
        size(is_large + round_up(round_up(n, kPanel) / kPanel, 64)) {}
};
inline std::int64_t split_scratch_bytes(std::int64_t rows, std::int64_t n) {
  return SplitScratch(rows, n).size;
}

// Rows that were split ahead: for each two tiles of rows, a line that says which of them are
// floats, and all steps of one tile behind those of the other.
struct KeptRows {
  const std::uint16_t* parts;  // or null
  std::int64_t k;

  static constexpr std::int64_t kFlags = kCacheLine / 2;  // in the numbers of a part
  static std::int64_t numbers(std::int64_t rows, std::int64_t k) {
    return round_up(rows, kSplitRows) / kSplitRows * kFlags +
           round_up(rows, kTileLines) * k * kParts;
  }
  std::int64_t tile() const { return k / kSplitGrain * kLeftStep; }
  const std::uint16_t* place(std::int64_t row) const {
    return parts + row / kSplitRows * (kFlags + 2 * tile());
  }
  const std::uint16_t* left(std::int64_t row, std::int64_t from) const {
    return place(row) + kFlags + from / kSplitGrain * kLeftStep;
  }
  bool is_float(std::int64_t row) const {
    return reinterpret_cast<const unsigned char*>(place(row))[row % kSplitRows] != 0;
  }
};
inline std::int64_t split_parts_bytes(std::int64_t rows, std::int64_t k) {
  return KeptRows::numbers(rows, k) * 2;
}
inline void split_rows(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t k,
                       void* parts) {
  const KeptRows all{static_cast<std::uint16_t*>(parts), k};
  for (std::int64_t row = 0; row < rows; row += kSplitRows) {
    auto* const to = const_cast<std::uint16_t*>(all.place(row));
    for (std::int64_t i = 0; i < KeptRows::kFlags; ++i) to[i] = 0;
    const std::int64_t left_over = rows - row;
    const SplitRows some{{.x = x + row * x_stride,
                          .distance = x_stride,
                          .rows = left_over,
                          .padded = smaller(round_up(left_over, kTileLines), kSplitRows),
                          .are_followed = left_over >= 2 * kSplitRows,
                          .depth = k,
                          .steps = k / kSplitGrain,
                          .left = to + KeptRows::kFlags,
                          .is_float = reinterpret_cast<unsigned char*>(to)}};
    for (std::int64_t step = 0; step < some.steps; ++step) some.split(step, 0, some.padded);
  }
}

// sums[rows, kPanel] = or += left . right, where both are `steps` steps of tiles.
struct SplitTile {
  std::int64_t steps;
  const std::uint16_t* left;
  std::int64_t left_tile;  // from 16 rows to the next
  const std::uint16_t* right;
  float* sums;
  bool accumulate;
};

template <bool IsTall>
inline void multiply_four() {
  tile_multiply<0, 4, 6>();
  tile_multiply<1, 4, 7>();
  if constexpr (IsTall) {
    tile_multiply<2, 5, 6>();
    tile_multiply<3, 5, 7>();
  }
}

// The vectors have nothing to do while tiles are multiplied: meanwhile(step, i) is called behind
// each of a step's products, of which there are split_products(RightParts).
constexpr int split_products(int right_parts) {
  return right_parts == kParts ? 6 : 3;
}
template <int RightParts, bool IsTall, typename Meanwhile>
inline void multiply_split_tiles(const SplitTile& tile, Meanwhile&& meanwhile) {
  constexpr std::int64_t kLine = 64;
  start_tiles<IsTall>(tile.sums, tile.accumulate);
  const std::uint16_t* left = tile.left;
  const std::uint16_t* right = tile.right;
  const auto load_left = [&](std::int64_t part) {
    tile_load<4>(left + part * kTileNumbers, kLine);
    if constexpr (IsTall) tile_load<5>(left + tile.left_tile + part * kTileNumbers, kLine);
  };
  const auto load_right = [&](std::int64_t part) {
    tile_load<6>(right + part * 2 * kTileNumbers, kLine);
    tile_load<7>(right + (part * 2 + 1) * kTileNumbers, kLine);
  };
  // Each product but the first needs one operand anew: seven loads for six products.
  for (std::int64_t step = 0; step < tile.steps; ++step) {
    const auto multiply = [&](int product) {
      multiply_four<IsTall>();
      meanwhile(step, product);
    };
    load_left(2);
    load_right(0);
    multiply(0);
    load_left(1);
    multiply(1);
    if constexpr (RightParts == kParts) {
      load_right(1);
      multiply(2);
    }
    load_left(0);
    multiply(RightParts == kParts ? 3 : 2);
    if constexpr (RightParts == kParts) {
      load_right(2);
      multiply(4);
      load_right(0);
      multiply(5);
    }
    left += kLeftStep;
    right += kRightStep;
  }
  store_tiles<IsTall>(tile.sums);
}

// Some rows of the panel that starts at `column`, from sums that lie in a buffer.
template <typename Args>
void finish_split(const Args& args, std::int64_t row, std::int64_t rows, std::int64_t column,
                  const float* sums) {
  finish_rows(
      {.rows = rows,
       .columns = smaller(args.n - column, kPanel),
       .sums = sums,
       .sums_stride = kPanel,
       .bias = args.bias != nullptr ? args.bias + column : nullptr,
       .activation = args.activation,
       .residual = args.residual ? args.residual + row * args.residual_stride + column : nullptr,
       .residual_stride = args.residual_stride,
       .y = args.y + row * args.y_stride + column,
       .y_stride = args.y_stride});
}

template <typename Args>
void FloatPanels::multiply_row(const Args& args, std::int64_t row) const {
  for (std::int64_t column = 0; column < args.n; column += kPanel) {
    alignas(64) float sums[kPanel] = {};
    for (std::int64_t p = 0; p < args.k; p += kSplitGrain) {
      const float* const from = tiles(column, p);
      alignas(64) float panel[kSplitGrain * kPanel];
      for (std::int64_t i = 0; i < kSplitGrain; ++i)
        for (std::int64_t c = 0; c < kPanel; ++c)
          panel[i * kPanel + c] = from[c / kTileLines * kTileNumbers + i / 2 * kSplitGrain +
                                       c % kTileLines + i % 2 * kWidth];
      multiply_tile({.k = kSplitGrain,
                     .x = args.x + row * args.x_stride + p,
                     .x_stride = args.x_stride,
                     .panel = panel,
                     .y = sums,
                     .y_stride = kPanel,
                     .columns = kPanel,
                     .bias = nullptr,
                     .scale = 1.0f,
                     .accumulate = p > 0,
                     .is_partial = true},
                    1);
    }
    finish_split(args, row, 1, column, sums);
  }
}
