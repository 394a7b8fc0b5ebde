// Winograd's transforms of images whose channels lie side by side: a vector holds one number of
// several channels or filters, so that all of a transform is the same few operations on vectors.
//
// The points are 0, 1, -1 and infinity for tiles of 2, and 2 and -2 more for tiles of 4.

// The six numbers under a row of four results, or four under two, at the points.
inline void winograd_forward(Vec (&d)[4]) {
  const Vec first = d[0] - d[2], last = d[1] - d[3];
  const Vec sum = d[1] + d[2], difference = d[2] - d[1];
  d[0] = first, d[1] = sum, d[2] = difference, d[3] = last;
}
inline void winograd_forward(Vec (&d)[6]) {
  const Vec two = broadcast(2.0f), four = broadcast(4.0f), five = broadcast(5.0f);
  const Vec first = fnma(five, d[2], fma(four, d[0], d[4]));
  const Vec last = fnma(five, d[3], fma(four, d[1], d[5]));
  const Vec even = fnma(four, d[2], d[4]), odd = fnma(four, d[1], d[3]);
  const Vec near = d[4] - d[2], far = two * (d[3] - d[1]);
  d[0] = first, d[1] = even + odd, d[2] = even - odd;
  d[3] = near + far, d[4] = near - far, d[5] = last;
}

// Three taps at the points.
inline void winograd_filter_points(const Vec (&g)[3], Vec (&u)[4]) {
  const Vec half = broadcast(0.5f), ends = g[0] + g[2];
  u[0] = g[0], u[1] = half * (ends + g[1]), u[2] = half * (ends - g[1]), u[3] = g[2];
}
inline void winograd_filter_points(const Vec (&g)[3], Vec (&u)[6]) {
  const Vec sixth = broadcast(-1.0f / 6), ends = g[0] + g[2];
  const Vec far = fma(broadcast(1.0f / 24), g[0], broadcast(1.0f / 6) * g[2]);
  const Vec middle = broadcast(1.0f / 12) * g[1];
  u[0] = broadcast(0.25f) * g[0], u[1] = sixth * (ends + g[1]), u[2] = sixth * (ends - g[1]);
  u[3] = far + middle, u[4] = far - middle, u[5] = g[2];
}

// Sums at the points as results.
inline void winograd_backward(const Vec (&m)[4], Vec (&y)[2]) {
  y[0] = m[0] + m[1] + m[2];
  y[1] = m[1] - m[2] - m[3];
}
inline void winograd_backward(const Vec (&m)[6], Vec (&y)[4]) {
  const Vec sum = m[1] + m[2], difference = m[1] - m[2];
  const Vec far_sum = m[3] + m[4], far_difference = m[3] - m[4];
  y[0] = m[0] + sum + far_sum;
  y[1] = fma(broadcast(2.0f), far_difference, difference);
  y[2] = fma(broadcast(4.0f), far_sum, sum);
  y[3] = fma(broadcast(8.0f), far_difference, difference) + m[5];
}

// The transposes of winograd_backward and winograd_filter_points: what a gradient goes through on
// its way from the results of a tile to the points, and from there to the taps.
inline void winograd_gradient_points(const Vec (&y)[4], Vec (&m)[6]) {
  const Vec even = y[0] + y[2], odd = y[1] + y[3];
  const Vec far_even = fma(broadcast(4.0f), y[2], y[0]);
  const Vec far_odd = broadcast(2.0f) * fma(broadcast(4.0f), y[3], y[1]);
  m[0] = y[0], m[1] = even + odd, m[2] = even - odd;
  m[3] = far_even + far_odd, m[4] = far_even - far_odd, m[5] = y[3];
}
inline void winograd_taps_of(const Vec (&u)[6], Vec (&g)[3]) {
  const Vec sixth = broadcast(1.0f / 6), sum = u[1] + u[2], far_sum = u[3] + u[4];
  g[0] = fma(broadcast(0.25f), u[0], fnma(sixth, sum, broadcast(1.0f / 24) * far_sum));
  g[1] = fma(broadcast(1.0f / 12), u[3] - u[4], sixth * (u[2] - u[1]));
  g[2] = fma(sixth, far_sum - sum, u[5]);
}

