// Sixteen floats in an AVX-512 register. Included inside a namespace by kernels_avx512.cpp, after
// <immintrin.h>; vector_avx2.h and vector_plain.h offer the same names.

struct Vec {
  __m512 value;
};
using Mask = __mmask16;

constexpr std::int64_t kWidth = 16;
// 28 accumulators, two vectors of B and a broadcast of x: 31 of the 32 registers.
constexpr int kTileRows = 14;
constexpr int kTileVectors = 2;

inline Vec load(const float* from) {
  return {_mm512_loadu_ps(from)};
}
inline void store(float* to, Vec a) {
  _mm512_storeu_ps(to, a.value);
}
inline Vec broadcast(float a) {
  return {_mm512_set1_ps(a)};
}

// Lanes 0 .. count-1, for count from 0 to kWidth and beyond.
inline Mask first_lanes(std::int64_t count) {
  return count >= kWidth ? Mask{0xffff} : static_cast<Mask>((1u << count) - 1);
}
// The lanes of the mask; the others read nothing and are 0.
inline Vec load(const float* from, Mask lanes) {
  return {_mm512_maskz_loadu_ps(lanes, from)};
}
inline void store(float* to, Vec a, Mask lanes) {
  _mm512_mask_storeu_ps(to, lanes, a.value);
}

inline Vec operator+(Vec a, Vec b) {
  return {_mm512_add_ps(a.value, b.value)};
}
inline Vec operator-(Vec a, Vec b) {
  return {_mm512_sub_ps(a.value, b.value)};
}
inline Vec operator*(Vec a, Vec b) {
  return {_mm512_mul_ps(a.value, b.value)};
}
inline Vec operator/(Vec a, Vec b) {
  return {_mm512_div_ps(a.value, b.value)};
}
// a b + c.
inline Vec fma(Vec a, Vec b, Vec c) {
  return {_mm512_fmadd_ps(a.value, b.value, c.value)};
}
// c - a b.
inline Vec fnma(Vec a, Vec b, Vec c) {
  return {_mm512_fnmadd_ps(a.value, b.value, c.value)};
}
// The second argument when either is NaN.
inline Vec min(Vec a, Vec b) {
  return {_mm512_min_ps(a.value, b.value)};
}
inline Vec max(Vec a, Vec b) {
  return {_mm512_max_ps(a.value, b.value)};
}
inline Vec sqrt(Vec a) {
  return {_mm512_sqrt_ps(a.value)};
}
inline float sqrt(float a) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a)));
}
inline Vec abs(Vec a) {
  return {_mm512_abs_ps(a.value)};
}
inline Vec negate(Vec a) {
  return {_mm512_xor_ps(a.value, _mm512_set1_ps(-0.0f))};
}
// The magnitude, which is not negative, with the sign of another number.
inline Vec with_sign_of(Vec magnitude, Vec sign) {
  return {_mm512_or_ps(magnitude.value, _mm512_and_ps(sign.value, _mm512_set1_ps(-0.0f)))};
}

inline Mask less(Vec a, Vec b) {
  return _mm512_cmp_ps_mask(a.value, b.value, _CMP_LT_OQ);
}
inline Mask is_nan(Vec a) {
  return _mm512_cmp_ps_mask(a.value, a.value, _CMP_UNORD_Q);
}
inline bool has_any(Mask mask) {
  return mask != 0;
}
inline Vec select(Mask mask, Vec yes, Vec no) {
  return {_mm512_mask_blend_ps(mask, no.value, yes.value)};
}

// a times 2^n, where the low bits of `n_bits` hold n and both a and the product are normal.
inline Vec add_exponent(Vec a, Vec n_bits) {
  const __m512i shifted = _mm512_slli_epi32(_mm512_castps_si512(n_bits.value), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a.value), shifted))};
}
// a = mantissa 2^exponent with the mantissa in [sqrt(1/2), sqrt(2)), for normal positive a.
inline Vec split_exponent(Vec a, Vec& exponent) {
  const __m512i bits = _mm512_castps_si512(a.value);
  const __m512i n = _mm512_srai_epi32(_mm512_sub_epi32(bits, _mm512_set1_epi32(0x3f3504f3)), 23);
  exponent = {_mm512_cvtepi32_ps(n)};
  return {_mm512_castsi512_ps(_mm512_sub_epi32(bits, _mm512_slli_epi32(n, 23)))};
}

