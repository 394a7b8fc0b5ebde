// Products of floats that are sums of three bfloat16 numbers each, for a file that has included its
// vectors, gemm.inl.h, tile_sums.inl.h and split_parts.inl.h: see split_table.h.
//
// Tiles lie one behind another, 16 lines of 64 bytes each, in the order in which they are read: for
// each 32 elements of k, 16 rows of x have three parts of one tile, and a panel of B has its parts
// of two. Both are split into scratch, a piece of the depth at a time: the rows of x once for all
// columns of the block, a panel of B once for all its rows. A weight stays as long as floats are,
// so that few rows are multiplied as fast as it comes from memory.

constexpr std::int64_t kSplitRows = 2 * kTileLines;
constexpr std::int64_t kLeftStep = kParts * kTileNumbers;
constexpr std::int64_t kRightStep = kParts * 2 * kTileNumbers;
// Of a piece: the parts of 256 rows, of a panel and the sums of a block take half of a second-level
// cache.
constexpr std::int64_t kSplitDepth = 384;
constexpr std::int64_t kCacheLine = 64;
static_assert(kWidth == kTileLines && kTileNumbers == kTileLines * kSplitGrain);

// A weight as `pack` wrote it: the floats of a tile's lines, in each the two of every column, and
// of a panel two tiles for each 32 elements of k.
struct FloatPanels {
  static constexpr int kRightParts = kParts;
  static constexpr std::int64_t kStepBytes = kSplitGrain * kPanel * 4;
  const float* packed;
  std::int64_t k;

  const float* tiles(std::int64_t column, std::int64_t p) const {
    return packed + column * k + p * kPanel;
  }
  void split(std::int64_t column, std::int64_t from, std::int64_t depth, float*,
             std::uint16_t* to) const {
    const float* line = tiles(column, from);
    for (std::int64_t p = 0; p < depth; p += kSplitGrain, to += kRightStep)
      for (std::int64_t i = 0; i < 2 * kTileLines; ++i, line += kSplitGrain)
        store_parts({load(line), load(line + kWidth)}, 2 * kTileNumbers, to + i * kSplitGrain);
  }
  const void* memory(std::int64_t column, std::int64_t from) const { return tiles(column, from); }
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
    const std::int64_t place = j % kPanel / kTileLines * kTileNumbers + j % kTileLines * 2;
    for (std::int64_t p = 0; p < k; p += 2) {
      const std::int64_t tile =
          panels.tiles(j / kPanel * kPanel, p / kSplitGrain * kSplitGrain) - packed;
      float* const to = packed + tile + place + p % kSplitGrain / 2 * kSplitGrain;
      to[0] = j < n ? weight[j * k + p] : 0.0f;
      to[1] = j < n ? weight[j * k + p + 1] : 0.0f;
    }
  }
}

// A piece of one row of x; whether all of it may be split.
inline bool split_row(const float* x, std::int64_t depth, std::uint16_t* left) {
  const Vec limit = broadcast(kMostSplit);
  Mask are_small = first_lanes(kWidth);
  for (std::int64_t p = 0; p < depth; p += kSplitGrain, left += kLeftStep) {
    const TwoVectors line{load(x + p), load(x + p + kWidth)};
    are_small &= small_lanes(line, limit);
    store_parts(line, kTileNumbers, left);
  }
  return are_small == first_lanes(kWidth);
}

struct SplitScratch {
  std::int64_t rows;  // those of whole tiles
  std::int64_t right, floats, sums, is_float, size;
  SplitScratch(std::int64_t block_rows, std::int64_t n)
      : rows(round_up(block_rows, kTileLines)),
        right(rows * kSplitDepth * kParts * 2),
        floats(right + kSplitDepth * kPanel * kParts * 2),
        sums(floats + kSplitDepth * kPanel * 4),
        is_float(sums + round_up(block_rows, kSplitRows) * round_up(n, kPanel) * 4),
        size(is_float + round_up(block_rows, 64)) {}
};
inline std::int64_t split_scratch_bytes(std::int64_t rows, std::int64_t n) {
  return SplitScratch(rows, n).size;
}