// Numbers `step` apart from each other, reached from two pointers.
template <int Size, typename Lanes>
[[gnu::always_inline]] inline void load_points(const float* from, std::int64_t step,
                                               Vec (&points)[Size], Lanes lanes) {
  const float* const far = from + 3 * step;
#pragma GCC unroll 8
  for (int i = 0; i < Size; ++i)
    points[i] = load(i < 3 ? from + i * step : far + (i - 3) * step, lanes);
}
template <int Size, typename Lanes>
[[gnu::always_inline]] inline void store_points(float* to, std::int64_t step,
                                                const Vec (&points)[Size], Lanes lanes) {
  float* const far = to + 3 * step;
#pragma GCC unroll 8
  for (int i = 0; i < Size; ++i)
    store(i < 3 ? to + i * step : far + (i - 3) * step, points[i], lanes);
}

// Tiles of a row that are transformed together.
constexpr std::int64_t kWinogradTiles = 8;

// What is in front of the pixels of some channels, or nothing.
struct NoFront {
  template <typename Lanes>
  NoFront(const WinogradFront&, std::int64_t, Lanes) {}
  [[gnu::always_inline]] Vec operator()(Vec a) const { return a; }
};
struct NormFront {
  Vec center, slope, bias;
  template <typename Lanes>
  NormFront(const WinogradFront& front, std::int64_t c, Lanes lanes)
      : center(load(front.center + c, lanes)),
        slope(load(front.slope + c, lanes)),
        bias(load(front.bias + c, lanes)) {}
  [[gnu::always_inline]] Vec operator()(Vec a) const {
    return max(broadcast(0.0f), fma(a - center, slope, bias));
  }
};

// Down the columns of pixels from `begin` to `end`, whose lines are all inside if it is whole.
template <int Tile, bool IsWhole, typename Lanes, typename Front>
void winograd_columns(const WinogradInputArgs& args, const float* x, std::int64_t begin,
                      std::int64_t end, Vec (&points)[Tile + 2][kWinogradTiles * Tile + 2],
                      Lanes lanes, const Front& front) {
  constexpr int kSize = Tile + 2;
  const std::int64_t line = args.line, pixel = args.pixel, top = args.top, bottom = args.bottom;
  for (std::int64_t j = begin; j < end; ++j, x += pixel) {
    Vec column[kSize];
    if constexpr (IsWhole) {
      load_points(x, line, column, lanes);
#pragma GCC unroll 8
      for (int i = 0; i < kSize; ++i) column[i] = front(column[i]);
    } else {
#pragma GCC unroll 8
      for (int i = 0; i < kSize; ++i)
        column[i] = i >= top && i < bottom ? front(load(x + i * line, lanes)) : broadcast(0.0f);
    }
    winograd_forward(column);
#pragma GCC unroll 8
    for (int i = 0; i < kSize; ++i) points[i][j] = column[i];
  }
}

// First down the columns of pixels, of which neighbouring tiles share two, into a buffer that the
// nearest cache keeps, then along its lines: all of a tile at once would not fit the registers.
template <int Tile, typename Front>
void winograd_input_of(const WinogradInputArgs& args) {
  constexpr int kSize = Tile + 2;
  const bool is_whole = args.top == 0 && args.bottom == kSize;
  const std::int64_t tile_step = args.tile_step, step = args.step;
  for (std::int64_t first = 0; first < args.tiles; first += kWinogradTiles) {
    const std::int64_t tiles = smaller(args.tiles - first, kWinogradTiles);
    const std::int64_t columns = tiles * Tile + 2;
    const std::int64_t begin = smaller(larger(args.left - first * Tile, 0), columns);
    const std::int64_t end = smaller(larger(args.right - first * Tile, begin), columns);
    const float* const x = args.x + (first * Tile + begin) * args.pixel;
    float* const to = args.points + first * tile_step;
    Vec points[kSize][kWinogradTiles * Tile + 2];
    for (int i = 0; i < kSize; ++i) {
      for (std::int64_t j = 0; j < begin; ++j) points[i][j] = broadcast(0.0f);
      for (std::int64_t j = end; j < columns; ++j) points[i][j] = broadcast(0.0f);
    }
    over_lanes(args.channels, [&](std::int64_t c, auto lanes) {
      const Front front(args.front, c, lanes);
      if (is_whole)
        winograd_columns<Tile, true>(args, x + c, begin, end, points, lanes, front);
      else
        winograd_columns<Tile, false>(args, x + c, begin, end, points, lanes, front);
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        float* row = to + tile * tile_step + c;
#pragma GCC unroll 1  // so that addresses stay few
        for (int i = 0; i < kSize; ++i, row += kSize * step) {
          Vec d[kSize];
#pragma GCC unroll 8
          for (int j = 0; j < kSize; ++j) d[j] = points[i][tile * Tile + j];
          winograd_forward(d);
          store_points(row, step, d, lanes);
        }
      }
    });
  }
}