// The bits of the nearest bfloat16 number in the upper halves, ties to even; NaN stays NaN.
inline __m512i near_bf16_bits(Vec a) {
  const __m512i bits = _mm512_castps_si512(a.value);
  const __m512i is_odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i nearest =
      _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), is_odd);
  return _mm512_mask_or_epi32(nearest, is_nan(a), bits, _mm512_set1_epi32(0x400000));
}
inline Vec near_bf16(Vec a) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  return {_mm512_castsi512_ps(_mm512_and_si512(near_bf16_bits(a), upper))};
}
inline void store_bf16(std::uint16_t* to, Vec a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_cvtepi32_epi16(_mm512_srli_epi32(near_bf16_bits(a), 16)));
}
// Two numbers in each lane, those of `a` below those of `b`.
inline void store_bf16_pairs(std::uint32_t* to, Vec a, Vec b) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  const __m512i low = _mm512_srli_epi32(near_bf16_bits(a), 16);
  _mm512_storeu_si512(to, _mm512_or_si512(low, _mm512_and_si512(near_bf16_bits(b), upper)));
}

// Lane 0.
inline float first(Vec a) {
  return _mm512_cvtss_f32(a.value);
}
// Halves are folded onto each other, so the order of the additions is fixed.
inline __m256 upper_half(__m512 a) {
  return _mm512_extractf32x8_ps(a, 1);
}
inline float sum(Vec a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.value), upper_half(a.value));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline float largest(Vec a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.value), upper_half(a.value));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// Lane j of row i becomes lane i of row j: pairs, then fours inside 128-bit lanes, then the lanes.
inline void transpose(Vec (&rows)[kWidth]) {
  __m512 t[16];
  for (int i = 0; i < 16; i += 4) {
    const __m512 low01 = _mm512_unpacklo_ps(rows[i].value, rows[i + 1].value);
    const __m512 high01 = _mm512_unpackhi_ps(rows[i].value, rows[i + 1].value);
    const __m512 low23 = _mm512_unpacklo_ps(rows[i + 2].value, rows[i + 3].value);
    const __m512 high23 = _mm512_unpackhi_ps(rows[i + 2].value, rows[i + 3].value);
    t[i] = _mm512_shuffle_ps(low01, low23, 0x44);
    t[i + 1] = _mm512_shuffle_ps(low01, low23, 0xee);
    t[i + 2] = _mm512_shuffle_ps(high01, high23, 0x44);
    t[i + 3] = _mm512_shuffle_ps(high01, high23, 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    const __m512 even_low = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88);
    const __m512 odd_low = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xdd);
    const __m512 even_high = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88);
    const __m512 odd_high = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xdd);
    rows[i] = {_mm512_shuffle_f32x4(even_low, even_high, 0x88)};
    rows[i + 4] = {_mm512_shuffle_f32x4(odd_low, odd_high, 0x88)};
    rows[i + 8] = {_mm512_shuffle_f32x4(even_low, even_high, 0xdd)};
    rows[i + 12] = {_mm512_shuffle_f32x4(odd_low, odd_high, 0xdd)};
  }
}

