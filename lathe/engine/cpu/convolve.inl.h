// Convolution of images whose channels lie side by side, as a product whose rows are windows: they
// are read where they lie, each float broadcast once for all vectors of a panel of B, as in `gemm`.

// One tile: `Rows` pixels of one row of results, or of two rows whose pixels fill a tile together.
struct ConvolveTile {
  const float* x;
  std::int64_t group_step;  // from one group of pixels to the next
  const float* panel;
  const float* bias;      // or null
  const float* residual;  // or null
  float* y;
  std::int64_t y_group_step;
  std::int64_t columns;
  const float* ahead;       // as much as a row of the panel is fetched at every step of the depth
  std::int64_t ahead_step;  // floats to the next
};

// Pixels that are reached from one pointer. Multiples of seven, the widths of most images, come in
// sevens: 0 to 6 steps are expressed by three registers.
constexpr int convolve_group(int rows) {
  return rows % 7 == 0 ? 7 : 5;
}

constexpr int kLineFloats = 16;  // of a cache

template <int Rows, int Vectors, typename F>
void convolve_tile(const ConvolveArgs& args, const ConvolveTile& tile, F f) {
  Vec sums[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) sums[r][v] = broadcast(0.0f);

  constexpr int kGroup = convolve_group(Rows);
  constexpr int kGroups = (Rows + kGroup - 1) / kGroup;
  const std::int64_t x_step = args.x_step;
  const float* b = tile.panel;
  const float* ahead = tile.ahead;
  for (std::int64_t line = 0; line < args.lines; ++line)
    for (std::int64_t piece = 0; piece < args.pieces; ++piece) {
      const float* x[kGroups];
#pragma GCC unroll 16
      for (int g = 0; g < kGroups; ++g) {
        x[g] = tile.x + line * args.line_step + piece * args.piece_step + g * tile.group_step;
        asm("" : "+r"(x[g]));  // as in multiply_rows
      }
      for (std::int64_t p = 0; p < args.length; ++p) {
#pragma GCC unroll 16
        for (int i = 0; i < kPanel; i += kLineFloats) __builtin_prefetch(ahead + i, 0, 2);
        ahead += tile.ahead_step;
        Vec columns[Vectors];
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) columns[v] = load(b + v * kWidth);
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r) {
          const Vec element = broadcast(x[r / kGroup][r % kGroup * x_step]);
#pragma GCC unroll 16
          for (int v = 0; v < Vectors; ++v) sums[r][v] = fma(element, columns[v], sums[r][v]);
        }
#pragma GCC unroll 16
        for (int g = 0; g < kGroups; ++g) ++x[g];
        b += kPanel;
      }
    }

  const bool whole = tile.columns >= Vectors * kWidth;
  Mask lanes[Vectors];
  Vec bias[Vectors];
#pragma GCC unroll 16
  for (int v = 0; v < Vectors; ++v) {
    lanes[v] = first_lanes(tile.columns - v * kWidth);
    bias[v] = tile.bias ? load(tile.bias + v * kWidth, lanes[v]) : broadcast(0.0f);
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) {
      const std::int64_t at =
          r / kGroup * tile.y_group_step + r % kGroup * args.y_step + v * kWidth;
      Vec result = sums[r][v] + bias[v];
      if (tile.residual != nullptr)
        result = result + (whole ? load(tile.residual + at) : load(tile.residual + at, lanes[v]));
      if (whole)
        store(tile.y + at, f(result));
      else
        store(tile.y + at, f(result), lanes[v]);
    }
}

template <int Rows, typename F>
void convolve_up_to(const ConvolveArgs& args, const ConvolveTile& tile, std::int64_t rows, F f) {
  if constexpr (Rows > 1)
    if (rows < Rows) return convolve_up_to<Rows - 1>(args, tile, rows, f);
  static_assert(kTileVectors == 2);
  if (tile.columns <= kWidth)
    convolve_tile<Rows, 1>(args, tile, f);
  else
    convolve_tile<Rows, 2>(args, tile, f);
}

