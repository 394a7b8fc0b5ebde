// Eight floats in an AVX register. Included inside a namespace by kernels_avx2.cpp, after
// <immintrin.h>; vector_avx512.h says what each function promises.

struct Vec {
  __m256 value;
};
// All bits of a lane are set or none.
struct Mask {
  __m256i lanes;
};

constexpr std::int64_t kWidth = 8;
// 12 accumulators, two vectors of B and a broadcast of x: 15 of the 16 registers.
constexpr int kTileRows = 6;
constexpr int kTileVectors = 2;

inline Vec load(const float* from) {
  return {_mm256_loadu_ps(from)};
}
inline void store(float* to, Vec a) {
  _mm256_storeu_ps(to, a.value);
}
inline Vec broadcast(float a) {
  return {_mm256_set1_ps(a)};
}

inline Mask first_lanes(std::int64_t count) {
  const int bounded = count >= kWidth ? static_cast<int>(kWidth) : static_cast<int>(count);
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return {_mm256_cmpgt_epi32(_mm256_set1_epi32(bounded), lane)};
}
inline Vec load(const float* from, Mask mask) {
  return {_mm256_maskload_ps(from, mask.lanes)};
}
inline void store(float* to, Vec a, Mask mask) {
  _mm256_maskstore_ps(to, mask.lanes, a.value);
}

inline Vec operator+(Vec a, Vec b) {
  return {_mm256_add_ps(a.value, b.value)};
}
inline Vec operator-(Vec a, Vec b) {
  return {_mm256_sub_ps(a.value, b.value)};
}
inline Vec operator*(Vec a, Vec b) {
  return {_mm256_mul_ps(a.value, b.value)};
}
inline Vec operator/(Vec a, Vec b) {
  return {_mm256_div_ps(a.value, b.value)};
}
inline Vec fma(Vec a, Vec b, Vec c) {
  return {_mm256_fmadd_ps(a.value, b.value, c.value)};
}
inline Vec fnma(Vec a, Vec b, Vec c) {
  return {_mm256_fnmadd_ps(a.value, b.value, c.value)};
}
inline Vec min(Vec a, Vec b) {
  return {_mm256_min_ps(a.value, b.value)};
}
inline Vec max(Vec a, Vec b) {
  return {_mm256_max_ps(a.value, b.value)};
}
inline Vec sqrt(Vec a) {
  return {_mm256_sqrt_ps(a.value)};
}
inline float sqrt(float a) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a)));
}
inline Vec abs(Vec a) {
  return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.value)};
}
inline Vec negate(Vec a) {
  return {_mm256_xor_ps(a.value, _mm256_set1_ps(-0.0f))};
}
inline Vec with_sign_of(Vec magnitude, Vec sign) {
  return {_mm256_or_ps(magnitude.value, _mm256_and_ps(sign.value, _mm256_set1_ps(-0.0f)))};
}

inline Mask less(Vec a, Vec b) {
  return {_mm256_castps_si256(_mm256_cmp_ps(a.value, b.value, _CMP_LT_OQ))};
}
inline Mask is_nan(Vec a) {
  return {_mm256_castps_si256(_mm256_cmp_ps(a.value, a.value, _CMP_UNORD_Q))};
}
inline bool has_any(Mask mask) {
  return _mm256_movemask_ps(_mm256_castsi256_ps(mask.lanes)) != 0;
}
inline Vec select(Mask mask, Vec yes, Vec no) {
  return {_mm256_blendv_ps(no.value, yes.value, _mm256_castsi256_ps(mask.lanes))};
}

inline Vec add_exponent(Vec a, Vec n_bits) {
  const __m256i shifted = _mm256_slli_epi32(_mm256_castps_si256(n_bits.value), 23);
  return {_mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a.value), shifted))};
}
inline Vec split_exponent(Vec a, Vec& exponent) {
  const __m256i bits = _mm256_castps_si256(a.value);
  const __m256i n = _mm256_srai_epi32(_mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f3504f3)), 23);
  exponent = {_mm256_cvtepi32_ps(n)};
  return {_mm256_castsi256_ps(_mm256_sub_epi32(bits, _mm256_slli_epi32(n, 23)))};
}

inline __m256i near_bf16_bits(Vec a) {
  const __m256i bits = _mm256_castps_si256(a.value);
  const __m256i is_odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i nearest =
      _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), is_odd);
  return _mm256_blendv_epi8(nearest, _mm256_or_si256(bits, _mm256_set1_epi32(0x400000)),
                            is_nan(a).lanes);
}
inline Vec near_bf16(Vec a) {
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  return {_mm256_castsi256_ps(_mm256_and_si256(near_bf16_bits(a), upper))};
}
inline void store_bf16(std::uint16_t* to, Vec a) {
  const __m256i words = _mm256_srli_epi32(near_bf16_bits(a), 16);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(to),
      _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}
inline void store_bf16_pairs(std::uint32_t* to, Vec a, Vec b) {
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  const __m256i low = _mm256_srli_epi32(near_bf16_bits(a), 16);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_or_si256(low, _mm256_and_si256(near_bf16_bits(b), upper)));
}

