// Sixteen floats or 32-bit whole numbers in an AVX-512 register. Included inside a namespace by
// kernels_avx512.cpp, after <immintrin.h>; the other vector_*.h offer the same names. Arithmetic,
// comparisons (all bits of a lane or none) and `mask ? a : b` are the compiler's own.

constexpr std::int64_t kWidth = 16;
using Floats __attribute__((vector_size(64))) = float;
using Ints __attribute__((vector_size(64))) = std::int32_t;
using Words __attribute__((vector_size(64))) = std::uint32_t;

inline Floats load(const float* from) {
  return _mm512_loadu_ps(from);
}
inline void store(float* to, Floats a) {
  _mm512_storeu_ps(to, a);
}
// Past the caches; `to` is aligned to the vector.
inline void stream(float* to, Floats a) {
  _mm512_stream_ps(to, a);
}
// kWidth signed bytes as floats. (g++ 12 takes its own conversion of vectors apart, byte by byte.)
inline Floats widened(const std::int8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}
// The upper halves of two vectors, one behind the other: bfloat16 without rounding.
inline __m512i upper_halves(Floats a, Floats b) {
  alignas(64) static constexpr std::uint16_t kOdd[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                         23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                         45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  return _mm512_permutex2var_epi16(_mm512_castps_si512(a), _mm512_load_si512(kOdd),
                                   _mm512_castps_si512(b));
}
inline void store_halves(std::uint16_t* to, Floats a, Floats b) {
  _mm512_storeu_si512(to, upper_halves(a, b));
}
inline void stream_halves(std::uint16_t* to, Floats a, Floats b) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), upper_halves(a, b));
}
// Makes streamed values visible in order with what is stored after.
inline void end_streaming() {
  _mm_sfence();
}
inline __mmask16 first_lanes(std::int64_t count) {
  return static_cast<__mmask16>((1u << count) - 1);
}
// Lanes 0 .. count-1; the others read nothing and are 0.
inline Floats load(const float* from, std::int64_t count) {
  return _mm512_maskz_loadu_ps(first_lanes(count), from);
}
inline void store(float* to, Floats a, std::int64_t count) {
  _mm512_mask_storeu_ps(to, first_lanes(count), a);
}
inline Floats broadcast(float a) {
  return _mm512_set1_ps(a);
}
inline Ints broadcast(std::int32_t a) {
  return (Ints)_mm512_set1_epi32(a);
}
// One lane in every lane.
inline Floats broadcast_lane(Floats a, int lane) {
  return _mm512_permutexvar_ps(_mm512_set1_epi32(lane), a);
}
// The second argument when either is NaN.
inline Floats min(Floats a, Floats b) {
  return _mm512_min_ps(a, b);
}
inline Floats max(Floats a, Floats b) {
  return _mm512_max_ps(a, b);
}
inline Ints min(Ints a, Ints b) {
  return (Ints)_mm512_min_epi32((__m512i)a, (__m512i)b);
}
inline Ints max(Ints a, Ints b) {
  return (Ints)_mm512_max_epi32((__m512i)a, (__m512i)b);
}
// To whole numbers, ties to even.
inline Floats round_even(Floats a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// To whole numbers, downwards.
inline Floats round_down(Floats a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
// Whether a lane has a bit.
inline bool any(Ints a) {
  return _mm512_test_epi32_mask((__m512i)a, (__m512i)a) != 0;
}
// Whether a lane has none of the mask's bits.
inline bool any_without(Ints a, Ints mask) {
  return _mm512_testn_epi32_mask((__m512i)a, (__m512i)mask) != 0;
}
// What is 0 or NaN stays, the other lanes become `other`.
inline Floats unless_zero_or_nan(Floats a, Floats other) {
  constexpr int kTakeNansAndZeros = 0x111;  // four bits for each class of numbers
  return _mm512_fixupimm_ps(other, a, _mm512_set1_epi32(kTakeNansAndZeros), 0);
}
// The largest lane in every lane.
inline Ints largest_everywhere(Ints a) {
  __m512i m = (__m512i)a;
  m = _mm512_max_epi32(m, _mm512_shuffle_i32x4(m, m, _MM_SHUFFLE(1, 0, 3, 2)));
  m = _mm512_max_epi32(m, _mm512_shuffle_i32x4(m, m, _MM_SHUFFLE(2, 3, 0, 1)));
  m = _mm512_max_epi32(m, _mm512_shuffle_epi32(m, _MM_PERM_BADC));
  m = _mm512_max_epi32(m, _mm512_shuffle_epi32(m, _MM_PERM_CDAB));
  return (Ints)m;
}
// The largest lane of each half in all of it.
inline Ints largest_of_half(Ints a) {
  __m512i m = (__m512i)a;
  m = _mm512_max_epi32(m, _mm512_shuffle_i32x4(m, m, _MM_SHUFFLE(2, 3, 0, 1)));
  m = _mm512_max_epi32(m, _mm512_shuffle_epi32(m, _MM_PERM_BADC));
  m = _mm512_max_epi32(m, _mm512_shuffle_epi32(m, _MM_PERM_CDAB));
  return (Ints)m;
}
// The largest lane of vector i in lane i: pairs of vectors are interleaved and halved.
inline Ints largest_of_each(const Ints (&vectors)[kWidth]) {
  const auto pair = [](__m512i a, __m512i b) {
    return _mm512_max_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  };
  const auto four = [](__m512i a, __m512i b) {
    return _mm512_max_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  };
  const auto quarters = [](__m512i a, __m512i b) {
    return _mm512_max_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
  };
  __m512i fours[4];
  for (int i = 0; i < 4; ++i) {
    const Ints* v = vectors + 4 * i;
    fours[i] = four(pair((__m512i)v[0], (__m512i)v[1]), pair((__m512i)v[2], (__m512i)v[3]));
  }
  return (Ints)quarters(quarters(fours[0], fours[1]), quarters(fours[2], fours[3]));
}
// The largest lane of each half of vector i in lanes 2i and 2i + 1.
inline Ints largest_of_halves(const Ints (&vectors)[kWidth / 2]) {
  const auto halved = [](const Ints* v, Ints low, Ints high) {
    return max((Ints)_mm512_permutex2var_epi32((__m512i)v[0], (__m512i)low, (__m512i)v[1]),
               (Ints)_mm512_permutex2var_epi32((__m512i)v[0], (__m512i)high, (__m512i)v[1]));
  };
  Ints fours[4], twos[2];
  for (int i = 0; i < 4; ++i)
    fours[i] =
        halved(vectors + 2 * i, Ints{0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27},
               Ints{4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31});
  for (int i = 0; i < 2; ++i)
    twos[i] = halved(fours + 2 * i, Ints{0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29},
                     Ints{2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31});
  return halved(twos, Ints{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30},
                Ints{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31});
}
// Lane 2i in the first half, lane 2i + 1 in the second.
inline Floats broadcast_halves(Floats a, int i) {
  const Ints halves = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  return _mm512_permutexvar_ps((__m512i)(halves + broadcast(2 * i)), a);
}
// The sixteen floats of a table, and the one each lane asks for.
struct Table {
  __m512 all;
};
inline Table load_table(const float* from) {
  return {_mm512_loadu_ps(from)};
}
// The same with eight.
struct SmallTable {
  __m512 all;
};
inline SmallTable load_small_table(const float* from) {
  return {_mm512_maskz_loadu_ps(0xff, from)};
}
inline Floats look_up(SmallTable table, Ints index) {
  return _mm512_permutexvar_ps((__m512i)index, table.all);
}
// With the index's highest bit as a mask too.
inline Floats look_up(Table table, Ints index, Ints) {
  return _mm512_permutexvar_ps((__m512i)index, table.all);
}
