// Whole numbers in AVX-512 registers. Included inside a namespace after vector_avx512.h.

// to[0 .. count) = a rounded to nearest even, plus shift; count from 1 to kWidth.
inline void store_numbers(std::int8_t* to, Vec a, std::int32_t shift, std::int64_t count) {
  const __m512i numbers = _mm512_add_epi32(_mm512_cvtps_epi32(a.value), _mm512_set1_epi32(shift));
  const __m128i bytes = _mm512_cvtepi32_epi8(numbers);
  if (count == kWidth)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  else
    _mm_mask_storeu_epi8(to, first_lanes(count), bytes);
}

// Two numbers from -8 to 7 a byte, each plus 8.
struct Nibbles {
  __m512i value;
};
inline Nibbles load_nibbles(const std::int8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return {_mm512_cvtepu8_epi32(bytes)};
}
// The numbers of the lower halves, or of the upper ones. A permutation sees four bits alone.
inline Vec numbers_of_half(Nibbles both, int half) {
  const __m512 numbers = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
  return {
      _mm512_permutexvar_ps(half == 0 ? both.value : _mm512_srli_epi32(both.value, 4), numbers)};
}

// 2^(code - 127) of codes from 1 to 254.
inline Vec load_powers(const std::uint8_t* codes) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(bytes), 23))};
}

struct Sums {
  __m512i value;
};
inline Sums start_sums(std::int32_t start) {
  return {_mm512_set1_epi32(start)};
}
inline Sums load_sums(const float* from) {
  return {_mm512_loadu_si512(from)};
}
inline Sums load_sums(const std::int32_t* from) {
  return {_mm512_loadu_si512(from)};
}
inline Sums add_to_sums(Sums sums, std::int32_t start) {
  return {_mm512_add_epi32(sums.value, _mm512_set1_epi32(start))};
}
inline void store_sums(float* to, Sums sums) {
  _mm512_storeu_si512(to, sums.value);
}
// sums - factor * numbers[0 .. kWidth).
inline Sums subtract_times(Sums sums, std::int32_t factor, const std::int32_t* numbers) {
  const __m512i product =
      _mm512_mullo_epi32(_mm512_set1_epi32(factor), _mm512_loadu_si512(numbers));
  return {_mm512_sub_epi32(sums.value, product)};
}
inline Vec to_floats(Sums sums) {
  return {_mm512_cvtepi32_ps(sums.value)};
}