// What the tiles of a panel fetch for the second-level cache while they multiply. Filters are read
// for few pixels and come from far away, faster than a processor that looks a page ahead at most
// gets them there. The panel that is multiplied next lies behind this one: each tile fetches its
// part of it, evenly, because memory has as long for it as all tiles together take. The first tile
// of a panel that nobody fetched, or that is too large to wait there, runs ahead of itself.
class PanelsAhead {
 public:
  PanelsAhead(const ConvolveArgs& args, std::int64_t k, std::int64_t tiles)
      : args_(args), k_(k), tiles_(tiles), fits_(k * kPanel <= kMostFloats) {}

  // From the panel at `column` on, while its tile of that number is multiplied.
  struct Fetched {
    std::int64_t from, step;
  };
  Fetched at(std::int64_t column, std::int64_t tile) const {
    const bool is_near = tile > 0 || column > 0 || args_.is_near;
    const bool is_last = column + kPanel >= args_.n && !args_.goes_on;
    // Where there is nothing to fetch, lines that are near already cost next to nothing.
    if (!fits_ || !is_near || is_last) return {kDistance, kPanel};
    return {k_ * kPanel + tile * (k_ * kPanel / tiles_), (kPanel + tiles_ - 1) / tiles_};
  }

 private:
  static constexpr std::int64_t kDistance = 2048;
  static constexpr std::int64_t kMostFloats = std::int64_t{3} << 16;

  const ConvolveArgs& args_;
  std::int64_t k_, tiles_;
  bool fits_;
};

// A depth of 16 of up to 16 filters, as Winograd's products of layers of 16 channels have: all of B
// stays in registers, and each sum is a chain that others fill, instead of a tile of them that is
// begun and finished for so few steps.
constexpr std::int64_t kHeldDepth = 16;

template <int Rows, typename Lanes, typename F>
[[gnu::always_inline]] inline void convolve_held_rows(const ConvolveArgs& args,
                                                      const Vec (&columns)[kHeldDepth], Vec bias,
                                                      const float* x, std::int64_t at, Lanes lanes,
                                                      F f) {
  const std::int64_t x_step = args.x_step;
  const float* const far = x + Rows / 2 * x_step;
  Vec sums[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) sums[r] = broadcast(0.0f);
#pragma GCC unroll 16
  for (int p = 0; p < kHeldDepth; ++p)
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const float* const row = r < Rows / 2 ? x + r * x_step : far + (r - Rows / 2) * x_step;
      sums[r] = fma(broadcast(row[p]), columns[p], sums[r]);
    }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r, at += args.y_step) {
    Vec result = sums[r] + bias;
    if (args.residual != nullptr) result = result + load(args.residual + at, lanes);
    store(args.y + at, f(result), lanes);
  }
}

template <typename Lanes, typename F>
void convolve_held(const ConvolveArgs& args, Lanes lanes, F f) {
  constexpr int kRows = 8;  // as many chains as two units with a latency of four have room for
  const Vec bias = args.bias ? load(args.bias, lanes) : broadcast(0.0f);
  Vec columns[kHeldDepth];
#pragma GCC unroll 16
  for (int p = 0; p < kHeldDepth; ++p) columns[p] = load(args.packed + p * kPanel);
  const float* ahead = args.packed + kHeldDepth * kPanel;
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.x[row];
    std::int64_t pixel = 0, at = args.y_rows[row];
    for (; pixel + kRows <= args.pixels; pixel += kRows) {
      if (args.goes_on) {
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) __builtin_prefetch(ahead + r * kPanel);
        ahead += kRows * kPanel;
      }
      convolve_held_rows<kRows>(args, columns, bias, x, at, lanes, f);
      x += kRows * args.x_step;
      at += kRows * args.y_step;
    }
    for (; pixel < args.pixels; ++pixel, x += args.x_step, at += args.y_step)
      convolve_held_rows<1>(args, columns, bias, x, at, lanes, f);
  }
}

