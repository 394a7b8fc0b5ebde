// Sums of rows into one row: of all of them for the gradient of a bias, of some for that of one row
// of an embedding table.

// out = start + row_at(0) + row_at(1) + ..., in that order, where start is out or 0.
template <typename RowAt>
void add_rows(std::int64_t count, std::int64_t n, float* out, bool accumulate, RowAt row_at) {
  // As many columns at a time as there are sums enough to hide the latency of an addition.
  constexpr int kSums = 8;
  std::int64_t column = 0;
  for (; column + kSums * kWidth <= n; column += kSums * kWidth) {
    Vec sums[kSums];
#pragma GCC unroll 8
    for (int i = 0; i < kSums; ++i)
      sums[i] = accumulate ? load(out + column + i * kWidth) : broadcast(0.0f);
    for (std::int64_t r = 0; r < count; ++r) {
      const float* row = row_at(r) + column;
#pragma GCC unroll 8
      for (int i = 0; i < kSums; ++i) sums[i] = sums[i] + load(row + i * kWidth);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kSums; ++i) store(out + column + i * kWidth, sums[i]);
  }
  over_lanes(n - column, [&](std::int64_t c, auto lanes) {
    Vec sums = accumulate ? load(out + column + c, lanes) : broadcast(0.0f);
    for (std::int64_t r = 0; r < count; ++r) sums = sums + load(row_at(r) + column + c, lanes);
    store(out + column + c, sums, lanes);
  });
}

inline void sum_rows_accumulate(const float* x, std::int64_t rows, std::int64_t n,
                                std::int64_t stride, float* out) {
  add_rows(rows, n, out, true, [&](std::int64_t r) { return x + r * stride; });
}

inline void sum_selected_rows(const float* x, std::int64_t stride, const std::int32_t* indices,
                              std::int64_t count, std::int64_t n, float* out, bool accumulate) {
  add_rows(count, n, out, accumulate,
           [&](std::int64_t r) { return x + std::int64_t{indices[r]} * stride; });
}
