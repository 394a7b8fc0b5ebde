// Operands of a product in parts that are read where they lie, for a file that has included
// split_gemm.inl.h: weights that are trained, which would have to be packed for every step, and
// both operands of a weight's gradient, which lie across the depth.

// B where it lies: what both kinds of it have in common. A panel is noted where the squares of two
// numbers, one below the other, do not add up to less than the square of the limit: all of its
// numbers are below it otherwise.
struct LyingPanels {
  static constexpr int kRightParts = kParts;
  static constexpr bool kHasLines = true;
  static constexpr bool kMayBeLarge = true;
  const float* b;
  std::int64_t n, k;
  std::int64_t stride_n, stride_k;
  float limit;
  unsigned char* is_large = nullptr;  // for each panel

  LyingPanels(const SplitArgs& args, float limit_of_numbers)
      : b(args.b),
        n(args.n),
        k(args.k),
        stride_n(args.b_stride_n),
        stride_k(args.b_stride_k),
        limit(limit_of_numbers) {}

  // Where a line of a piece is: pairs of the depth for 16 columns each, those of 32 elements of the
  // depth first for one half of the panel's columns, then for the other.
  struct Place {
    std::int64_t column, p;
  };
  static Place place(std::int64_t column, std::int64_t from, std::int64_t line) {
    return {column + line % kStepLines / kTileLines * kTileLines,
            from + line / kStepLines * kSplitGrain + line % kTileLines * 2};
  }
  void store_line(std::int64_t column, std::int64_t line, Vec even, Vec odd,
                  std::uint16_t* to) const {
    if (less(fma(even, even, odd * odd), broadcast(limit * limit)) != first_lanes(kWidth))
      is_large[column / kPanel] = 1;
    store_pair_parts(even, odd, 2 * kTileNumbers,
                     to + line / kStepLines * kRightStep + line % kStepLines * kSplitGrain);
  }
  // A piece of a panel as floats.
  void copy(std::int64_t column, std::int64_t from, std::int64_t depth, float* to) const {
    pack_b(b + column * stride_n + from * stride_k, smaller(n - column, kPanel), depth, stride_n,
           stride_k, to);
  }
};

// The rows of B are consecutive.
struct LyingRows : LyingPanels {
  using LyingPanels::LyingPanels;

  void split_line(std::int64_t column, std::int64_t from, std::int64_t line,
                  std::uint16_t* to) const {
    const Place at = place(column, from, line);
    const float* const row = b + at.p * stride_k + at.column;
    const Mask lanes = first_lanes(at.column < n ? n - at.column : 0);
    const Vec even = at.p < k ? load(row, lanes) : broadcast(0.0f);
    const Vec odd = at.p + 1 < k ? load(row + stride_k, lanes) : broadcast(0.0f);
    store_line(column, line, even, odd, to);
  }
  void ask_for_line(std::int64_t column, std::int64_t from, std::int64_t line) const {
    const Place at = place(column, from, line);
    const float* const row = b + at.p * stride_k + at.column;
    ask_to_read(row);
    ask_to_read(row + stride_k);
  }
};

// The columns of B are consecutive: what eight lines need is turned around with the first of them.
struct LyingColumns : LyingPanels {
  static constexpr std::int64_t kLines = kWidth / 2;
  float* turned;  // [kWidth, kWidth]
  LyingColumns(const SplitArgs& args, float* scratch)
      : LyingPanels(args, kMostSplitWeight), turned(scratch) {}

  void split_line(std::int64_t column, std::int64_t from, std::int64_t line,
                  std::uint16_t* to) const {
    if (line % kLines == 0) {
      const Place at = place(column, from, line);
      const float* const numbers = b + at.column * stride_n + at.p;
      Vec block[kWidth];
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kWidth; ++i)
        block[i] = at.column + i < n ? load(numbers + i * stride_n) : broadcast(0.0f);
      transpose(block);
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kWidth; ++i) store(turned + i * kWidth, block[i]);
    }
    const float* const pair = turned + line % kLines * 2 * kWidth;
    store_line(column, line, load(pair), load(pair + kWidth), to);
  }
  void ask_for_line(std::int64_t column, std::int64_t from, std::int64_t line) const {
    const Place at = place(column, from, line / kLines * kLines);
    const float* const numbers = b + (at.column + line % kLines * 2) * stride_n + at.p;
    ask_to_read(numbers);
    ask_to_read(numbers + stride_n);
  }
};

// Rows of x whose elements of one depth are neighbours: tiles are turned around.
struct SplitColumns : LeftPiece {
  static constexpr bool kAreColumns = true;

  void split(std::int64_t step, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t row = 0; row < padded; row += kTileLines)
      if (begin <= row && row < end) split_tile(step, row);
  }
  void split_tile(std::int64_t step, std::int64_t row) const {
    alignas(64) float lines[kTileLines * kSplitGrain];
    const Mask lanes = first_lanes(rows - row);
    for (std::int64_t half = 0; half < kSplitGrain; half += kWidth) {
      Vec block[kWidth];
      for (std::int64_t i = 0; i < kWidth; ++i) {
        const std::int64_t p = step * kSplitGrain + half + i;
        const float* const from = x + row + p * distance;
        block[i] = p < depth ? load(from, lanes) : broadcast(0.0f);
        if (are_followed) ask_to_read(from + kSplitRows);
      }
      transpose(block);
      for (std::int64_t i = 0; i < kWidth; ++i) store(lines + i * kSplitGrain + half, block[i]);
    }
    const Vec limit = broadcast(kMostSplitBoth);
    for (std::int64_t i = 0; i < kTileLines; ++i) {
      const float* const line = lines + i * kSplitGrain;
      split_line(step, row + i, {load(line), load(line + kWidth)}, limit);
    }
  }
};
