// Whole numbers in AVX2 registers, two products of 16 bits at once. Included inside a namespace
// after vector_avx2.h.

inline void store_numbers(std::int8_t* to, Vec a, std::int32_t shift, std::int64_t count) {
  const __m256i numbers = _mm256_add_epi32(_mm256_cvtps_epi32(a.value), _mm256_set1_epi32(shift));
  const __m128i shorts =
      _mm_packs_epi32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256(numbers, 1));
  std::int8_t bytes[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes), _mm_packs_epi16(shorts, shorts));
  if (count == kWidth)
    __builtin_memcpy(to, bytes, kWidth);
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = bytes[i];
}

struct Nibbles {
  __m256i value;
};
inline Nibbles load_nibbles(const std::int8_t* from) {
  return {_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)))};
}
inline Vec numbers_of_half(Nibbles both, int half) {
  const __m256i bits = half == 0 ? _mm256_and_si256(both.value, _mm256_set1_epi32(15))
                                 : _mm256_srli_epi32(both.value, 4);
  return {_mm256_cvtepi32_ps(_mm256_sub_epi32(bits, _mm256_set1_epi32(8)))};
}

inline Vec load_powers(const std::uint8_t* codes) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(bytes), 23))};
}

struct Sums {
  __m256i value;
};
inline Sums start_sums(std::int32_t start) {
  return {_mm256_set1_epi32(start)};
}
inline Sums load_sums(const float* from) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))};
}
inline void store_sums(float* to, Sums sums) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sums.value);
}
inline Sums subtract_times(Sums sums, std::int32_t factor, const std::int32_t* numbers) {
  const __m256i product = _mm256_mullo_epi32(
      _mm256_set1_epi32(factor), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(numbers)));
  return {_mm256_sub_epi32(sums.value, product)};
}
inline Vec to_floats(Sums sums) {
  return {_mm256_cvtepi32_ps(sums.value)};
}

constexpr std::int64_t kStep = 2;
constexpr std::int32_t kVectorOffset = 0;
using Left = std::int16_t;

struct Columns {
  __m256i value;
};
struct Element {
  __m256i value;
};
inline Columns load_columns(const std::int8_t* from) {
  return {_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))};
}
// The lower or upper four bits of each number's byte.
inline Columns half_of(Columns both, int half) {
  const __m256i bits = half == 0 ? both.value : _mm256_srli_epi16(both.value, 4);
  return {_mm256_and_si256(bits, _mm256_set1_epi16(15))};
}
inline Element broadcast_element(const Left* from) {
  int word;
  __builtin_memcpy(&word, from, sizeof word);
  return {_mm256_set1_epi32(word)};
}
inline Sums add_codes(Sums sums, Element x, Columns weight) {
  return {_mm256_add_epi32(sums.value, _mm256_madd_epi16(x.value, weight.value))};
}