template <typename F>
void convolve_with(const ConvolveArgs& args, F f) {
  const std::int64_t k = args.lines * args.pieces * args.length;
  // Where registers hold all of B beside sums.
  if constexpr (kTileRows * kTileVectors >= kHeldDepth + 4)
    if (args.length == kHeldDepth && k == kHeldDepth && args.n <= kWidth)
      return args.n == kWidth ? convolve_held(args, Whole{}, f)
                              : convolve_held(args, first_lanes(args.n), f);
  // Rows of seven pixels are computed two at a time where a tile has room for both.
  const bool in_pairs = args.pixels == 7 && kTileRows == 14;
  const RowTiles tiles(args.pixels);
  const PanelsAhead ahead(args, k, in_pairs ? (args.rows + 1) / 2 : args.rows * tiles.count);
  for (std::int64_t column = 0; column < args.n; column += kPanel) {
    const float* const panel = args.packed + column * k;
    std::int64_t index = 0;  // of a tile
    for (std::int64_t row = 0; row < args.rows; ++row) {
      const auto compute = [&](std::int64_t first, std::int64_t count, std::int64_t group_step,
                               std::int64_t y_group_step) {
        const std::int64_t at = args.y_rows[row] + first * args.y_step + column;
        const auto [fetched, fetched_step] = ahead.at(column, index++);
        convolve_up_to<kTileRows>(args,
                                  {.x = args.x[row] + first * args.x_step,
                                   .group_step = group_step,
                                   .panel = panel,
                                   .bias = args.bias ? args.bias + column : nullptr,
                                   .residual = args.residual ? args.residual + at : nullptr,
                                   .y = args.y + at,
                                   .y_group_step = y_group_step,
                                   .columns = smaller(args.n - column, kPanel),
                                   .ahead = panel + fetched,
                                   .ahead_step = fetched_step},
                                  count, f);
      };
      if (in_pairs && row + 1 < args.rows) {
        compute(0, kTileRows, args.x[row + 1] - args.x[row],
                args.y_rows[row + 1] - args.y_rows[row]);
        ++row;
        continue;
      }
      for (std::int64_t t = 0; t < tiles.count; ++t) {
        const std::int64_t first = tiles.begin(t), count = tiles.begin(t + 1) - first;
        const int group = convolve_group(static_cast<int>(count));
        compute(first, count, group * args.x_step, group * args.y_step);
      }
    }
  }
}

inline void convolve(const ConvolveArgs& args) {
  const auto function = static_cast<Unary>(args.activation);
  if (function == Unary::Relu)
    return convolve_with(args, [](Vec a) { return max(broadcast(0.0f), a); });
  convolve_with(args, [](Vec a) { return a; });
  if (function == Unary::None) return;
  // Rarer functions go over what lies in the nearest caches.
  for (std::int64_t row = 0; row < args.rows; ++row)
    for (std::int64_t pixel = 0; pixel < args.pixels; ++pixel) {
      float* const y = args.y + args.y_rows[row] + pixel * args.y_step;
      unary(function, y, args.n, y);
    }
}

inline void pool(const PoolArgs& args) {
  const Vec divisor = broadcast(args.divisor);
  over_lanes(args.channels, [&](std::int64_t c, auto lanes) {
    Vec result = args.is_largest ? load(args.x + c, lanes) : broadcast(0.0f);
    for (std::int64_t line = 0; line < args.lines; ++line)
      for (std::int64_t pixel = 0; pixel < args.pixels; ++pixel) {
        const Vec x = load(args.x + line * args.line_step + pixel * args.pixel_step + c, lanes);
        // max gives its second argument for NaN, so that one that came before has to be kept.
        result = args.is_largest ? select(is_nan(result), result, max(result, x)) : result + x;
      }
    store(args.y + c, args.is_largest ? result : result / divisor, lanes);
  });
}

inline void transpose_matrix(const TransposeArgs& args) {
  for (std::int64_t row = 0; row < args.rows; row += kWidth) {
    const std::int64_t rows = smaller(args.rows - row, kWidth);
    for (std::int64_t column = 0; column < args.columns; column += kWidth) {
      const std::int64_t columns = smaller(args.columns - column, kWidth);
      const Mask read = first_lanes(columns), written = first_lanes(rows);
      Vec block[kWidth];
      for (std::int64_t r = 0; r < kWidth; ++r)
        block[r] =
            r < rows ? load(args.x + (row + r) * args.x_stride + column, read) : broadcast(0.0f);
      transpose(block);
      for (std::int64_t c = 0; c < columns; ++c)
        store(args.y + (column + c) * args.y_stride + row, block[c], written);
    }
  }
}
