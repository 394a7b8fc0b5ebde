#pragma once

// Packed codes in registers: words of them as bfloat16 numbers, which hold every number of at most
// 8 significant bits exactly.

#include <cuda_bf16.h>

#include "lathe/engine/cuda/kernels/launch.cuh"
#include "lathe/numerics/codecs/shared_exponent.h"

namespace lathe::engine::cuda {

using Word = std::uint32_t;

/// (a & mask) | bits and (a & mask) ^ bits in one instruction.
__device__ inline Word masked_or(Word a, Word mask, Word bits) {
  Word result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(a), "r"(mask), "r"(bits));
  return result;
}
__device__ inline Word masked_xor(Word a, Word mask, Word bits) {
  Word result;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(a), "r"(mask), "r"(bits));
  return result;
}

// Two bfloat16 numbers in a word. Results here are exact, subnormal ones too.
__device__ inline Word subtract_pairs(Word a, Word b) {
  Word result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(b), "r"(0xbf80bf80u), "r"(a));
  return result;
}
__device__ inline Word multiply_pairs(Word a, Word b) {
  Word result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(0x80008000u));
  return result;
}

// Each codec below turns a word of codes into pairs, in an order that takes few instructions: pair
// i has code i and, above it, code i + kCodes / 2.

/// 0,2 1,3 as 0,1 2,3, and back.
__device__ inline void order_by_two(const Word* x, Word* pairs) {
  pairs[0] = __byte_perm(x[0], x[1], 0x5410);
  pairs[1] = __byte_perm(x[0], x[1], 0x7632);
}
struct ByteCodes {
  static constexpr int kCodes = 4;  ///< of a word
  static constexpr bool kHasZero = false;
};
struct NibbleCodes {
  static constexpr int kCodes = 8;
  static constexpr bool kHasZero = false;
};

/// Two's complement bytes. 128 + the low 7 bits, less 128 or, where the sign is set, 256: both are
/// patterns with the code's bits put in place, so that no conversion is needed.
struct Int8Codes : ByteCodes {
  __device__ static Word pair(Word codes) {
    return subtract_pairs(masked_or(codes, 0x007f007f, 0x43004300),
                          masked_or(codes, 0x00800080, 0x43004300));
  }
  __device__ static void convert(Word codes, Word, Word* pairs) {
    pairs[0] = pair(codes);
    pairs[1] = pair(codes >> 8);
  }
};

/// Two's complement nibbles: 128 + (code ^ 8), less 136.
struct Int4Codes : NibbleCodes {
  __device__ static Word pair(Word codes) {
    return subtract_pairs(masked_xor(codes, 0x000f000f, 0x43084308), 0x43084308);
  }
  __device__ static void convert(Word codes, Word, Word* pairs) {
    for (int i = 0; i < 4; ++i) pairs[i] = pair(codes >> (4 * i));
  }
};

/// Nibbles from 0 with a zero point: 128 + code, less 128 + zero, a pair of which is handed in.
struct Unsigned4Codes : NibbleCodes {
  static constexpr bool kHasZero = true;
  __device__ static void convert(Word codes, Word zero, Word* pairs) {
    for (int i = 0; i < 4; ++i)
      pairs[i] = subtract_pairs(masked_or(codes >> (4 * i), 0x000f000f, 0x43004300), zero);
  }
};

/// Minifloats of a byte: their bits where bfloat16 has its own, times 2^(127 - bias), which makes
/// subnormal numbers right, too. From `kSpecial` below 2^7 on, codes are infinity or NaN.
template <int kMantissa, int kBias, int kSpecial>
struct Float8Codes : ByteCodes {
  __device__ static Word pair(Word codes) {
    const Word bits = (codes & 0x00800080) << 8 | (codes & 0x007f007f) << (7 - kMantissa);
    const Word number = multiply_pairs(bits, ((254 - kBias) << 7) * 0x00010001u);
    const Word special = ((codes & 0x007f007f) + kSpecial * 0x00010001u) & 0x00800080;
    return number | ((special << 8) - special);
  }
  __device__ static void convert(Word codes, Word, Word* pairs) {
    pairs[0] = pair(codes);
    pairs[1] = pair(codes >> 8);
  }
};
using E4m3Codes = Float8Codes<3, 7, 1>;
using E5m2Codes = Float8Codes<2, 15, 4>;

/// OCP's E2M1, without infinity or NaN.
struct E2m1Codes : NibbleCodes {
  __device__ static Word pair(Word codes) {
    const Word bits = (codes & 0x00080008) << 12 | (codes & 0x00070007) << 6;
    return multiply_pairs(bits, 0x7e807e80);
  }
  __device__ static void convert(Word codes, Word, Word* pairs) {
    for (int i = 0; i < 4; ++i) pairs[i] = pair(codes >> (4 * i));
  }
};

/// 16 bytes that are read once: past the first cache, and with their neighbours into the second.
__device__ inline uint4 load_once(const void* from) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from));
  return value;
}

__device__ inline void load_words_once(const void* from, Word (&words)[4]) {
  const uint4 four = load_once(from);
  words[0] = four.x;
  words[1] = four.y;
  words[2] = four.z;
  words[3] = four.w;
}
__device__ inline void load_words_once(const void* from, Word (&words)[2]) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {%0, %1}, [%2];"
               : "=r"(words[0]), "=r"(words[1])
               : "l"(from));
}

}  // namespace lathe::engine::cuda
