// Weights that lie by fours (code_weight.h) as floats. Included inside a namespace after
// vector_avx512.h.

constexpr std::int64_t kFour = 4;

// What four rows of a panel's columns are: for each column 32 bits with a byte, or half a byte, for
// each row.
struct Fours {
  __m512i value;
  std::int32_t mask, offset;
};
inline Fours load_fours(const WidenedArgs& args, const std::int8_t* panel, std::int64_t four) {
  if (!args.has_nibbles) return {_mm512_loadu_si512(panel + four * kFour * kWidth), 0xff, 128};
  const __m512i both = _mm512_loadu_si512(panel + four / 2 * kFour * kWidth);
  return {four % 2 == 0 ? both : _mm512_srli_epi32(both, 4), 0xf, 8};
}
// The numbers of row `i` of the four.
inline Vec numbers_of_row(const Fours& fours, int i) {
  const __m512i bytes = _mm512_srlv_epi32(fours.value, _mm512_set1_epi32(8 * i));
  const __m512i codes = _mm512_and_si512(bytes, _mm512_set1_epi32(fours.mask));
  return {_mm512_cvtepi32_ps(_mm512_sub_epi32(codes, _mm512_set1_epi32(fours.offset)))};
}

// The numbers of a panel's columns in row `p`.
inline Vec numbers_by_fours(const WidenedArgs& args, const std::int8_t* panel, std::int64_t p) {
  return numbers_of_row(load_fours(args, panel, p / kFour), static_cast<int>(p % kFour));
}
