// The product of a row-major x with a packed B, on tiles of kTileRows rows by one panel of B.
//
// B is packed into panels of kPanel columns, row p of a panel being kPanel consecutive floats, with
// zeros beyond the last column. x is read where it lies: each of its floats is broadcast once for
// all vectors of the panel. The accumulators of a tile stay in registers over the whole of k.

constexpr std::int64_t kPanel = kTileVectors * kWidth;

inline std::int64_t round_up(std::int64_t a, std::int64_t multiple) {
  return (a + multiple - 1) / multiple * multiple;
}
inline std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
inline std::int64_t larger(std::int64_t a, std::int64_t b) {
  return a > b ? a : b;
}

inline ProductGrain gemm_grain() {
  return {kTileRows, kPanel};
}

inline std::int64_t packed_size(std::int64_t n, std::int64_t k) {
  return round_up(n, kPanel) * k;
}

// A block of kWidth columns whose k elements are consecutive: transposed in registers.
inline void pack_columns(const float* b, std::int64_t columns, std::int64_t k,
                         std::int64_t stride_n, float* packed) {
  for (std::int64_t p = 0; p < k; p += kWidth) {
    const std::int64_t depth = smaller(k - p, kWidth);
    const Mask lanes = first_lanes(depth);
    Vec block[kWidth];
    for (std::int64_t j = 0; j < kWidth; ++j)
      block[j] = j < columns ? load(b + j * stride_n + p, lanes) : broadcast(0.0f);
    transpose(block);
    for (std::int64_t i = 0; i < depth; ++i) store(packed + (p + i) * kPanel, block[i]);
  }
}

inline void pack_b(const float* b, std::int64_t n, std::int64_t k, std::int64_t stride_n,
                   std::int64_t stride_k, float* packed) {
  for (std::int64_t j = 0; j < round_up(n, kPanel); j += kWidth) {
    float* to = packed + j / kPanel * kPanel * k + j % kPanel;
    const std::int64_t columns = j < n ? smaller(n - j, kWidth) : 0;
    const float* from = columns > 0 ? b + j * stride_n : b;
    if (columns > 0 && stride_k == 1) {
      pack_columns(from, columns, k, stride_n, to);
    } else if (stride_n == 1 || columns == 0) {
      const Mask lanes = first_lanes(columns);
      for (std::int64_t p = 0; p < k; ++p) store(to + p * kPanel, load(from + p * stride_k, lanes));
    } else {
      for (std::int64_t p = 0; p < k; ++p)
        for (std::int64_t c = 0; c < kWidth; ++c)
          to[p * kPanel + c] = c < columns ? from[c * stride_n + p * stride_k] : 0.0f;
    }
  }
}

// y = scale (start + x . panel) + bias on the first `columns` columns of one panel, where start is
// y or 0. Element [r, p] of x is x[r * x_stride + p * x_step].
struct Tile {
  std::int64_t k;
  const float* x;
  std::int64_t x_stride;
  std::int64_t x_step = 1;
  const float* panel;
  float* y;
  std::int64_t y_stride;
  std::int64_t columns;
  const float* bias;
  float scale;
  bool accumulate;
  bool is_partial = false;  // sums that go on in another call: stored as they are
};

template <int Rows, int Vectors>
void multiply_rows(const Tile& tile) {
  // Whole vectors are not masked: a masked store is slow on some AVX2 processors.
  const bool whole = tile.columns >= Vectors * kWidth;
  Mask lanes[Vectors];
  for (int v = 0; v < Vectors; ++v) lanes[v] = first_lanes(tile.columns - v * kWidth);

  Vec sums[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v)
      sums[r][v] = tile.accumulate ? load(tile.y + r * tile.y_stride + v * kWidth, lanes[v])
                                   : broadcast(0.0f);

  // Rows are reached from a pointer for every five of them, at 1, 2, 3 and 4 strides, which one
  // address can express with two registers. The compiler would otherwise keep an offset for each
  // row and reload them all the time; the empty asm hides from it that the pointers are related.
  constexpr int kGroup = 5;
  constexpr int kGroups = (Rows + kGroup - 1) / kGroup;
  const std::int64_t x_stride = tile.x_stride;
  const std::int64_t x_step = tile.x_step;
  const float* x[kGroups];
#pragma GCC unroll 16
  for (int g = 0; g < kGroups; ++g) {
    x[g] = tile.x + g * kGroup * x_stride;
    asm("" : "+r"(x[g]));
  }
  const float* b = tile.panel;
  for (std::int64_t p = 0; p < tile.k; ++p) {
    Vec columns[Vectors];
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) columns[v] = load(b + v * kWidth);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const Vec element = broadcast(x[r / kGroup][r % kGroup * x_stride]);
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) sums[r][v] = fma(element, columns[v], sums[r][v]);
    }
