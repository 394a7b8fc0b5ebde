// A block of a product of bfloat16 numbers, from its rows and panels to y, for a file that has
// included bf16_finish.inl.h. It goes through the pieces of its depth, in each through its panels,
// and with each through its rows, a tile of them at a time.

struct Bf16Scratch {
  std::int64_t rows;  // those of whole tiles
  std::int64_t sums, panel, size;
  Bf16Scratch(std::int64_t block_rows, std::int64_t n)
      : rows(round_up(block_rows, kPairRows)),
        sums(round_up(rows * kLeftStride * 2, 64)),
        panel(sums + rows * round_up(n, kPanel) * 4),
        size(panel + kPairDepth * kPanel * 2) {}
};
inline std::int64_t bf16_scratch_bytes(std::int64_t rows, std::int64_t n) {
  return Bf16Scratch(rows, n).size;
}

// Where the panel lies that is multiplied after that of a column and a piece; null where that is
// not known.
inline const std::uint16_t* next_panel(const Bf16Args& args, std::int64_t column,
                                       std::int64_t from) {
  if (column + kPanel < args.n)
    return args.packed + bf16_packed_size(column + kPanel, args.k) + from * kPanel;
  if (from + kPairDepth < args.k) return args.packed + (from + kPairDepth) * kPanel;
  return args.next_packed;
}
// Steps of a piece, and of the last one of a depth.
inline std::int64_t num_steps(std::int64_t depth) {
  return (depth + kDepthGrain - 1) / kDepthGrain;
}
inline std::int64_t num_last_steps(std::int64_t k) {
  return k > kPairDepth ? num_steps((k - 1) % kPairDepth + 1) : num_steps(k);
}

inline void bf16_multiply(const Bf16Args& args) {
  const Bf16Scratch parts(args.rows, args.n);
  auto* const memory = static_cast<unsigned char*>(args.scratch);
  auto* const left = reinterpret_cast<std::uint16_t*>(memory);
  auto* const all_sums = reinterpret_cast<float*>(memory + parts.sums);
  auto* const panel = reinterpret_cast<std::uint32_t*>(memory + parts.panel);
  const PairTiles tiles(args.rows);
  const bool is_whole = args.k <= kPairDepth;
  // Rows that lie as tiles read them are left where they are.
  const bool in_place = args.narrow_x != nullptr && args.x_step == 1 && args.k % kDepthGrain == 0;
  const auto is_in_place = [&](std::int64_t t) {
    return in_place && reads_rows(tiles.begin(t + 1) - tiles.begin(t));
  };
  std::int64_t copied = 0;  // the first row that is not
  for (std::int64_t t = 0; t < tiles.count && is_in_place(t); ++t) copied = tiles.begin(t + 1);
  for (std::int64_t r = args.rows; r < parts.rows; ++r)
    clear_row(left + r * kLeftStride, 0, kPairDepth);
  std::int64_t from = 0;
  Bf16Beside beside(args, num_last_steps(args.k));
  do {  // without depth, once: the sums are 0 then
    const std::int64_t depth = smaller(args.k - from, kPairDepth);
    const bool is_last = from + depth >= args.k;
    if (args.narrow_x != nullptr)
      round_left(args, args.narrow_x, copied, from, depth, left);
    else
      round_left(args, args.x, 0, from, depth, left);
    const TileSession session;
    for (std::int64_t column = 0; column < args.n; column += kPanel) {
      const auto pack = [&](const auto* b) {
        pack_rows_panel(b + column + from * args.b_stride, smaller(args.n - column, kPanel), depth,
                        args.b_stride, panel);
      };
      if (args.narrow_b != nullptr)
        pack(args.narrow_b);
      else if (args.packed == nullptr)
        pack(args.b);
      const auto* const right = args.packed != nullptr
                                    ? args.packed + bf16_packed_size(column, args.k) + from * kPanel
                                    : reinterpret_cast<const std::uint16_t*>(panel);
      if (args.packed != nullptr)
        beside.expect_panel(next_panel(args, column, from), depth, tiles.count * num_steps(depth));
      for (std::int64_t t = 0; t < tiles.count; ++t) {
        const std::int64_t row = tiles.begin(t), rows = tiles.begin(t + 1) - row;
        // Two tiles of sums are enough where they are finished at once.
        float* const sums = is_whole ? all_sums + t % 2 * kPairRows * kPanel
                                     : all_sums + column * parts.rows + row * kPanel;
        const bool lies = is_in_place(t);
        if (is_last) beside.expect(row, rows, column);
        multiply_pairs<Bf16Beside&>(
            {.depth = round_up(depth, kDepthGrain),
             .left = lies ? args.narrow_x + row * args.x_stride + from : left + row * kLeftStride,
             .left_stride = lies ? args.x_stride : kLeftStride,
             .right = right,
             .sums = sums,
             .accumulate = from > 0},
            rows, beside);
        if (!is_last) continue;
        beside.add(row, rows, column, sums);
        if constexpr (!kWorksBeside) beside.finish();
      }
    }
    from += kPairDepth;
  } while (from < args.k);
  beside.finish();
  if (args.streams_y) end_streams();
}
