// Two products of 16 bits at once, for processors without those of 8 bits. Included inside a
// namespace after code_numbers_avx512.h.

constexpr std::int64_t kStep = 2;
constexpr std::int32_t kVectorOffset = 0;
using Left = std::int16_t;

struct Columns {
  __m512i value;
};
struct Element {
  __m512i value;
};
inline Columns load_columns(const std::int8_t* from) {
  return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)))};
}
// The lower or upper four bits of each number's byte.
inline Columns half_of(Columns both, int half) {
  const __m512i bits = half == 0 ? both.value : _mm512_srli_epi16(both.value, 4);
  return {_mm512_and_si512(bits, _mm512_set1_epi16(15))};
}
inline Element broadcast_element(const Left* from) {
  int word;
  __builtin_memcpy(&word, from, sizeof word);
  return {_mm512_set1_epi32(word)};
}
inline Sums add_codes(Sums sums, Element x, Columns weight) {
  return {_mm512_add_epi32(sums.value, _mm512_madd_epi16(x.value, weight.value))};
}
