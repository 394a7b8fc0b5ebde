// What tiles_amx.h offers, without the instructions: so that every machine can test the code above
// it. Included inside a namespace.

struct EmulatedTile {
  std::uint32_t words[16][16];
};
inline EmulatedTile& emulated_tile(int index) {
  static thread_local EmulatedTile tiles[8];
  return tiles[index];
}

// Fours of bytes that a tile of x has in a line, and a tile of a weight lines.
inline int& emulated_depth() {
  static thread_local int depth = 16;
  return depth;
}

struct TileSession {
  explicit TileSession(int depth_bytes = 64) {
    for (int t = 0; t < 8; ++t) emulated_tile(t) = {};
    emulated_depth() = depth_bytes / 4;
  }
};

template <int Tile>
inline void tile_zero() {
  emulated_tile(Tile) = {};
}
template <int Tile>
inline void tile_load(const void* from, std::int64_t line_bytes) {
  const int lines = Tile == 6 || Tile == 7 ? emulated_depth() : 16;
  const int words = Tile == 4 || Tile == 5 ? emulated_depth() : 16;
  emulated_tile(Tile) = {};
  for (int line = 0; line < lines; ++line)
    __builtin_memcpy(emulated_tile(Tile).words[line],
                     static_cast<const unsigned char*>(from) + line * line_bytes,
                     4 * static_cast<std::size_t>(words));
}
template <int Tile>
inline void tile_store(void* to, std::int64_t line_bytes) {
  for (int line = 0; line < 16; ++line)
    __builtin_memcpy(static_cast<unsigned char*>(to) + line * line_bytes,
                     emulated_tile(Tile).words[line], 64);
}
// The processor adds the product of the first of a pair, then that of the second, and takes
// subnormal numbers for 0, which is not done here.
template <int Sums, int A, int B>
inline void tile_multiply() {
  const auto number = [](std::uint32_t bits) { return __builtin_bit_cast(float, bits); };
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 16; ++column) {
      std::uint32_t& sum = emulated_tile(Sums).words[row][column];
      float total = number(sum);
      for (int pair = 0; pair < 16; ++pair) {
        const std::uint32_t a = emulated_tile(A).words[row][pair];
        const std::uint32_t b = emulated_tile(B).words[pair][column];
        total += number(a << 16) * number(b << 16);
        total += number(a & 0xffff0000u) * number(b & 0xffff0000u);
      }
      sum = __builtin_bit_cast(std::uint32_t, total);
    }
}
enum class TileSigns { Both, OfA, OfB };
template <int Sums, int A, int B, TileSigns Signs = TileSigns::Both>
inline void tile_multiply_codes() {
  const auto number = [](std::uint32_t word, int byte, bool is_signed) {
    return is_signed ? static_cast<int>(static_cast<std::int8_t>(word >> 8 * byte))
                     : static_cast<int>(static_cast<std::uint8_t>(word >> 8 * byte));
  };
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 16; ++column) {
      std::uint32_t& sum = emulated_tile(Sums).words[row][column];
      for (int four = 0; four < 16; ++four) {
        const std::uint32_t a = emulated_tile(A).words[row][four];
        const std::uint32_t b = emulated_tile(B).words[four][column];
        for (int byte = 0; byte < 4; ++byte) {
          const int x = number(a, byte, Signs != TileSigns::OfB);
          const int weight = number(b, byte, Signs != TileSigns::OfA);
          sum += static_cast<std::uint32_t>(x * weight);
        }
      }
    }
}
