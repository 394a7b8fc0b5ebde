// Products of bfloat16 numbers by AVX2. Everything is in this file's own namespace and nothing
// inline comes from outside it: see kernel_table.h.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "lathe/engine/cpu/ask.h"
#include "lathe/engine/cpu/bf16_table.h"

namespace lathe::engine::bf16_avx2 {

constexpr const char* kName = "avx2";
// The order is that of use.
// clang-format off
#include "lathe/engine/cpu/vector_avx2.h"
#include "lathe/engine/cpu/lanes.inl.h"
#include "lathe/engine/cpu/math.inl.h"
#include "lathe/engine/cpu/elementwise.inl.h"
#include "lathe/engine/cpu/softmax.inl.h"
#include "lathe/engine/cpu/gemm.inl.h"
#include "lathe/engine/cpu/no_streams.h"
#include "lathe/engine/cpu/bf16_shape.inl.h"
// clang-format on

// The two numbers of each pair as floats, which they are the upper halves of.
struct Pairs {
  Vec low, high;
};
constexpr int kPairRows = kTileRows - 2;  // a pair takes two registers
constexpr double kPairSpeed = 1;

inline Pairs pairs_of(__m256i words) {
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  return {{_mm256_castsi256_ps(_mm256_slli_epi32(words, 16))},
          {_mm256_castsi256_ps(_mm256_and_si256(words, upper))}};
}
inline Pairs load_pairs(const std::uint16_t* from) {
  return pairs_of(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
inline Pairs broadcast_pairs(const std::uint16_t* from) {
  int word;
  __builtin_memcpy(&word, from, sizeof word);
  return pairs_of(_mm256_set1_epi32(word));
}
inline Vec add_pairs(Vec sums, Pairs a, Pairs b) {
  return fma(a.high, b.high, fma(a.low, b.low, sums));
}

// clang-format off
#include "lathe/engine/cpu/bf16_pairs.inl.h"
#include "lathe/engine/cpu/bf16_gemm.inl.h"
#include "lathe/engine/cpu/bf16_finish.inl.h"
#include "lathe/engine/cpu/bf16_block.inl.h"
#include "lathe/engine/cpu/bf16_attention.inl.h"
#include "lathe/engine/cpu/bf16_entries.inl.h"
// clang-format on

}  // namespace lathe::engine::bf16_avx2
