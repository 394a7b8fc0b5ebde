// Products of floats that are sums of three bfloat16 numbers each, for a file that has included its
// vectors, gemm.inl.h and tile registers: see split_table.h.
//
// Tiles lie one behind another, 16 lines of 64 bytes each, in the order in which they are read: a
// panel of B has for each 32 elements of k its three parts of two tiles, 16 rows of x have three
// parts of one. The rows of x are split into scratch once for all columns of the block, a piece of
// the depth at a time.

constexpr std::int64_t kSplitRows = 2 * kTileLines;
constexpr std::int64_t kTileNumbers = kTileLines * kSplitGrain;
constexpr std::int64_t kParts = 3;
constexpr std::int64_t kLeftStep = kParts * kTileNumbers;
constexpr std::int64_t kRightStep = kParts * 2 * kTileNumbers;
// Of a piece: with 256 rows, their parts take half of a second-level cache.
constexpr std::int64_t kSplitDepth = 768;
static_assert(kWidth == kTileLines);

inline std::int64_t split_packed_size(std::int64_t n, std::int64_t k) {
  return round_up(n, kPanel) * k * kParts;
}

// The three parts of `a`, at places that are `distance` apart.
inline void store_parts(Vec a, std::int64_t distance, std::uint16_t* to) {
  for (std::int64_t part = 0; part < kParts; ++part) {
    store_bf16(to + part * distance, a);
    a = a - near_bf16(a);
  }
}

inline void split_pack(const float* weight, std::int64_t n, std::int64_t k, std::uint16_t* packed) {
  for (std::int64_t j = 0; j < round_up(n, kPanel); j += kWidth) {
    std::uint16_t* to =
        packed + split_packed_size(j / kPanel * kPanel, k) + j % kPanel / kWidth * kTileNumbers;
    for (std::int64_t p = 0; p < k; p += kSplitGrain, to += kRightStep) {
      // Columns as lines of a tile, whose pairs are transposed as if they were floats.
      alignas(64) std::uint16_t lines[kParts][kWidth][kSplitGrain] = {};
      for (std::int64_t c = 0; c < smaller(n - j, kWidth); ++c)
        for (std::int64_t i = 0; i < kSplitGrain; i += kWidth)
          store_parts(load(weight + (j + c) * k + p + i), kTileNumbers, &lines[0][c][i]);
      for (std::int64_t part = 0; part < kParts; ++part) {
        Vec block[kWidth];
        for (std::int64_t c = 0; c < kWidth; ++c)
          block[c] = load(reinterpret_cast<const float*>(lines[part][c]));
        transpose(block);
        for (std::int64_t i = 0; i < kWidth; ++i)
          store(reinterpret_cast<float*>(to + part * 2 * kTileNumbers + i * kSplitGrain), block[i]);
      }
    }
  }
}

// A piece of one row of x; whether all of it may be split.
inline bool split_row(const float* x, std::int64_t depth, std::uint16_t* left) {
  const Vec limit = broadcast(kMostSplit);
  Mask are_small = first_lanes(kWidth);
  for (std::int64_t p = 0; p < depth; p += kWidth) {
    const Vec a = load(x + p);
    are_small &= less(abs(a), limit);
    store_parts(a, kTileNumbers, left + p / kSplitGrain * kLeftStep + p % kSplitGrain);
  }
  return are_small == first_lanes(kWidth);
}

struct SplitScratch {
  std::int64_t rows;  // those of whole tiles
  std::int64_t sums, is_float, size;
  SplitScratch(std::int64_t block_rows, std::int64_t n)
      : rows(round_up(block_rows, kTileLines)),
        sums(rows * kSplitDepth * kParts * 2),
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

template <bool IsTall>
void multiply_split_tiles(const SplitTile& tile) {
  constexpr std::int64_t kLine = 64;
  start_sums<IsTall>(tile.sums, tile.accumulate);
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
    load_left(2);
    load_right(0);
    multiply_four<IsTall>();
    load_left(1);
    multiply_four<IsTall>();
    load_right(1);
    multiply_four<IsTall>();
    load_left(0);
    multiply_four<IsTall>();
    load_right(2);
    multiply_four<IsTall>();
    load_right(0);
    multiply_four<IsTall>();
    left += kLeftStep;
    right += kRightStep;
  }
  store_sums<IsTall>(tile.sums);
}

inline void multiply_split_rows(const SplitTile& tile, std::int64_t rows) {
  if (rows > kTileLines)
    multiply_split_tiles<true>(tile);
  else
    multiply_split_tiles<false>(tile);
}

// Some rows of the panel that starts at `column`, from sums that lie in a buffer.
inline void finish_split(const SplitArgs& args, std::int64_t row, std::int64_t rows,
                         std::int64_t column, const float* sums) {
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

// One row as floats, from what the parts of B add up to.
inline void multiply_as_floats(const SplitArgs& args, std::int64_t row) {
  const auto number = [](std::uint16_t bits) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
  };
  for (std::int64_t column = 0; column < args.n; column += kPanel) {
    const std::uint16_t* right = args.packed + split_packed_size(column, args.k);
    alignas(64) float sums[kPanel] = {};
    for (std::int64_t p = 0; p < args.k; p += kSplitGrain, right += kRightStep) {
      alignas(64) float panel[kSplitGrain * kPanel];
      for (std::int64_t i = 0; i < kSplitGrain; ++i)
        for (std::int64_t c = 0; c < kPanel; ++c) {
          const std::uint16_t* const first =
              right + c / kWidth * kTileNumbers + i / 2 * kSplitGrain + c % kWidth * 2 + i % 2;
          panel[i * kPanel + c] =
              number(first[0]) + number(first[2 * kTileNumbers]) + number(first[4 * kTileNumbers]);
        }
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

inline void split_multiply(const SplitArgs& args) {
  const SplitScratch parts(args.rows, args.n);
  auto* const memory = static_cast<unsigned char*>(args.scratch);
  auto* const left = reinterpret_cast<std::uint16_t*>(memory);
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
    const TileSession session;
    for (std::int64_t column = 0; column < args.n; column += kPanel)
      for (std::int64_t row = 0; row < args.rows; row += kSplitRows) {
        const std::int64_t rows = smaller(args.rows - row, kSplitRows);
        const SplitTile tile{.steps = steps,
                             .left = left + row / kTileLines * left_tile,
                             .left_tile = left_tile,
                             .right = args.packed + split_packed_size(column, args.k) +
                                      from / kSplitGrain * kRightStep,
                             .sums = all_sums + column * padded + row * kPanel,
                             .accumulate = from > 0};
        multiply_split_rows(tile, rows);
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
  // Theirs is another way through all columns; y may be the residual, so nobody has written there.
  for (std::int64_t r = 0; has_floats && r < args.rows; ++r)
    if (is_float[r] != 0) multiply_as_floats(args, r);
}

inline ProductGrain split_grain() {
  // 16 times as fast as a multiply-add of floats, six times as much to do.
  return {kSplitRows, kPanel, 16.0 / 6};
}

extern const SplitKernels split_table;
const SplitKernels split_table = {.name = kName,
                                  .grain = split_grain,
                                  .packed_size = split_packed_size,
                                  .pack = split_pack,
                                  .scratch_bytes = split_scratch_bytes,
                                  .multiply = split_multiply};