// Sixteen 32-bit words, each in the lower half of a 64-bit lane, where the widening multiplication
// looks for it; what is in the upper halves does not matter. Word l is in even or odd as l is.
struct Words {
  __m512i even, odd;
};
inline Words broadcast_word(std::uint32_t a) {
  const __m512i all = _mm512_set1_epi32(static_cast<int>(a));
  return {all, all};
}
// The 64-bit products, which are also their own lower words.
inline Words multiply_wide(Words a, std::uint32_t factor) {
  const __m512i all = _mm512_set1_epi32(static_cast<int>(factor));
  return {_mm512_mul_epu32(a.even, all), _mm512_mul_epu32(a.odd, all)};
}
inline Words upper_words(Words product) {
  // A shuffle instead of a shift: the shifts and the multiplications would wait for one unit.
  return {_mm512_shuffle_epi32(product.even, _MM_PERM_DDBB),
          _mm512_shuffle_epi32(product.odd, _MM_PERM_DDBB)};
}
inline Words exclusive_or(Words a, Words b, std::uint32_t c) {
  const __m512i all = _mm512_set1_epi32(static_cast<int>(c));
  constexpr int kOddParity = 0x96;
  return {_mm512_ternarylogic_epi32(a.even, b.even, all, kOddParity),
          _mm512_ternarylogic_epi32(a.odd, b.odd, all, kOddParity)};
}
// The words first .. first + kWidth - 1, one to a lane, in the order that kept_lanes puts right.
inline Words block_numbers(std::uint32_t first) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i numbers = _mm512_add_epi32(order, _mm512_set1_epi32(static_cast<int>(first)));
  return {numbers, _mm512_srli_epi64(numbers, 32)};
}
// Four words for each block of block_numbers are eight halves, one for each of eight elements, the
// lower half first: `kept` gets those from `threshold` (1 to 65536) on, in the order of elements.
inline void kept_lanes(const Words (&random)[4], std::uint32_t threshold, Mask (&kept)[8]) {
  __m512i words[4];
  for (int w = 0; w < 4; ++w)
    words[w] =
        _mm512_mask_blend_epi32(0xaaaa, random[w].even, _mm512_slli_epi64(random[w].odd, 32));
  const __m512i low01 = _mm512_unpacklo_epi32(words[0], words[1]);
  const __m512i high01 = _mm512_unpackhi_epi32(words[0], words[1]);
  const __m512i low23 = _mm512_unpacklo_epi32(words[2], words[3]);
  const __m512i high23 = _mm512_unpackhi_epi32(words[2], words[3]);
  const __m512i blocks[4] = {
      _mm512_unpacklo_epi64(low01, low23), _mm512_unpackhi_epi64(low01, low23),
      _mm512_unpacklo_epi64(high01, high23), _mm512_unpackhi_epi64(high01, high23)};
  const __m512i last_dropped = _mm512_set1_epi16(static_cast<short>(threshold - 1));
  for (int i = 0; i < 4; ++i) {
    const __mmask32 both = _mm512_cmpgt_epu16_mask(blocks[i], last_dropped);
    kept[2 * i] = static_cast<Mask>(both);
    kept[2 * i + 1] = static_cast<Mask>(both >> 16);
  }
}

// kWidth sums in double.
struct Doubles {
  __m512d low, high;
};
inline Doubles zero_doubles() {
  return {_mm512_setzero_pd(), _mm512_setzero_pd()};
}
inline void store(double* to, Doubles a) {
  _mm512_storeu_pd(to, a.low);
  _mm512_storeu_pd(to + 8, a.high);
}
// sums + a^2; the square of a float is exact in double.
inline Doubles add_squares(Doubles sums, Vec a) {
  const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(a.value));
  const __m512d high = _mm512_cvtps_pd(upper_half(a.value));
  return {_mm512_fmadd_pd(low, low, sums.low), _mm512_fmadd_pd(high, high, sums.high)};
}

// 16-bit integers, and sums of their products in 32 bits that wrap around.
struct Shorts {
  __m512i value;
};
struct ProductSums {
  __m512i value;
};
constexpr std::int64_t kShorts = 32;
inline Shorts load_shorts(const std::int16_t* from) {
  return {_mm512_loadu_si512(from)};
}
inline ProductSums no_products() {
  return {_mm512_setzero_si512()};
}
inline ProductSums add_products(ProductSums sums, Shorts a, Shorts b) {
  return {_mm512_add_epi32(sums.value, _mm512_madd_epi16(a.value, b.value))};
}
inline std::int32_t total(ProductSums sums) {
  return _mm512_reduce_add_epi32(sums.value);
}

// Whole numbers of 8 bits, and bfloat16 numbers, as floats.
inline Vec load_numbers(const std::int8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}

inline Vec load_bf16(const std::uint16_t* from) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))};
}
