// A block of a product in parts, from its panels and rows to y, for a file that has included
// split_gemm.inl.h.

// It goes through the pieces of its depth, in each through its panels, and with each through its
// rows, two tiles of them at a time. The vectors have nothing to do while tiles are multiplied:
// what the next panel and the next rows need is split meanwhile, and what comes after that is asked
// for from memory. Rows that were split ahead are only asked for.
template <typename Left, typename Args, typename Panels>
class SplitBlock {
 public:
  SplitBlock(const Args& args, const Panels& panels, const void* parts, std::int64_t next_column)
      : args_(args),
        panels_(panels),
        kept_{static_cast<const std::uint16_t*>(parts), args.k},
        is_kept_(parts != nullptr),
        next_column_(next_column) {
    const SplitScratch own(args.rows, args.n);
    auto* const memory = static_cast<unsigned char*>(args.scratch);
    left_ = reinterpret_cast<std::uint16_t*>(memory);
    right_ = reinterpret_cast<std::uint16_t*>(memory + own.right);
    next_right_ = reinterpret_cast<std::uint16_t*>(memory + own.right + kRightBytes);
    floats_ = reinterpret_cast<float*>(memory + own.floats);
    sums_ = reinterpret_cast<float*>(memory + own.sums);
    is_float_ = memory + own.is_float;
    for (std::int64_t r = 0; r < args.rows; ++r) is_float_[r] = 0;
    if constexpr (Panels::kMayBeLarge) {
      panels_.is_large = memory + own.is_large;
      for (std::int64_t panel = 0; panel * kPanel < args.n; ++panel) panels_.is_large[panel] = 0;
    }
  }

  void multiply() {
    if (args_.rows == 0) return;
    {
      const TileSession session;
      Panel panel{0, 0};
      PanelLines first = lines(panel, right_);
      first.split(first.end);
      if (is_kept_)
        for (std::int64_t step = 0; step < steps(0); ++step)
          for (int part = 0; part < 2 * kParts; ++part) ask_for_rows(0, 0, step, part);
      for (; panel.from < args_.k; panel = after(panel)) {
        // Nobody reads the rows of the piece before any more, or there were none.
        if (!is_kept_ && panel.column == 0 && (panel.from == 0 || args_.rows <= kSplitRows)) {
          const Left some = rows(panel.from, 0);
          for (std::int64_t step = 0; step < some.steps; ++step) some.split(step, 0, some.padded);
        }
        multiply_panel(panel);
      }
    }
    if constexpr (Left::kAreColumns) end_streams();
    // Theirs is another way through all columns; y may be the residual, so nobody has written
    // there.
    if constexpr (!Panels::kMayBeLarge)
      for (std::int64_t r = 0; r < args_.rows; ++r)
        if (is_float(r)) panels_.multiply_row(args_, r);
  }

 private:
  // A piece of a panel, or none where `from` is not below k.
  struct Panel {
    std::int64_t column, from;
  };
  Panel after(const Panel& panel) const {
    return panel.column + kPanel < args_.n ? Panel{panel.column + kPanel, panel.from}
                                           : Panel{0, panel.from + kSplitDepth};
  }
  std::int64_t steps(std::int64_t from) const {
    return from < args_.k
               ? round_up(smaller(args_.k - from, kSplitDepth), kSplitGrain) / kSplitGrain
               : 0;
  }

  // The lines of one panel, which are split one behind another, and those of the next one, which
  // are asked for.
  struct PanelLines {
    const Panels& panels;
    Panel panel, next;
    std::int64_t end, end_of_next;
    std::uint16_t* to;
    std::int64_t line = 0;

    void split(std::int64_t lines) {
      for (const std::int64_t stop = smaller(line + lines, end); line < stop; ++line) {
        if constexpr (Panels::kHasLines) panels.split_line(panel.column, panel.from, line, to);
        if (line < end_of_next) panels.ask_for_line(next.column, next.from, line);
      }
    }
  };
  PanelLines lines(const Panel& panel, std::uint16_t* to) const {
    Panel next = after(panel);
    if (next.from >= args_.k && next_column_ != 0) next = {next_column_, 0};
    return {panels_, panel, next, steps(panel.from) * kStepLines, steps(next.from) * kStepLines,
            to};
  }

