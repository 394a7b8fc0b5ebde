// Four products of 8 bits at once, as AVX512-VNNI has them: those of x are signed and those of a
// weight not negative. Included inside a namespace after code_numbers_avx512.h.

constexpr std::int64_t kStep = 4;
constexpr std::int32_t kVectorOffset = 128;
using Left = std::int8_t;

struct Columns {
  __m512i value;
};
// The lower or upper four bits of each byte.
inline Columns half_of(Columns both, int half) {
  const __m512i bits = half == 0 ? both.value : _mm512_srli_epi16(both.value, 4);
  return {_mm512_and_si512(bits, _mm512_set1_epi8(15))};
}
struct Element {
  __m512i value;
};
inline Columns load_columns(const std::int8_t* from) {
  return {_mm512_loadu_si512(from)};
}
inline Element broadcast_element(const Left* from) {
  int word;
  __builtin_memcpy(&word, from, sizeof word);
  return {_mm512_set1_epi32(word)};
}
inline Sums add_codes(Sums sums, Element x, Columns weight) {
  return {_mm512_dpbusd_epi32(sums.value, weight.value, x.value)};
}
inline std::int32_t sum_numbers(const std::int8_t* from, std::int64_t count) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sums = _mm512_setzero_si512();
  std::int64_t i = 0;
  for (; i + 64 <= count; i += 64)
    sums = _mm512_dpbusd_epi32(sums, ones, _mm512_loadu_si512(from + i));
  if (i < count) {
    const __mmask64 lanes = (std::uint64_t{1} << (count - i)) - 1;
    sums = _mm512_dpbusd_epi32(sums, ones, _mm512_maskz_loadu_epi8(lanes, from + i));
  }
  return _mm512_reduce_add_epi32(sums);
}
