// A float as the sum of three bfloat16 numbers, for a file that has included vector_avx512.h: see
// split_table.h.

constexpr int kParts = 3;
constexpr std::int64_t kTileNumbers = 16 * 32;  // of a tile of bfloat16 numbers

struct TwoVectors {
  Vec first, second;
};

// The parts of 32 numbers: those of `first` in the lower halves.
struct SplitParts {
  __m512i bits[kParts];
};
[[gnu::always_inline]] inline SplitParts parts_of(TwoVectors line) {
  SplitParts parts;
#pragma GCC unroll 3
  for (int part = 0; part < kParts; ++part) {
    const __m512bh near = _mm512_cvtne2ps_pbh(line.second.value, line.first.value);
    const __m512i bits = __builtin_bit_cast(__m512i, near);
    parts.bits[part] = bits;
    const auto widened = [](__m256i half) -> Vec {
      return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
    };
    line.first = line.first - widened(_mm512_castsi512_si256(bits));
    line.second = line.second - widened(_mm512_extracti64x4_epi64(bits, 1));
  }
  return parts;
}

// The first of them alone: the nearest bfloat16 numbers.
[[gnu::always_inline]] inline __m512i first_part_of(TwoVectors line) {
  return __builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(line.second.value, line.first.value));
}

// At places that are `distance` apart.
[[gnu::always_inline]] inline void store_parts(TwoVectors line, std::int64_t distance,
                                               std::uint16_t* to) {
  const SplitParts parts = parts_of(line);
#pragma GCC unroll 3
  for (int part = 0; part < kParts; ++part)
    _mm512_storeu_si512(to + part * distance, parts.bits[part]);
}

// The same for pairs, each of a number of `first` and the one of `second` below it. Halfway between
// two numbers the larger one is the nearest here: a part differs, what the three add up to does
// not.
[[gnu::always_inline]] inline void store_pair_parts(Vec first, Vec second, std::int64_t distance,
                                                    std::uint16_t* to) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  const __m512i half = _mm512_set1_epi32(0x8000);
  constexpr int kFirstOrUpper = 0xf8;  // a | (b & c)
#pragma GCC unroll 3
  for (int part = 0; part < kParts; ++part) {
    __m512i low = _mm512_castps_si512(first.value), high = _mm512_castps_si512(second.value);
    if (part + 1 < kParts) {  // the last one is what is left, and has no more than 8 bits
      low = _mm512_add_epi32(low, half);
      high = _mm512_add_epi32(high, half);
    }
    _mm512_storeu_si512(
        to + part * distance,
        _mm512_ternarylogic_epi32(_mm512_srli_epi32(low, 16), high, upper, kFirstOrUpper));
    first = first - Vec{_mm512_castsi512_ps(_mm512_and_si512(low, upper))};
    second = second - Vec{_mm512_castsi512_ps(_mm512_and_si512(high, upper))};
  }
}

// Which lanes of both are so small that they may be split: not those of NaN.
[[gnu::always_inline]] inline Mask small_lanes(TwoVectors line, Vec limit) {
  return less(abs(line.first), limit) & less(abs(line.second), limit);
}
