// Eight floats or 32-bit whole numbers in an AVX2 register. Included inside a namespace by
// kernels_avx2.cpp, after <immintrin.h>; vector_avx512.h says what each function promises.

constexpr std::int64_t kWidth = 8;
using Floats __attribute__((vector_size(32))) = float;
using Ints __attribute__((vector_size(32))) = std::int32_t;
using Words __attribute__((vector_size(32))) = std::uint32_t;

inline Floats load(const float* from) {
  return _mm256_loadu_ps(from);
}
inline void store(float* to, Floats a) {
  _mm256_storeu_ps(to, a);
}
inline void stream(float* to, Floats a) {
  _mm256_stream_ps(to, a);
}
inline Floats widened(const std::int8_t* from) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}
inline __m256i upper_halves(Floats a, Floats b) {
  const __m256i mixed = _mm256_packus_epi32(_mm256_srli_epi32(_mm256_castps_si256(a), 16),
                                            _mm256_srli_epi32(_mm256_castps_si256(b), 16));
  return _mm256_permute4x64_epi64(mixed, 0b11011000);
}
inline void store_halves(std::uint16_t* to, Floats a, Floats b) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), upper_halves(a, b));
}
inline void stream_halves(std::uint16_t* to, Floats a, Floats b) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), upper_halves(a, b));
}
inline void end_streaming() {
  _mm_sfence();
}
inline __m256i first_lanes(std::int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline Floats load(const float* from, std::int64_t count) {
  return _mm256_maskload_ps(from, first_lanes(count));
}
inline void store(float* to, Floats a, std::int64_t count) {
  _mm256_maskstore_ps(to, first_lanes(count), a);
}
inline Floats broadcast(float a) {
  return _mm256_set1_ps(a);
}
inline Ints broadcast(std::int32_t a) {
  return (Ints)_mm256_set1_epi32(a);
}
inline Floats broadcast_lane(Floats a, int lane) {
  return _mm256_permutevar8x32_ps(a, _mm256_set1_epi32(lane));
}
inline Floats min(Floats a, Floats b) {
  return _mm256_min_ps(a, b);
}
inline Floats max(Floats a, Floats b) {
  return _mm256_max_ps(a, b);
}
inline Ints min(Ints a, Ints b) {
  return (Ints)_mm256_min_epi32((__m256i)a, (__m256i)b);
}
inline Ints max(Ints a, Ints b) {
  return (Ints)_mm256_max_epi32((__m256i)a, (__m256i)b);
}
inline Floats round_even(Floats a) {
  return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline Floats round_down(Floats a) {
  return _mm256_round_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
inline bool any(Ints a) {
  return _mm256_testz_si256((__m256i)a, (__m256i)a) == 0;
}
inline bool any_without(Ints a, Ints mask) {
  return any((a & mask) == broadcast(0));
}
inline Floats unless_zero_or_nan(Floats a, Floats other) {
  return _mm256_blendv_ps(other, a, _mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_EQ_UQ));
}
inline Ints largest_everywhere(Ints a) {
  __m256i m = (__m256i)a;
  m = _mm256_max_epi32(m, _mm256_permute2x128_si256(m, m, 1));
  m = _mm256_max_epi32(m, _mm256_shuffle_epi32(m, _MM_SHUFFLE(1, 0, 3, 2)));
  m = _mm256_max_epi32(m, _mm256_shuffle_epi32(m, _MM_SHUFFLE(2, 3, 0, 1)));
  return (Ints)m;
}
// Blocks of half a vector are none of ours: the smallest that have kernels are of eight.
Ints largest_of_half(Ints a);
Ints largest_of_halves(const Ints (&vectors)[kWidth / 2]);
Floats broadcast_halves(Floats a, int i);
inline Ints largest_of_each(const Ints (&vectors)[kWidth]) {
  const auto pair = [](__m256i a, __m256i b) {
    return _mm256_max_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
  };
  __m256i fours[2];
  for (int i = 0; i < 2; ++i) {
    const Ints* v = vectors + 4 * i;
    const __m256i a = pair((__m256i)v[0], (__m256i)v[1]);
    const __m256i b = pair((__m256i)v[2], (__m256i)v[3]);
    fours[i] = _mm256_max_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
  }
  return (Ints)_mm256_max_epi32(_mm256_permute2x128_si256(fours[0], fours[1], 0x20),
                                _mm256_permute2x128_si256(fours[0], fours[1], 0x31));
}
struct Table {
  __m256 low, high;
};
inline Table load_table(const float* from) {
  return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}
struct SmallTable {
  __m256 all;
};
inline SmallTable load_small_table(const float* from) {
  return {_mm256_loadu_ps(from)};
}
inline Floats look_up(SmallTable table, Ints index) {
  return _mm256_permutevar8x32_ps(table.all, (__m256i)index);
}
inline Floats look_up(Table table, Ints index, Ints is_upper) {
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(table.low, (__m256i)index),
                          _mm256_permutevar8x32_ps(table.high, (__m256i)index), (__m256)is_upper);
}
