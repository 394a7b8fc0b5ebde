// What becomes of a tile of sums: bias, rounding, activation and residual, for a file that has
// included bf16_gemm.inl.h.

// Sums [rows, kPanel] of the rows of y from `row` and of its columns from `column` on.
struct SumsTile {
  std::int64_t row = 0, rows = 0, column = 0;
  const float* sums = nullptr;
  alignas(64) float bias[kPanel];  // rounded; -0 where there is none, which changes no number
};

template <typename F, typename Lanes>
[[gnu::always_inline]] inline Vec finished(const Bf16Args& args, F f, Vec sum, Vec bias,
                                           const float* residual, Lanes lanes) {
  Vec value = sum + bias;
  if (args.is_rounded) value = near_bf16(value);
  value = f(value);
  return residual != nullptr ? value + load(residual, lanes) : value;
}

template <typename F>
[[gnu::always_inline]] inline void finish_row(const Bf16Args& args, const SumsTile& tile,
                                              std::int64_t r, std::int64_t columns, F f) {
  const float* const sums = tile.sums + r * kPanel;
  const std::int64_t row = tile.row + r, place = row * args.y_stride + tile.column;
  const float* const residual =
      args.residual ? args.residual + row * args.residual_stride + tile.column : nullptr;
  const auto at = [&](std::int64_t c, auto lanes) __attribute__((always_inline)) {
    return finished(args, f, load(sums + c), load(tile.bias + c),
                    residual != nullptr ? residual + c : nullptr, lanes);
  };
  if (columns < kPanel) {
    over_lanes(columns, [&](std::int64_t c, auto lanes) {
      if (args.narrow_y != nullptr)
        store_bf16(args.narrow_y + place + c, at(c, lanes), columns - c);
      else
        store(args.y + place + c, at(c, lanes), lanes);
    });
    return;
  }
  // Two vectors at a time do not wait for each other.
  static_assert(kTileVectors == 2);
  const Vec first = at(0, Whole{}), second = at(kWidth, Whole{});
  if (args.narrow_y != nullptr) {
    store_bf16(args.narrow_y + place, first);
    store_bf16(args.narrow_y + place + kWidth, second);
  } else {
    store(args.y + place, first);
    store(args.y + place + kWidth, second);
  }
}

// A function of its own: as a part of the loop over tiles it made that a quarter slower.
[[gnu::noinline]] inline void finish_rows(const Bf16Args& args, const SumsTile& tile,
                                          std::int64_t first, std::int64_t end) {
  const std::int64_t columns = smaller(args.n - tile.column, kPanel);
  if (args.streams_y &&
      stream_rows(tile.sums + first * kPanel, end - first, columns,
                  args.y + (tile.row + first) * args.y_stride + tile.column, args.y_stride))
    return;
  with_function(args.activation, [&](auto f) {
    for (std::int64_t r = first; r < end; ++r) finish_row(args, tile, r, columns, f);
  });
}

// What vectors do while tiles are multiplied: they finish the tile before, and ask for the rows of
// y and the residual that this one needs then, and for the panel of B that comes next.
class Bf16Beside {
 public:
  // In so many steps a tile is finished.
  Bf16Beside(const Bf16Args& args, std::int64_t steps)
      : args_(args), share_(steps > 0 ? (kPairRows << kShareBits) / steps + 1 : 0) {
    for (float& bias : tile_.bias) bias = -0.0f;
  }

  // To be finished beside the next one, or by `finish`; the one before is finished here.
  void add(std::int64_t row, std::int64_t rows, std::int64_t column, const float* sums) {
    finish();
    if (args_.bias != nullptr && (tile_.sums == nullptr || tile_.column != column))
      round_bf16(args_.bias + column, smaller(args_.n - column, kPanel), tile_.bias);
    tile_.row = row;
    tile_.rows = rows;
    tile_.column = column;
    tile_.sums = sums;
    finished_ = 0;
  }
  void finish() { finish_up_to(tile_.rows); }

  // Where the tile's own results will go.
  void expect(std::int64_t row, std::int64_t rows, std::int64_t column) {
    y_row_ = row;
    y_end_ = row + rows;
    y_column_ = column;
  }
  // So much of its depth, in so many steps.
  void expect_panel(const std::uint16_t* panel, std::int64_t depth, std::int64_t steps) {
    panel_ = reinterpret_cast<const unsigned char*>(panel);
    panel_end_ = panel != nullptr ? panel_ + depth * kPanelLine : panel_;
    of_step_ = steps > 0 ? round_up(depth * kPanelLine, steps * kLine) / steps : 0;
  }

  // A step's share.
  void some(std::int64_t step) {
    const unsigned char* const end =
        panel_ + of_step_ < panel_end_ ? panel_ + of_step_ : panel_end_;
    for (; panel_ < end; panel_ += kLine) ask_to_read(panel_);
    const std::int64_t rows = ((step + 1) * share_ >> kShareBits) - (step * share_ >> kShareBits);
    for (const std::int64_t stop = smaller(y_row_ + rows, y_end_); y_row_ < stop; ++y_row_)
      ask_for_row(y_row_);
    finish_up_to(smaller(finished_ + rows, tile_.rows));
  }

 private:
  static constexpr std::int64_t kLine = 64, kPanelLine = kPanel * 2;
  static constexpr int kShareBits = 16;

  void finish_up_to(std::int64_t end) {
    if (finished_ < end) finish_rows(args_, tile_, finished_, end);
    finished_ = end;
  }
  void ask_for_row(std::int64_t row) const {
    constexpr std::int64_t kFloats = kLine / 4;
    if (args_.streams_y) return;
    const std::int64_t place = row * args_.y_stride + y_column_;
    if (args_.narrow_y != nullptr)
      ask_to_write(args_.narrow_y + place);
    else
      for (std::int64_t c = 0; c < kPanel; c += kFloats) ask_to_write(args_.y + place + c);
    if (args_.residual == nullptr || args_.residual == args_.y) return;
    const float* const residual = args_.residual + row * args_.residual_stride + y_column_;
    for (std::int64_t c = 0; c < kPanel; c += kFloats) ask_to_read(residual + c);
  }

  const Bf16Args& args_;
  SumsTile tile_;
  std::int64_t finished_ = 0;
  std::int64_t y_row_ = 0, y_end_ = 0, y_column_ = 0;
  std::int64_t share_;  // of kPairRows, of a step, in units of 2^-kShareBits
  const unsigned char *panel_ = nullptr, *panel_end_ = nullptr;
  std::int64_t of_step_ = 0;
};
