// Results that nobody reads soon, written past the caches: no line of them is fetched first. For a
// file that has included gemm.inl.h; no_streams.h stands for it elsewhere.

// Writes sums[rows, kPanel] where they are whole cache lines, and says whether they are.
inline bool stream_rows(const float* sums, std::int64_t rows, std::int64_t columns, float* y,
                        std::int64_t y_stride) {
  constexpr std::int64_t kLine = 64;
  if (columns < kPanel || y_stride % kWidth != 0 ||
      reinterpret_cast<std::uintptr_t>(y) % kLine != 0)
    return false;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < kPanel; c += kWidth)
      _mm512_stream_ps(y + r * y_stride + c, load(sums + r * kPanel + c).value);
  return true;
}
// What comes after is seen after them.
inline void end_streams() {
  _mm_sfence();
}