inline float first(Vec a) {
  return _mm256_cvtss_f32(a.value);
}
inline float sum(Vec a) {
  const __m128 four =
      _mm_add_ps(_mm256_castps256_ps128(a.value), _mm256_extractf128_ps(a.value, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline float largest(Vec a) {
  const __m128 four =
      _mm_max_ps(_mm256_castps256_ps128(a.value), _mm256_extractf128_ps(a.value, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

inline void transpose(Vec (&rows)[kWidth]) {
  __m256 t[8];
  for (int i = 0; i < 8; i += 4) {
    const __m256 low01 = _mm256_unpacklo_ps(rows[i].value, rows[i + 1].value);
    const __m256 high01 = _mm256_unpackhi_ps(rows[i].value, rows[i + 1].value);
    const __m256 low23 = _mm256_unpacklo_ps(rows[i + 2].value, rows[i + 3].value);
    const __m256 high23 = _mm256_unpackhi_ps(rows[i + 2].value, rows[i + 3].value);
    t[i] = _mm256_shuffle_ps(low01, low23, 0x44);
    t[i + 1] = _mm256_shuffle_ps(low01, low23, 0xee);
    t[i + 2] = _mm256_shuffle_ps(high01, high23, 0x44);
    t[i + 3] = _mm256_shuffle_ps(high01, high23, 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = {_mm256_permute2f128_ps(t[i], t[i + 4], 0x20)};
    rows[i + 4] = {_mm256_permute2f128_ps(t[i], t[i + 4], 0x31)};
  }
}

struct Words {
  __m256i even, odd;
};
inline Words broadcast_word(std::uint32_t a) {
  const __m256i all = _mm256_set1_epi32(static_cast<int>(a));
  return {all, all};
}
inline Words multiply_wide(Words a, std::uint32_t factor) {
  const __m256i all = _mm256_set1_epi32(static_cast<int>(factor));
  return {_mm256_mul_epu32(a.even, all), _mm256_mul_epu32(a.odd, all)};
}
inline Words upper_words(Words product) {
  return {_mm256_shuffle_epi32(product.even, 0xf5), _mm256_shuffle_epi32(product.odd, 0xf5)};
}
inline Words exclusive_or(Words a, Words b, std::uint32_t c) {
  const __m256i all = _mm256_set1_epi32(static_cast<int>(c));
  return {_mm256_xor_si256(_mm256_xor_si256(a.even, b.even), all),
          _mm256_xor_si256(_mm256_xor_si256(a.odd, b.odd), all)};
}
inline Words block_numbers(std::uint32_t first) {
  const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  const __m256i numbers = _mm256_add_epi32(order, _mm256_set1_epi32(static_cast<int>(first)));
  return {numbers, _mm256_srli_epi64(numbers, 32)};
}
inline void kept_lanes(const Words (&random)[4], std::uint32_t threshold, Mask (&kept)[8]) {
  __m256i words[4];
  for (int w = 0; w < 4; ++w)
    words[w] = _mm256_blend_epi32(random[w].even, _mm256_slli_epi64(random[w].odd, 32), 0xaa);
  const __m256i low01 = _mm256_unpacklo_epi32(words[0], words[1]);
  const __m256i high01 = _mm256_unpackhi_epi32(words[0], words[1]);
  const __m256i low23 = _mm256_unpacklo_epi32(words[2], words[3]);
  const __m256i high23 = _mm256_unpackhi_epi32(words[2], words[3]);
  const __m256i blocks[4] = {
      _mm256_unpacklo_epi64(low01, low23), _mm256_unpackhi_epi64(low01, low23),
      _mm256_unpacklo_epi64(high01, high23), _mm256_unpackhi_epi64(high01, high23)};
  const __m256i last_dropped = _mm256_set1_epi16(static_cast<short>(threshold - 1));
  const __m256i all = _mm256_set1_epi32(-1);
  for (int i = 0; i < 4; ++i) {
    // There is no unsigned comparison, but a minimum that shows which of the two it is.
    const __m256i dropped =
        _mm256_cmpeq_epi16(_mm256_min_epu16(blocks[i], last_dropped), blocks[i]);
    const __m256i both = _mm256_xor_si256(dropped, all);
    kept[2 * i] = {_mm256_cvtepi16_epi32(_mm256_castsi256_si128(both))};
    kept[2 * i + 1] = {_mm256_cvtepi16_epi32(_mm256_extracti128_si256(both, 1))};
  }
}

struct Doubles {
  __m256d low, high;
};
inline Doubles zero_doubles() {
  return {_mm256_setzero_pd(), _mm256_setzero_pd()};
}
inline void store(double* to, Doubles a) {
  _mm256_storeu_pd(to, a.low);
  _mm256_storeu_pd(to + 4, a.high);
}
inline Doubles add_squares(Doubles sums, Vec a) {
  const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(a.value));
  const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(a.value, 1));
  return {_mm256_fmadd_pd(low, low, sums.low), _mm256_fmadd_pd(high, high, sums.high)};
}

struct Shorts {
  __m256i value;
};
struct ProductSums {
  __m256i value;
};
constexpr std::int64_t kShorts = 16;
inline Shorts load_shorts(const std::int16_t* from) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))};
}
inline ProductSums no_products() {
  return {_mm256_setzero_si256()};
}
inline ProductSums add_products(ProductSums sums, Shorts a, Shorts b) {
  return {_mm256_add_epi32(sums.value, _mm256_madd_epi16(a.value, b.value))};
}
inline std::int32_t total(ProductSums sums) {
  __m128i four =
      _mm_add_epi32(_mm256_castsi256_si128(sums.value), _mm256_extracti128_si256(sums.value, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
  return _mm_cvtsi128_si32(four);
}

// Whole numbers of 8 bits, and bfloat16 numbers, as floats.
inline Vec load_numbers(const std::int8_t* from) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))};
}

inline Vec load_bf16(const std::uint16_t* from) {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16))};
}