// sums[rows, kPanel] = or += left . right, where both are `steps` steps of tiles.
struct SplitTile {
  std::int64_t steps;
  const std::uint16_t* left;
  std::int64_t left_tile;  // from 16 rows to the next
  const std::uint16_t* right;
  float* sums;
  bool accumulate;
  const char* ahead;  // what is wanted next, or null: so many lines of it are asked for each step
  std::int64_t ahead_lines;
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

template <int RightParts, bool IsTall>
void multiply_split_tiles(const SplitTile& tile) {
  constexpr std::int64_t kLine = 64;
  start_tiles<IsTall>(tile.sums, tile.accumulate);
  const std::uint16_t* left = tile.left;
  const std::uint16_t* right = tile.right;
  const char* ahead = tile.ahead;
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
    load_left(2);
    load_right(0);
    multiply_four<IsTall>();
    load_left(1);
    multiply_four<IsTall>();
    if constexpr (RightParts == kParts) {
      load_right(1);
      multiply_four<IsTall>();
    }
    load_left(0);
    multiply_four<IsTall>();
    if constexpr (RightParts == kParts) {
      load_right(2);
      multiply_four<IsTall>();
      load_right(0);
      multiply_four<IsTall>();
    }
    left += kLeftStep;
    right += kRightStep;
    if (ahead == nullptr) continue;
    for (std::int64_t line = 0; line < tile.ahead_lines; ++line, ahead += kLine)
      __builtin_prefetch(ahead, 0, 2);
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
                                       c % kTileLines * 2 + i % 2];
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

template <typename Args, typename Panels>
void multiply_in_parts(const Args& args, const Panels& panels) {
  const SplitScratch parts(args.rows, args.n);
  auto* const memory = static_cast<unsigned char*>(args.scratch);
  auto* const left = reinterpret_cast<std::uint16_t*>(memory);
  auto* const right = reinterpret_cast<std::uint16_t*>(memory + parts.right);
  auto* const floats = reinterpret_cast<float*>(memory + parts.floats);
  auto* const all_sums = reinterpret_cast<float*>(memory + parts.sums);
  unsigned char* const is_float = memory + parts.is_float;
  const std::int64_t padded = round_up(args.rows, kSplitRows);
  for (std::int64_t r = 0; r < args.rows; ++r) is_float[r] = 0;
  bool has_floats = false;
  for (std::int64_t from = 0; from < args.k; from += kSplitDepth) {
    const std::int64_t depth = smaller(args.k - from, kSplitDepth);
    const bool is_last = from + depth == args.k;
    const std::int64_t steps = depth / kSplitGrain, left_tile = steps * kLeftStep;
    for (std::int64_t r = 0; r < parts.rows; ++r) {
      std::uint16_t* const to = left + r / kTileLines * left_tile + r % kTileLines * kSplitGrain;
      if (r < args.rows) {
        if (!split_row(args.x + r * args.x_stride + from, depth, to)) {
          is_float[r] = 1;
          has_floats = true;
        }
        continue;
      }
      for (std::int64_t line = 0; line < steps * kParts; ++line)
        for (std::int64_t i = 0; i < kSplitGrain; ++i) to[line * kTileNumbers + i] = 0;
    }
    const std::int64_t tiles = padded / kSplitRows;
    const std::int64_t lines_of_step = (Panels::kStepBytes / kCacheLine + tiles - 1) / tiles;
    const TileSession session;
    for (std::int64_t column = 0; column < args.n; column += kPanel) {
      panels.split(column, from, depth, floats, right);
      // The next panel comes from memory while this one is multiplied.
      const auto* ahead = column + kPanel < args.n
                              ? static_cast<const char*>(panels.memory(column + kPanel, from))
                              : nullptr;
      for (std::int64_t row = 0; row < args.rows; row += kSplitRows) {
        const std::int64_t rows = smaller(args.rows - row, kSplitRows);
        const SplitTile tile{.steps = steps,
                             .left = left + row / kTileLines * left_tile,
                             .left_tile = left_tile,
                             .right = right,
                             .sums = all_sums + column * padded + row * kPanel,
                             .accumulate = from > 0,
                             .ahead = ahead,
                             .ahead_lines = lines_of_step};
        if (ahead != nullptr) ahead += steps * lines_of_step * kCacheLine;
        if (rows > kTileLines)
          multiply_split_tiles<Panels::kRightParts, true>(tile);
        else
          multiply_split_tiles<Panels::kRightParts, false>(tile);
        if (!is_last) continue;
        if (!has_floats) {
          finish_split(args, row, rows, column, tile.sums);
          continue;
        }
        for (std::int64_t r = 0; r < rows; ++r)
          if (is_float[row + r] == 0)
            finish_split(args, row + r, 1, column, tile.sums + r * kPanel);
      }
    }
  }
  // Theirs is another way through all columns; y may be the residual, so nobody has written there.
  for (std::int64_t r = 0; has_floats && r < args.rows; ++r)
    if (is_float[r] != 0) panels.multiply_row(args, r);
}

inline void split_multiply(const SplitArgs& args) {
  multiply_in_parts(args, FloatPanels{args.packed, args.k});
}

inline ProductGrain split_grain() {
  // 16 times as fast as a multiply-add of floats, six times as much to do.
  return {kSplitRows, kPanel, 16.0 / 6};
}
