// The same for weights of whole numbers times powers of two, which are bfloat16 numbers as they
// are: three products for each element. For a file that has included split_block.inl.h and
// code_widened.inl.h.

struct WidenedPanels {
  static constexpr int kRightParts = 1;
  static constexpr bool kHasLines = false;  // a panel is split when it is wanted
  const WidenedArgs* weight;

  void split(std::int64_t column, std::int64_t from, std::int64_t depth, float* floats,
             std::uint16_t* to) const {
    if (weight->has_nibbles || weight->width % 2 != 0) {
      widen_panel(*weight, column, from, depth, floats);
      for (std::int64_t p = 0; p < depth; p += 2)
        for (std::int64_t c = 0; c < kPanel; c += kWidth)
          store_pairs(load(floats + p * kPanel + c), load(floats + (p + 1) * kPanel + c),
                      place(p, c, to));
      return;
    }
    const std::int64_t blocks = (weight->k + weight->width - 1) / weight->width;
    for (std::int64_t p = 0; p < depth;) {
      const std::int64_t block = (from + p) / weight->width;
      const std::int64_t end = smaller(depth, (block + 1) * weight->width - from);
      const Vec scales[2] = {load_scales(*weight, column * blocks + block * kPanel),
                             load_scales(*weight, column * blocks + block * kPanel + kWidth)};
      for (; p < end; p += 2)
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          const std::int8_t* const numbers =
              numbers_of_panel(*weight, column) + (from + p) * kPanel + half * kWidth;
          store_pairs(load_numbers(numbers) * scales[half],
                      load_numbers(numbers + kPanel) * scales[half], place(p, half * kWidth, to));
        }
    }
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
    const std::int64_t place = from * kPanel + line * kSplitGrain;
    __builtin_prefetch(
        numbers_of_panel(*weight, column) + (weight->has_nibbles ? place / 2 : place), 0, 2);
  }
  void multiply_row(const WidenedArgs& args, std::int64_t row) const {
    WidenedArgs one = args;
    one.rows = 1;
    one.x += row * args.x_stride;
    one.y += row * args.y_stride;
    if (one.residual != nullptr) one.residual += row * args.residual_stride;
    multiply_few(one);
  }
};

inline void split_multiply_widened(const WidenedArgs& args) {
  multiply_in_parts(args, WidenedPanels{&args}, nullptr, 0);
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
                                  .multiply_widened = split_multiply_widened};