#pragma GCC unroll 16
    for (int g = 0; g < kGroups; ++g) x[g] += x_step;
    b += kPanel;
  }

  if (tile.is_partial) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) {
        float* to = tile.y + r * tile.y_stride + v * kWidth;
        if (whole)
          store(to, sums[r][v]);
        else
          store(to, sums[r][v], lanes[v]);
      }
    return;
  }
  const Vec scale = broadcast(tile.scale);
  Vec bias[Vectors];
  for (int v = 0; v < Vectors; ++v)
    bias[v] = tile.bias ? load(tile.bias + v * kWidth, lanes[v]) : broadcast(0.0f);
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) {
      const Vec result = fma(sums[r][v], scale, bias[v]);
      float* to = tile.y + r * tile.y_stride + v * kWidth;
      if (whole)
        store(to, result);
      else
        store(to, result, lanes[v]);
    }
}

template <int Rows>
void multiply_up_to(const Tile& tile, std::int64_t rows) {
  if constexpr (Rows > 1)
    if (rows < Rows) return multiply_up_to<Rows - 1>(tile, rows);
  // Only the last panel of a matrix can be half empty or more.
  static_assert(kTileVectors == 2);
  if (tile.columns <= kWidth)
    multiply_rows<Rows, 1>(tile);
  else
    multiply_rows<Rows, 2>(tile);
}

inline void multiply_tile(const Tile& tile, std::int64_t rows) {
  multiply_up_to<kTileRows>(tile, rows);
}

// Rows are cut into the fewest tiles, equal to within one row: a last tile of one or two rows would
// wait for its few accumulators.
struct RowTiles {
  std::int64_t rows;
  std::int64_t count;
  explicit RowTiles(std::int64_t all_rows)
      : rows(all_rows), count((all_rows + kTileRows - 1) / kTileRows) {}
  std::int64_t begin(std::int64_t tile) const { return tile * rows / count; }
  std::int64_t holding(std::int64_t row) const { return ((row + 1) * count - 1) / rows; }
};

// What comes after sums that lie in a buffer: y = activation(sums + bias) + residual.
struct Finish {
  std::int64_t rows, columns;
  const float* sums;
  std::int64_t sums_stride;
  const float* bias = nullptr;
  Unary activation;
  const float* residual;  // or null; may be y itself
  std::int64_t residual_stride;
  float* y;
  std::int64_t y_stride;
};
inline void finish_rows(const Finish& args) {
  with_function(args.activation, [&](auto f) {
    for (std::int64_t r = 0; r < args.rows; ++r) {
      const float* sums = args.sums + r * args.sums_stride;
      float* y = args.y + r * args.y_stride;
      const float* residual = args.residual ? args.residual + r * args.residual_stride : nullptr;
      over_lanes(args.columns, [&](std::int64_t c, auto lanes) {
        Vec value = load(sums + c, lanes);
        if (args.bias != nullptr) value = value + load(args.bias + c, lanes);
        value = f(value);
        if (residual != nullptr) value = value + load(residual + c, lanes);
        store(y + c, value, lanes);
      });
    }
  });
}

// One tile of y against the panel that starts at `column`.
inline void compute_tile(const GemmArgs& args, std::int64_t row, std::int64_t rows,
                         std::int64_t column) {
  // What comes after the sums is computed from a buffer in the nearest cache: y may be the
  // residual.
  const bool is_finished_later = args.activation != Unary::None || args.residual != nullptr;
  float buffer[kTileRows * kPanel];
  const std::int64_t columns = smaller(args.n - column, kPanel);
  float* y = args.y + row * args.y_stride + column;
  if (is_finished_later && args.accumulate)
    for (std::int64_t r = 0; r < rows; ++r)
      map(y + r * args.y_stride, columns, buffer + r * kPanel, [](Vec a) { return a; });
  multiply_tile({.k = args.k,
                 .x = args.x + row * args.x_stride,
                 .x_stride = args.x_stride,
                 .x_step = args.x_step,
                 .panel = args.packed + column * args.k,
                 .y = is_finished_later ? buffer : y,
                 .y_stride = is_finished_later ? kPanel : args.y_stride,
                 .columns = columns,
                 .bias = args.bias ? args.bias + column : nullptr,
                 .scale = 1.0f,
                 .accumulate = args.accumulate},
                rows);
  if (is_finished_later)
    finish_rows(
        {.rows = rows,
         .columns = columns,
         .sums = buffer,
         .sums_stride = kPanel,
         .activation = args.activation,
         .residual = args.residual ? args.residual + row * args.residual_stride + column : nullptr,
         .residual_stride = args.residual_stride,
         .y = y,
         .y_stride = args.y_stride});
}

inline void gemm(const GemmArgs& args) {
  // While B fits the second cache, each tile of x meets all of it and y is written in one sweep. A
  // larger B is read once for a block of tiles that fits there instead.
  constexpr std::int64_t kCachedFloats = 96 * 1024;
  const RowTiles tiles(args.rows);
  const std::int64_t tile_floats = kTileRows * args.k;
  const bool fits = packed_size(args.n, args.k) <= kCachedFloats || tile_floats >= kCachedFloats;
  const std::int64_t block = fits ? 1 : kCachedFloats / tile_floats;
  for (std::int64_t first = 0; first < tiles.count; first += block) {
    const std::int64_t last = smaller(first + block, tiles.count);
    for (std::int64_t column = 0; column < args.n; column += kPanel)
      for (std::int64_t t = first; t < last; ++t)
        compute_tile(args, tiles.begin(t), tiles.begin(t + 1) - tiles.begin(t), column);
  }
}
