// The operands of products of bfloat16 numbers, for a file that has included its vectors,
// gemm.inl.h and one way to multiply pairs: `PairTiles`, `TileSession`, `reads_rows` and
// `multiply_pairs`.
//
// Neighbours in k lie next to each other, because the instructions multiply pairs: a panel of B has
// for each two rows of B a line in which every column has its two numbers. Rows of x that are not
// read where they lie are rounded into scratch once for all columns of the block, a piece of the
// depth at a time.

inline std::uint32_t bits_of(float a) {
  return __builtin_bit_cast(std::uint32_t, a);
}
// The upper half of the nearest number whose lower half is 0; NaN stays NaN.
inline std::uint32_t bf16_bits(float a) {
  const std::uint32_t bits = bits_of(a);
  const std::uint32_t nearest = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : nearest;
}

inline void round_bf16(const float* x, std::int64_t count, float* y) {
  over_lanes(count, [&](std::int64_t i, auto lanes) {
    store(y + i, near_bf16(load(x + i, lanes)), lanes);
  });
}
inline void round_row(const float* from, std::int64_t count, std::uint16_t* to) {
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) store_bf16(to + i, load(from + i));
  for (; i < count; ++i) to[i] = static_cast<std::uint16_t>(bf16_bits(from[i]));
}
// What is rounded already.
inline void round_row(const std::uint16_t* from, std::int64_t count, std::uint16_t* to) {
  __builtin_memcpy(to, from, static_cast<std::size_t>(count) * sizeof *from);
}
// The first `count` lanes, all of them where there are more.
inline void store_bf16(std::uint16_t* to, Vec a, std::int64_t count) {
  if (count >= kWidth) return store_bf16(to, a);
  alignas(64) float lanes[kWidth];
  store(lanes, a);
  round_row(lanes, count, to);
}
inline void clear_row(std::uint16_t* row, std::int64_t from, std::int64_t to) {
  for (std::int64_t i = from; i < to; ++i) row[i] = 0;
}

inline std::int64_t bf16_packed_size(std::int64_t n, std::int64_t k) {
  return round_up(n, kPanel) * round_up(k, kDepthGrain);
}

// Two rows of B, `columns` wide, as one line of pairs.
inline void pack_pair(const float* first, const float* second, std::int64_t columns,
                      std::uint32_t* to) {
  std::int64_t c = 0;
  for (; c + kWidth <= columns; c += kWidth)
    store_bf16_pairs(to + c, load(first + c), load(second + c));
  for (; c < columns; ++c) to[c] = bf16_bits(first[c]) | bf16_bits(second[c]) << 16;
  for (; c < kPanel; ++c) to[c] = 0;
}

inline void pack_pair(const std::uint16_t* first, const std::uint16_t* second, std::int64_t columns,
                      std::uint32_t* to) {
  const auto pair = [&](std::int64_t c) { return first[c] | std::uint32_t{second[c]} << 16; };
  if (columns == kPanel) {
    for (std::int64_t c = 0; c < kPanel; ++c) to[c] = pair(c);
    return;
  }
  for (std::int64_t c = 0; c < kPanel; ++c) to[c] = c < columns ? pair(c) : 0;
}

// Rows of B are consecutive: a panel of `columns` columns from `depth` rows. Numbers are floats to
// be rounded, or bfloat16 numbers.
template <typename Number>
void pack_rows_panel(const Number* b, std::int64_t columns, std::int64_t depth, std::int64_t stride,
                     std::uint32_t* to) {
  alignas(64) const Number nothing[kPanel] = {};
  for (std::int64_t p = 0; p < round_up(depth, kDepthGrain); p += 2) {
    const Number* const first = p < depth ? b + p * stride : nothing;
    const Number* const second = p + 1 < depth ? b + (p + 1) * stride : nothing;
    pack_pair(first, second, columns, to + p / 2 * kPanel);
  }
}

// Columns of B are consecutive: their pairs are words, and blocks of words are transposed.
template <typename Number>
void pack_columns_panel(const Number* b, std::int64_t columns, std::int64_t depth,
                        std::int64_t stride, std::uint32_t* to) {
  const std::int64_t padded = round_up(depth, kDepthGrain);
  for (std::int64_t p = 0; p < padded; p += 2 * kWidth) {
    const std::int64_t count = smaller(depth - p, 2 * kWidth);
    for (std::int64_t j = 0; j < kPanel; j += kWidth) {
      alignas(64) std::uint16_t words[kWidth][2 * kWidth];
      Vec block[kWidth];
      for (std::int64_t c = 0; c < kWidth; ++c) {
        const std::int64_t filled = j + c < columns && count > 0 ? count : 0;
        round_row(b + (j + c) * stride + p, filled, words[c]);
        clear_row(words[c], filled, 2 * kWidth);
        block[c] = load(reinterpret_cast<const float*>(words[c]));
      }
      transpose(block);
      for (std::int64_t i = 0; i < kWidth; ++i)
        store(reinterpret_cast<float*>(to + (p / 2 + i) * kPanel + j), block[i]);
    }
  }
}

template <typename Number>
void bf16_pack(const Number* b, std::int64_t n, std::int64_t k, std::int64_t stride_n,
               std::int64_t stride_k, std::uint16_t* packed) {
  for (std::int64_t column = 0; column < n; column += kPanel) {
    const std::int64_t columns = smaller(n - column, kPanel);
    auto* const to = reinterpret_cast<std::uint32_t*>(packed + bf16_packed_size(column, k));
    if (stride_n == 1)
      pack_rows_panel(b + column, columns, k, stride_k, to);
    else
      pack_columns_panel(b + column * stride_n, columns, k, stride_n, to);
  }
}

inline Vec load_row(const float* from, std::int64_t count) {
  return load(from, first_lanes(count));
}
inline Vec load_row(const std::uint16_t* from, std::int64_t count) {
  if (count >= kWidth) return load_bf16(from);
  std::uint16_t row[kWidth] = {};
  for (std::int64_t i = 0; i < count; ++i) row[i] = from[i];
  return load_bf16(row);
}

// A piece of x as rows of bfloat16 from row `first` on, with zeros up to a whole number of steps.
template <typename Number>
void round_left(const Bf16Args& args, const Number* x, std::int64_t first, std::int64_t from,
                std::int64_t depth, std::uint16_t* left) {
  const std::int64_t padded = round_up(depth, kDepthGrain);
  if (args.x_step == 1) {
    for (std::int64_t r = first; r < args.rows; ++r) {
      round_row(x + r * args.x_stride + from, depth, left + r * kLeftStride);
      clear_row(left + r * kLeftStride, depth, padded);
    }
    return;
  }
  for (std::int64_t r = 0; r < args.rows; r += kWidth) {
    const std::int64_t rows = smaller(args.rows - r, kWidth);
    for (std::int64_t p = 0; p < depth; p += kWidth) {
      const std::int64_t count = smaller(depth - p, kWidth);
      Vec block[kWidth];
      for (std::int64_t i = 0; i < kWidth; ++i)
        block[i] =
            i < count ? load_row(x + r + (from + p + i) * args.x_step, rows) : broadcast(0.0f);
      transpose(block);
      for (std::int64_t i = 0; i < rows; ++i) {
        alignas(64) float row[kWidth];
        store(row, block[i]);
        round_row(row, count, left + (r + i) * kLeftStride + p);
      }
    }
    for (std::int64_t i = 0; i < rows; ++i) clear_row(left + (r + i) * kLeftStride, depth, padded);
  }
}

inline ProductGrain bf16_grain() {
  return {kPairRows, kPanel, kPairSpeed};
}