  // Two tiles of rows from `row` on, of the piece from `from` on.
  Left rows(std::int64_t from, std::int64_t row) const {
    const std::int64_t left_over = args_.rows - row, of_piece = steps(from);
    LeftPiece piece{.x = args_.x + row * args_.x_stride + from,
                    .distance = args_.x_stride,
                    .rows = left_over,
                    .padded = smaller(round_up(left_over, kTileLines), kSplitRows),
                    .are_followed = left_over >= 2 * kSplitRows,
                    .depth = args_.k - from,
                    .steps = of_piece,
                    .left = left_ + row / kTileLines * of_piece * kLeftStep,
                    .is_float = is_float_ + row};
    if constexpr (Left::kAreColumns) {
      piece.x = args_.x + row + from * args_.x_step;
      piece.distance = args_.x_step;
    }
    return {piece};
  }
  // A part of two tiles of kept rows, of one step.
  void ask_for_rows(std::int64_t from, std::int64_t row, std::int64_t step, int part) const {
    const std::uint16_t* const line = kept_.left(row, from + step * kSplitGrain) +
                                      part / kParts * kept_.tile() + part % kParts * kTileNumbers;
    for (std::int64_t i = 0; i < kTileNumbers; i += kSplitGrain) ask_to_read(line + i);
  }

  // Two tiles of rows that come next, of this panel or of the next one, and are not ready.
  struct NextRows {
    std::int64_t from = 0, row = 0, steps = 0;
    Left some = {};
  };
  NextRows next_rows(const Panel& panel, std::int64_t row) const {
    const bool is_last = row + kSplitRows >= args_.rows;
    NextRows next;
    if (panel.column == 0 && !is_last)
      next = {panel.from, row + kSplitRows, steps(panel.from)};
    else if (after(panel).column == 0 && is_last && (is_kept_ || row > 0))
      next = {after(panel).from, 0, steps(after(panel).from)};
    if (!is_kept_ && next.steps > 0) next.some = rows(next.from, next.row);
    return next;
  }

  // The lines that two tiles' results will be written to, which nobody may have near, and those of
  // what is added to them.
  struct ResultLines {
    static constexpr std::int64_t kLineFloats = kCacheLine / 4, kOfRow = kPanel / kLineFloats;
    const float *y, *residual;  // or null
    std::int64_t y_stride, residual_stride;
    std::int64_t rows;
    std::int64_t line = 0;

    void ask() {
      if (line >= rows * kOfRow) return;
      const std::int64_t row = line / kOfRow, of_row = line % kOfRow * kLineFloats;
      ++line;
      ask_to_write(y + row * y_stride + of_row);
      if (residual != nullptr) ask_to_read(residual + row * residual_stride + of_row);
    }
  };
  ResultLines result_lines(const Panel& panel, std::int64_t row, std::int64_t count) const {
    const float* const y = args_.y + row * args_.y_stride + panel.column;
    const float* const residual = args_.residual != nullptr
                                      ? args_.residual + row * args_.residual_stride + panel.column
                                      : nullptr;
    bool are_written = panel.from + kSplitDepth >= args_.k && panel.column + kPanel <= args_.n;
    if constexpr (Left::kAreColumns) are_written = are_written && !args_.streams_y;
    return {y, residual == y ? nullptr : residual, args_.y_stride, args_.residual_stride,
            are_written ? count : 0};
  }

  void multiply_panel(const Panel& panel) {
    constexpr int kProducts = split_products(Panels::kRightParts);
    const std::int64_t of_piece = steps(panel.from), padded = round_up(args_.rows, kSplitRows);
    if constexpr (!Panels::kHasLines)
      panels_.split(panel.column, panel.from, of_piece * kSplitGrain, floats_, right_);
    PanelLines next = lines(after(panel), next_right_);
    const std::int64_t products = padded / kSplitRows * of_piece * kProducts;
    const std::int64_t share = (next.end + products - 1) / products;
    for (std::int64_t row = 0; row < args_.rows; row += kSplitRows) {
      const std::int64_t count = smaller(args_.rows - row, kSplitRows);
      const NextRows coming = next_rows(panel, row);
      ResultLines results = result_lines(panel, row, count);
      const auto meanwhile = [&](std::int64_t step, int product) {
        results.ask();
        if (step < coming.steps) {
          if (!is_kept_)
            coming.some.split(step, coming.some.padded * product / kProducts,
                              coming.some.padded * (product + 1) / kProducts);
          else
            for (int part = 2 * kParts * product / kProducts;
                 part < 2 * kParts * (product + 1) / kProducts; ++part)
              ask_for_rows(coming.from, coming.row, step, part);
        }
        next.split(share);
      };
      const SplitTile tile{.steps = of_piece,
                           .left = is_kept_ ? kept_.left(row, panel.from)
                                            : left_ + row / kTileLines * of_piece * kLeftStep,
                           .left_tile = is_kept_ ? kept_.tile() : of_piece * kLeftStep,
                           .right = right_,
                           .sums = sums_ + panel.column * padded + row * kPanel,
                           .accumulate = panel.from > 0};
      if (count > kTileLines)
        multiply_split_tiles<Panels::kRightParts, true>(tile, meanwhile);
      else
        multiply_split_tiles<Panels::kRightParts, false>(tile, meanwhile);
      if (panel.from + kSplitDepth >= args_.k) finish(row, count, panel.column, tile.sums);
    }
    std::uint16_t* const done = right_;
    if constexpr (Panels::kHasLines) right_ = next_right_;
    next_right_ = done;
  }

