// Products of bfloat16 numbers for any x86. Everything is in this file's own namespace and nothing
// inline comes from outside it: see kernel_table.h.

#include <cstddef>
#include <cstdint>

#include "lathe/engine/cpu/ask.h"
#include "lathe/engine/cpu/bf16_table.h"

namespace lathe::engine::bf16_plain {

constexpr const char* kName = "plain";
// The order is that of use.
// clang-format off
#include "lathe/engine/cpu/vector_plain.h"
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

using Words32 __attribute__((vector_size(16))) = std::uint32_t;
inline Pairs pairs_of(Words32 words) {
  Pairs pairs;
  const Words32 low = words << 16, high = words & 0xffff0000u;
  __builtin_memcpy(&pairs.low.value, &low, sizeof low);
  __builtin_memcpy(&pairs.high.value, &high, sizeof high);
  return pairs;
}
inline Pairs load_pairs(const std::uint16_t* from) {
  Words32 words;
  __builtin_memcpy(&words, from, sizeof words);
  return pairs_of(words);
}
inline Pairs broadcast_pairs(const std::uint16_t* from) {
  std::uint32_t word;
  __builtin_memcpy(&word, from, sizeof word);
  return pairs_of(Words32{word, word, word, word});
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

}  // namespace lathe::engine::bf16_plain
