// The same for weights of whole numbers times powers of two, which are bfloat16 numbers as they
// are: three products for each element. For a file that has included split_block.inl.h and
// code_widened.inl.h. Their weights lie by fours, so that few rows go by digits instead
// (code_digits_avx512.h).

struct WidenedPanels {
  static constexpr int kRightParts = 1;
  static constexpr bool kHasLines = false;  // a panel is split when it is wanted
  static constexpr bool kMayBeLarge = false;
  const WidenedArgs* weight;

  void split(std::int64_t column, std::int64_t from, std::int64_t depth, float* floats,
             std::uint16_t* to) const {
    if (weight->step == 1) return split_lines(column, from, depth, floats, to);
    const std::int64_t blocks = (weight->k + weight->width - 1) / weight->width;
    for (std::int64_t c = 0; c < kPanel; c += kWidth) {
      // Columns that are not there are 0.
      const bool is_there = column + c < weight->n;
      const std::int8_t* const numbers = numbers_of_panel(*weight, is_there ? column + c : column);
      for (std::int64_t p = 0; p < depth;) {
        const std::int64_t block = (from + p) / weight->width;
        const std::int64_t end = smaller(depth, (block + 1) * weight->width - from);
        const Vec scale = is_there ? load_scales(*weight, (column + c) * blocks + block * kWidth)
                                   : broadcast(0.0f);
        for (; p < end; p += kFour) {
          const Fours fours = load_fours(*weight, numbers, (from + p) / kFour);
          store_pairs(numbers_of_row(fours, 0) * scale, numbers_of_row(fours, 1) * scale,
                      place(p, c, to));
          store_pairs(numbers_of_row(fours, 2) * scale, numbers_of_row(fours, 3) * scale,
                      place(p + 2, c, to));
        }
      }
    }
  }
  // Of a weight whose blocks are no multiples of four, by way of floats.
  void split_lines(std::int64_t column, std::int64_t from, std::int64_t depth, float* floats,
                   std::uint16_t* to) const {
    widen_panel(*weight, column, from, depth, floats);
    for (std::int64_t p = 0; p < depth; p += 2)
      for (std::int64_t c = 0; c < kPanel; c += kWidth)
        store_pairs(load(floats + p * kPanel + c), load(floats + (p + 1) * kPanel + c),
                    place(p, c, to));
  }
  // Where the line of element p of the depth begins for the columns from c on.
  static std::uint16_t* place(std::int64_t p, std::int64_t c, std::uint16_t* tiles) {
    return tiles + p / kSplitGrain * kRightStep + c / kWidth * kTileNumbers +
           p % kSplitGrain / 2 * kSplitGrain;
  }
  // Numbers that are bfloat16 numbers already.
  static void store_pairs(Vec first, Vec second, std::uint16_t* to) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    const __m512i low = _mm512_srli_epi32(_mm512_castps_si512(first.value), 16);
    const __m512i high = _mm512_and_si512(_mm512_castps_si512(second.value), upper);
    _mm512_storeu_si512(to, _mm512_or_si512(low, high));
  }
  void ask_for_line(std::int64_t column, std::int64_t from, std::int64_t line) const {
    // Half of the lines are of the panel's second vector of columns where each has its own.
    const std::int64_t lines = weight->step == 1 ? 1 : kPanel / kWidth;
    const std::int64_t of = line % lines * kWidth;
    const std::int64_t place = from * (kPanel / lines) + line / lines * kSplitGrain;
    ask_to_read(numbers_of_panel(*weight, column + of) + (weight->has_nibbles ? place / 2 : place));
  }
  void multiply_row(const WidenedArgs& args, std::int64_t row) const {
    WidenedArgs one = args;
    one.rows = 1;
    one.x += row * args.x_stride;
    one.y += row * args.y_stride;
    if (one.residual != nullptr) one.residual += row * args.residual_stride;
    multiply_widened(one);
  }
};

inline void split_multiply_widened(const WidenedArgs& args) {
  multiply_in_parts<SplitRows>(args, WidenedPanels{&args}, nullptr, 0);
}

// A row that has no parts is multiplied by itself in the end.
inline std::int64_t split_widened_scratch_bytes(std::int64_t rows, std::int64_t n) {
  const std::int64_t of_row = (gemm_block_scratch(1, n) + kDepth * kPanel) * 4;
  const std::int64_t of_parts = split_scratch_bytes(rows, n);
  return of_row > of_parts ? of_row : of_parts;
}

inline ProductGrain split_widened_grain() {
  return {kSplitRows, kPanel, 16.0 / 3};
}

extern const SplitKernels split_table;
const SplitKernels split_table = {.name = kName,
                                  .grain = split_grain,
                                  .packed_size = split_packed_size,
                                  .pack = split_pack,
                                  .scratch_bytes = split_scratch_bytes,
                                  .multiply = split_multiply,
                                  .parts_bytes = split_parts_bytes,
                                  .split_rows = split_rows,
                                  .widened_grain = split_widened_grain,
                                  .widened_scratch_bytes = split_widened_scratch_bytes,
                                  .multiply_widened = split_multiply_widened};
