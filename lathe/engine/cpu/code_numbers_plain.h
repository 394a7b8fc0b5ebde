// Whole numbers in registers that any processor has, two products at once. Included inside a
// namespace after vector_plain.h.

inline void store_numbers(std::int8_t* to, Vec a, std::int32_t shift, std::int64_t count) {
  // Beyond this number a float has no fraction: its last bits are the whole number.
  const Floats magnet = {0x1.8p23f, 0x1.8p23f, 0x1.8p23f, 0x1.8p23f};
  const Floats moved = a.value + magnet;
  Ints bits;
  __builtin_memcpy(&bits, &moved, sizeof bits);
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = static_cast<std::int8_t>(bits[i] - 0x4b400000 + shift);
}

struct Nibbles {
  Ints value;
};
inline Nibbles load_nibbles(const std::int8_t* from) {
  return {Ints{from[0], from[1], from[2], from[3]}};
}
inline Vec numbers_of_half(Nibbles both, int half) {
  return {__builtin_convertvector((both.value >> (4 * half) & 15) - 8, Floats)};
}

inline Vec load_powers(const std::uint8_t* codes) {
  const Ints bits = Ints{codes[0], codes[1], codes[2], codes[3]} << 23;
  Vec powers;
  __builtin_memcpy(&powers.value, &bits, sizeof bits);
  return powers;
}

struct Sums {
  Ints value;
};
inline Sums start_sums(std::int32_t start) {
  return {Ints{start, start, start, start}};
}
inline Sums load_sums(const float* from) {
  Sums sums;
  __builtin_memcpy(&sums.value, from, sizeof sums.value);
  return sums;
}
inline void store_sums(float* to, Sums sums) {
  __builtin_memcpy(to, &sums.value, sizeof sums.value);
}
inline Sums subtract_times(Sums sums, std::int32_t factor, const std::int32_t* numbers) {
  Ints loaded;
  __builtin_memcpy(&loaded, numbers, sizeof loaded);
  return {sums.value - loaded * factor};
}
inline Vec to_floats(Sums sums) {
  return {__builtin_convertvector(sums.value, Floats)};
}

constexpr std::int64_t kStep = 2;
constexpr std::int32_t kVectorOffset = 0;
using Left = std::int16_t;

struct Columns {
  Ints first, second;
};
struct Element {
  std::int32_t first, second;
};
inline Columns load_columns(const std::int8_t* from) {
  return {Ints{from[0], from[2], from[4], from[6]}, Ints{from[1], from[3], from[5], from[7]}};
}
// The lower or upper four bits of each number's byte.
inline Columns half_of(Columns both, int half) {
  return {both.first >> (4 * half) & 15, both.second >> (4 * half) & 15};
}
inline Element broadcast_element(const Left* from) {
  return {from[0], from[1]};
}
inline Sums add_codes(Sums sums, Element x, Columns weight) {
  return {sums.value + weight.first * x.first + weight.second * x.second};
}