template <int Tile>
void winograd_filter_of(const WinogradFilterArgs& args) {
  constexpr int kSize = Tile + 2;
  over_lanes(args.n, [&](std::int64_t f, auto lanes) {
    Vec rows[kSize][3];
    for (int q = 0; q < 3; ++q) {
      Vec taps[3], points[kSize];
      for (int p = 0; p < 3; ++p)
        taps[p] = load(args.taps + (p * 3 + q) * args.tap_step + f, lanes);
      winograd_filter_points(taps, points);
      for (int i = 0; i < kSize; ++i) rows[i][q] = points[i];
    }
    for (int i = 0; i < kSize; ++i) {
      Vec points[kSize];
      winograd_filter_points(rows[i], points);
      store_points(args.points + i * kSize * args.step + f, args.step, points, lanes);
    }
  });
}

// A tile of which `pixels` of each line are inside, unless it is whole. Its points fit the
// registers when the results of their columns are taken first.
template <int Tile, bool IsWhole, typename Lanes, typename F>
void winograd_output_tile(const WinogradOutputArgs& args, const float* points, std::int64_t at,
                          Vec bias, std::int64_t pixels, Lanes lanes, F function) {
  constexpr int kSize = Tile + 2;
  const std::int64_t step = args.step, pixel = args.pixel;
  Vec rows[Tile][kSize];
#pragma GCC unroll 8
  for (int j = 0; j < kSize; ++j) {
    Vec column[kSize], results[Tile];
    load_points(points + j * step, kSize * step, column, lanes);
    winograd_backward(column, results);
#pragma GCC unroll 8
    for (int i = 0; i < Tile; ++i) rows[i][j] = results[i];
  }
#pragma GCC unroll 8
  for (int i = 0; i < Tile; ++i, at += args.line) {
    if (!IsWhole && i >= args.lines) break;
    Vec results[Tile];
    winograd_backward(rows[i], results);
    float* const y = args.y + at;
#pragma GCC unroll 8
    for (int j = 0; j < Tile; ++j) {
      if (!IsWhole && j >= pixels) break;
      Vec result = results[j] + bias;
      if (args.residual != nullptr) result = result + load(args.residual + at + j * pixel, lanes);
      store(y + j * pixel, function(result), lanes);
    }
  }
}

template <int Tile, typename F>
void winograd_output_of(const WinogradOutputArgs& args, F function) {
  over_lanes(args.n, [&](std::int64_t f, auto lanes) {
    const Vec bias = args.bias ? load(args.bias + f, lanes) : broadcast(0.0f);
    for (std::int64_t tile = 0; tile < args.tiles; ++tile) {
      const float* const points = args.points + tile * args.tile_step + f;
      const std::int64_t at = tile * Tile * args.pixel + f, pixels = args.pixels - tile * Tile;
      if (args.lines >= Tile && pixels >= Tile)
        winograd_output_tile<Tile, true>(args, points, at, bias, pixels, lanes, function);
      else
        winograd_output_tile<Tile, false>(args, points, at, bias, pixels, lanes, function);
    }
  });
}