  void finish(std::int64_t row, std::int64_t count, std::int64_t column, float* sums) const {
    if constexpr (Panels::kMayBeLarge) {
      replace_sums(row, count, column, sums);
      if constexpr (Left::kAreColumns)
        if (args_.streams_y && stream_rows(sums, count, args_.n - column,
                                           args_.y + row * args_.y_stride + column, args_.y_stride))
          return;
      return finish_split(args_, row, count, column, sums);
    }
    for (std::int64_t r = 0; r < count;) {
      std::int64_t end = r;  // of the rows that need no other way
      while (end < count && !is_float(row + end)) ++end;
      if (end > r) finish_split(args_, row + r, end - r, column, sums + r * kPanel);
      r = end + 1;
    }
  }

  // By those of floats, of rows or of a panel with a number that may not be split.
  void replace_sums(std::int64_t row, std::int64_t count, std::int64_t column, float* sums) const {
    const bool all = panels_.is_large[column / kPanel] != 0;
    bool some = all;
    for (std::int64_t r = 0; r < count; ++r) some = some || is_float(row + r);
    if (!some) return;
    alignas(64) float whole[kSplitRows * kPanel];
    const RowTiles tiles(count);
    for (std::int64_t from = 0; from < args_.k; from += kSplitDepth) {
      const std::int64_t depth = smaller(args_.k - from, kSplitDepth);
      panels_.copy(column, from, depth, floats_);
      for (std::int64_t t = 0; t < tiles.count; ++t)
        multiply_tile({.k = depth,
                       .x = args_.x + (row + tiles.begin(t)) * args_.x_stride + from * args_.x_step,
                       .x_stride = args_.x_stride,
                       .x_step = args_.x_step,
                       .panel = floats_,
                       .y = whole + tiles.begin(t) * kPanel,
                       .y_stride = kPanel,
                       .columns = kPanel,
                       .bias = nullptr,
                       .scale = 1.0f,
                       .accumulate = from > 0,
                       .is_partial = true},
                      tiles.begin(t + 1) - tiles.begin(t));
    }
    for (std::int64_t r = 0; r < count; ++r)
      if (all || is_float(row + r))
        map(whole + r * kPanel, kPanel, sums + r * kPanel, [](Vec a) { return a; });
  }

  bool is_float(std::int64_t row) const {
    return is_kept_ ? kept_.is_float(row) : is_float_[row] != 0;
  }

  const Args& args_;
  Panels panels_;
  const KeptRows kept_;
  const bool is_kept_;
  const std::int64_t next_column_;
  std::uint16_t *left_, *right_, *next_right_;
  float *floats_, *sums_;
  unsigned char* is_float_;
};

template <typename Left, typename Args, typename Panels>
void multiply_in_parts(const Args& args, const Panels& panels, const void* parts,
                       std::int64_t next_column) {
  SplitBlock<Left, Args, Panels>(args, panels, parts, next_column).multiply();
}

inline void split_multiply(const SplitArgs& args) {
  if (args.packed != nullptr)
    multiply_in_parts<SplitRows>(args, FloatPanels{args.packed, args.k}, args.parts,
                                 args.next_column);
  else if (args.x_step != 1)
    multiply_in_parts<SplitColumns>(args, LyingRows(args, kMostSplitBoth), nullptr, 0);
  else if (args.b_stride_n == 1)
    multiply_in_parts<SplitRows>(args, LyingRows(args, kMostSplitWeight), args.parts,
                                 args.next_column);
  else {
    alignas(64) float turned[kWidth * kWidth];
    multiply_in_parts<SplitRows>(args, LyingColumns(args, turned), args.parts, args.next_column);
  }
}

inline ProductGrain split_grain() {
  // 16 times as fast as a multiply-add of floats, six times as much to do.
  return {kSplitRows, kPanel, 16.0 / 6};
}
