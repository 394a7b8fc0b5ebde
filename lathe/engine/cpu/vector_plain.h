// Four floats by the compiler's own vector type, which any processor has. Included inside a
// namespace by kernels_plain.cpp; vector_avx512.h says what each function promises, except that
// fma and fnma round twice here: there is no fused instruction to use.

using Floats __attribute__((vector_size(16))) = float;
using Ints __attribute__((vector_size(16))) = std::int32_t;

struct Vec {
  Floats value;
};
// All bits of a lane are set or none.
struct Mask {
  Ints lanes;
};

constexpr std::int64_t kWidth = 4;
// 10 accumulators, two vectors of B, a broadcast of x and the products before they are added.
constexpr int kTileRows = 5;
constexpr int kTileVectors = 2;

inline Vec load(const float* from) {
  Vec a;
  __builtin_memcpy(&a.value, from, sizeof a.value);
  return a;
}
inline void store(float* to, Vec a) {
  __builtin_memcpy(to, &a.value, sizeof a.value);
}
inline Vec broadcast(float a) {
  return {Floats{a, a, a, a}};
}

inline Mask first_lanes(std::int64_t count) {
  const std::int32_t bounded =
      count >= kWidth ? std::int32_t{kWidth} : static_cast<std::int32_t>(count);
  return {Ints{0, 1, 2, 3} < Ints{bounded, bounded, bounded, bounded}};
}
inline Vec load(const float* from, Mask mask) {
  Vec a{Floats{0, 0, 0, 0}};
  for (int i = 0; i < kWidth; ++i)
    if (mask.lanes[i]) a.value[i] = from[i];
  return a;
}
inline void store(float* to, Vec a, Mask mask) {
  for (int i = 0; i < kWidth; ++i)
    if (mask.lanes[i]) to[i] = a.value[i];
}

inline Vec operator+(Vec a, Vec b) {
  return {a.value + b.value};
}
inline Vec operator-(Vec a, Vec b) {
  return {a.value - b.value};
}
inline Vec operator*(Vec a, Vec b) {
  return {a.value * b.value};
}
inline Vec operator/(Vec a, Vec b) {
  return {a.value / b.value};
}
inline Vec fma(Vec a, Vec b, Vec c) {
  return {a.value * b.value + c.value};
}
inline Vec fnma(Vec a, Vec b, Vec c) {
  return {c.value - a.value * b.value};
}

inline Ints bits_of(Vec a) {
  return reinterpret_cast<Ints>(a.value);
}
inline Vec from_bits(Ints bits) {
  return {reinterpret_cast<Floats>(bits)};
}
inline Mask less(Vec a, Vec b) {
  return {a.value < b.value};
}
inline Mask is_nan(Vec a) {
  return {a.value != a.value};
}
inline bool has_any(Mask mask) {
  return (mask.lanes[0] | mask.lanes[1] | mask.lanes[2] | mask.lanes[3]) != 0;
}
inline Vec select(Mask mask, Vec yes, Vec no) {
  return from_bits((bits_of(yes) & mask.lanes) | (bits_of(no) & ~mask.lanes));
}
inline Vec min(Vec a, Vec b) {
  return select(less(a, b), a, b);
}
inline Vec max(Vec a, Vec b) {
  return select(less(b, a), a, b);
}
inline float sqrt(float a) {
  return __builtin_sqrtf(a);
}
inline Vec sqrt(Vec a) {
  Vec root;
  for (int i = 0; i < kWidth; ++i) root.value[i] = sqrt(a.value[i]);
  return root;
}
inline Vec abs(Vec a) {
  return from_bits(bits_of(a) & 0x7fffffff);
}
inline Vec negate(Vec a) {
  return {-a.value};
}
inline Vec with_sign_of(Vec magnitude, Vec sign) {
  const std::int32_t sign_bit = -0x7fffffff - 1;
  return from_bits(bits_of(magnitude) | (bits_of(sign) & sign_bit));
}

inline Vec add_exponent(Vec a, Vec n_bits) {
  // Unsigned, because the bits above the exponent are shifted out on purpose.
  using Words __attribute__((vector_size(16))) = std::uint32_t;
  const Words sum =
      reinterpret_cast<Words>(a.value) + (reinterpret_cast<Words>(n_bits.value) << 23);
  return {reinterpret_cast<Floats>(sum)};
}
inline Vec split_exponent(Vec a, Vec& exponent) {
  const Ints n = (bits_of(a) - 0x3f3504f3) >> 23;
  exponent = {__builtin_convertvector(n, Floats)};
  return from_bits(bits_of(a) - n * (1 << 23));
}

