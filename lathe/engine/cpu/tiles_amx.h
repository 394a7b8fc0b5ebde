// The tile registers of AMX. Included inside a namespace. The instructions are written out, because
// the compiler's own functions take the number of a register as a word of the source text.

// All eight registers have 16 lines of 64 bytes between construction and destruction, but where
// fewer bytes of x meet a weight at once: 4 and 5 have shorter lines then, 6 and 7 fewer. The
// thread's configuration is not kept longer: with tiles in use, every switch of threads would save
// 8 KiB.
struct TileSession {
  explicit TileSession(int depth_bytes = 64) {
    const auto bytes = static_cast<std::uint16_t>(depth_bytes);
    const auto lines = static_cast<std::uint8_t>(depth_bytes / 4);
    struct alignas(64) {
      std::uint8_t palette = 1, start = 0, reserved[14] = {};
      std::uint16_t bytes_of_line[16];
      std::uint8_t lines[16];
    } const configuration{.bytes_of_line = {64, 64, 64, 64, bytes, bytes, 64, 64},
                          .lines = {16, 16, 16, 16, 16, 16, lines, lines}};
    asm volatile("ldtilecfg %0" : : "m"(configuration));
  }
  ~TileSession() { asm volatile("tilerelease"); }
  TileSession(const TileSession&) = delete;
  TileSession& operator=(const TileSession&) = delete;
};

template <int Tile>
inline void tile_zero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(Tile));
}
template <int Tile>
inline void tile_load(const void* from, std::int64_t line_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
               :
               : "r"(from), "r"(line_bytes), "i"(Tile)
               : "memory");
}
template <int Tile>
inline void tile_store(void* to, std::int64_t line_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(line_bytes), "i"(Tile) : "memory");
}
// sums += a . b, pairs of bfloat16.
template <int Sums, int A, int B>
inline void tile_multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sums), "i"(A), "i"(B));
}
// sums += a . b, fours of bytes: both signed, or one of them not.
enum class TileSigns { Both, OfA, OfB };
template <int Sums, int A, int B, TileSigns Signs = TileSigns::Both>
inline void tile_multiply_codes() {
  if constexpr (Signs == TileSigns::OfB)
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sums), "i"(A), "i"(B));
  else if constexpr (Signs == TileSigns::OfA)
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sums), "i"(A), "i"(B));
  else
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sums), "i"(A), "i"(B));
}