inline void winograd_input(const WinogradInputArgs& args) {
  if (args.front.center != nullptr)
    return args.tile == 4 ? winograd_input_of<4, NormFront>(args)
                          : winograd_input_of<2, NormFront>(args);
  args.tile == 4 ? winograd_input_of<4, NoFront>(args) : winograd_input_of<2, NoFront>(args);
}

inline void winograd_filter(const WinogradFilterArgs& args) {
  if (args.tile == 4) return winograd_filter_of<4>(args);
  winograd_filter_of<2>(args);
}

template <int Tile>
void winograd_output_with(const WinogradOutputArgs& args) {
  const auto function = static_cast<Unary>(args.activation);
  if (function == Unary::Relu)
    return winograd_output_of<Tile>(args, [](Vec a) { return max(broadcast(0.0f), a); });
  winograd_output_of<Tile>(args, [](Vec a) { return a; });
  if (function == Unary::None) return;
  for (std::int64_t i = 0; i < args.lines; ++i)
    for (std::int64_t j = 0; j < args.pixels; ++j) {
      float* const y = args.y + i * args.line + j * args.pixel;
      unary(function, y, args.n, y);
    }
}

inline void winograd_output(const WinogradOutputArgs& args) {
  if (args.tile == 4) return winograd_output_with<4>(args);
  winograd_output_with<2>(args);
}

// As winograd_output_tile.
template <bool IsWhole, typename Lanes>
void winograd_gradient_tile(const WinogradGradientArgs& args, const float* dy, float* to,
                            std::int64_t pixels, Lanes lanes) {
  constexpr int kTile = 4, kSize = kTile + 2;
  const std::int64_t line = args.line, pixel = args.pixel, lines = args.lines, step = args.step;
  Vec rows[kSize][kTile];
#pragma GCC unroll 8
  for (int j = 0; j < kTile; ++j, dy += pixel) {
    Vec column[kTile], points[kSize];
#pragma GCC unroll 8
    for (int i = 0; i < kTile; ++i)
      column[i] =
          IsWhole || (i < lines && j < pixels) ? load(dy + i * line, lanes) : broadcast(0.0f);
    winograd_gradient_points(column, points);
#pragma GCC unroll 8
    for (int i = 0; i < kSize; ++i) rows[i][j] = points[i];
  }
#pragma GCC unroll 8
  for (int i = 0; i < kSize; ++i, to += kSize * step) {
    Vec points[kSize];
    winograd_gradient_points(rows[i], points);
    store_points(to, step, points, lanes);
  }
}

inline void winograd_gradient(const WinogradGradientArgs& args) {
  constexpr int kTile = 4;
  over_lanes(args.n, [&](std::int64_t f, auto lanes) {
    for (std::int64_t tile = 0; tile < args.tiles; ++tile) {
      const float* const dy = args.dy + tile * kTile * args.pixel + f;
      float* const to = args.points + tile * args.tile_step + f;
      const std::int64_t pixels = args.pixels - tile * kTile;
      if (args.lines >= kTile && pixels >= kTile)
        winograd_gradient_tile<true>(args, dy, to, pixels, lanes);
      else
        winograd_gradient_tile<false>(args, dy, to, pixels, lanes);
    }
  });
}

inline void winograd_taps(const WinogradTapsArgs& args) {
  constexpr int kSize = 6, kTaps = 3;
  const std::int64_t step = args.step, tap_step = args.tap_step;
  over_lanes(args.channels, [&](std::int64_t c, auto lanes) {
    const float* points = args.points + c;
    Vec rows[kTaps][kSize];
#pragma GCC unroll 8
    for (int j = 0; j < kSize; ++j, points += step) {
      Vec column[kSize], taps[kTaps];
      load_points(points, kSize * step, column, lanes);
      winograd_taps_of(column, taps);
#pragma GCC unroll 8
      for (int i = 0; i < kTaps; ++i) rows[i][j] = taps[i];
    }
    float* dw = args.dw + c;
#pragma GCC unroll 8
    for (int i = 0; i < kTaps; ++i, dw += kTaps * tap_step) {
      Vec taps[kTaps];
      winograd_taps_of(rows[i], taps);
      store_points(dw, tap_step, taps, lanes);
    }
  });
}