inline std::uint32_t near_bf16_bits(float a) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, a);
  return a != a ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
}
inline Vec near_bf16(Vec a) {
  for (int i = 0; i < kWidth; ++i)
    a.value[i] = __builtin_bit_cast(float, near_bf16_bits(a.value[i]) & 0xffff0000u);
  return a;
}
inline void store_bf16(std::uint16_t* to, Vec a) {
  for (int i = 0; i < kWidth; ++i)
    to[i] = static_cast<std::uint16_t>(near_bf16_bits(a.value[i]) >> 16);
}
inline void store_bf16_pairs(std::uint32_t* to, Vec a, Vec b) {
  for (int i = 0; i < kWidth; ++i)
    to[i] = near_bf16_bits(a.value[i]) >> 16 | (near_bf16_bits(b.value[i]) & 0xffff0000u);
}

inline float first(Vec a) {
  return a.value[0];
}
inline float sum(Vec a) {
  return (a.value[0] + a.value[2]) + (a.value[1] + a.value[3]);
}
inline float largest(Vec a) {
  const float even = a.value[0] > a.value[2] ? a.value[0] : a.value[2];
  const float odd = a.value[1] > a.value[3] ? a.value[1] : a.value[3];
  return even > odd ? even : odd;
}

inline void transpose(Vec (&rows)[kWidth]) {
  float t[kWidth][kWidth];
  for (int i = 0; i < kWidth; ++i) store(t[i], rows[i]);
  for (int i = 0; i < kWidth; ++i) rows[i] = {Floats{t[0][i], t[1][i], t[2][i], t[3][i]}};
}

struct Words {
  std::uint64_t lanes[kWidth];
};
inline Words broadcast_word(std::uint32_t a) {
  return {{a, a, a, a}};
}
inline Words multiply_wide(Words a, std::uint32_t factor) {
  for (std::uint64_t& lane : a.lanes)
    lane = std::uint64_t{static_cast<std::uint32_t>(lane)} * factor;
  return a;
}
inline Words upper_words(Words product) {
  for (std::uint64_t& lane : product.lanes) lane >>= 32;
  return product;
}
inline Words exclusive_or(Words a, Words b, std::uint32_t c) {
  for (int i = 0; i < kWidth; ++i) a.lanes[i] ^= b.lanes[i] ^ c;
  return a;
}
inline Words block_numbers(std::uint32_t first) {
  return {{first, first + 1, first + 2, first + 3}};
}
inline void kept_lanes(const Words (&random)[4], std::uint32_t threshold, Mask (&kept)[8]) {
  for (int block = 0; block < kWidth; ++block)
    for (int w = 0; w < 4; ++w) {
      const auto word = static_cast<std::uint32_t>(random[w].lanes[block]);
      Mask& mask = kept[2 * block + w / 2];
      mask.lanes[w % 2 * 2] = -static_cast<std::int32_t>((word & 0xffff) >= threshold);
      mask.lanes[w % 2 * 2 + 1] = -static_cast<std::int32_t>((word >> 16) >= threshold);
    }
}

struct Doubles {
  double lanes[kWidth];
};
inline Doubles zero_doubles() {
  return {};
}
inline void store(double* to, Doubles a) {
  for (int i = 0; i < kWidth; ++i) to[i] = a.lanes[i];
}
inline Doubles add_squares(Doubles sums, Vec a) {
  for (int i = 0; i < kWidth; ++i) sums.lanes[i] += double{a.value[i]} * double{a.value[i]};
  return sums;
}

struct Shorts {
  std::int16_t value;
};
struct ProductSums {
  std::uint32_t value;
};
constexpr std::int64_t kShorts = 1;
inline Shorts load_shorts(const std::int16_t* from) {
  return {*from};
}
inline ProductSums no_products() {
  return {0};
}
inline ProductSums add_products(ProductSums sums, Shorts a, Shorts b) {
  const std::int32_t product = std::int32_t{a.value} * b.value;
  return {sums.value + static_cast<std::uint32_t>(product)};
}
inline std::int32_t total(ProductSums sums) {
  return static_cast<std::int32_t>(sums.value);
}

// Whole numbers of 8 bits, and bfloat16 numbers, as floats.
inline Vec load_numbers(const std::int8_t* from) {
  return {Floats{static_cast<float>(from[0]), static_cast<float>(from[1]),
                 static_cast<float>(from[2]), static_cast<float>(from[3])}};
}

inline Vec load_bf16(const std::uint16_t* from) {
  const Ints bits = Ints{from[0], from[1], from[2], from[3]} << 16;
  Vec numbers;
  __builtin_memcpy(&numbers.value, &bits, sizeof bits);
  return numbers;
}
