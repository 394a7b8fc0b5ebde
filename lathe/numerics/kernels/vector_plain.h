// Four floats or 32-bit whole numbers by the compiler's own vector types, which any processor has.
// Included inside a namespace by kernels_plain.cpp; vector_avx512.h says what each function
// promises.

constexpr std::int64_t kWidth = 4;
using Floats __attribute__((vector_size(16))) = float;
using Ints __attribute__((vector_size(16))) = std::int32_t;
using Words __attribute__((vector_size(16))) = std::uint32_t;

inline Floats load(const float* from) {
  Floats a;
  __builtin_memcpy(&a, from, sizeof a);
  return a;
}
inline void store(float* to, Floats a) {
  __builtin_memcpy(to, &a, sizeof a);
}
using Bytes __attribute__((vector_size(16))) = std::int8_t;
using Halves __attribute__((vector_size(16))) = std::int16_t;
// Each byte twice over and twice again, which any processor does in two instructions, so that a
// shift down leaves it and its sign.
inline Floats widened(const std::int8_t* from) {
  Ints word{};
  __builtin_memcpy(&word, from, kWidth);
  Bytes bytes = reinterpret_cast<Bytes>(word);
  bytes =
      __builtin_shufflevector(bytes, bytes, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  Halves halves = reinterpret_cast<Halves>(bytes);
  halves = __builtin_shufflevector(halves, halves, 0, 8, 1, 9, 2, 10, 3, 11);
  return __builtin_convertvector(reinterpret_cast<Ints>(halves) >> 24, Floats);
}
#ifdef __SSE2__
inline Halves upper_halves(Floats a, Floats b) {
  return reinterpret_cast<Halves>(_mm_packs_epi32(_mm_srai_epi32(_mm_castps_si128(a), 16),
                                                  _mm_srai_epi32(_mm_castps_si128(b), 16)));
}
#else
inline Halves upper_halves(Floats a, Floats b) {
  return __builtin_shufflevector(reinterpret_cast<Halves>(a), reinterpret_cast<Halves>(b), 1, 3, 5,
                                 7, 9, 11, 13, 15);
}
#endif
inline void store_halves(std::uint16_t* to, Floats a, Floats b) {
  const Halves halves = upper_halves(a, b);
  __builtin_memcpy(to, &halves, sizeof halves);
}
#ifdef __SSE2__
inline void stream_halves(std::uint16_t* to, Floats a, Floats b) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(upper_halves(a, b)));
}
inline void stream(float* to, Floats a) {
  _mm_stream_ps(to, a);
}
inline void end_streaming() {
  _mm_sfence();
}
#else
inline void stream_halves(std::uint16_t* to, Floats a, Floats b) {
  store_halves(to, a, b);
}
inline void stream(float* to, Floats a) {
  store(to, a);
}
inline void end_streaming() {}
#endif
inline Floats load(const float* from, std::int64_t count) {
  Floats a{0, 0, 0, 0};
  for (int i = 0; i < count; ++i) a[i] = from[i];
  return a;
}
inline void store(float* to, Floats a, std::int64_t count) {
  for (int i = 0; i < count; ++i) to[i] = a[i];
}
inline Floats broadcast(float a) {
  return Floats{a, a, a, a};
}
inline Ints broadcast(std::int32_t a) {
  return Ints{a, a, a, a};
}
inline Floats broadcast_lane(Floats a, int lane) {
  return broadcast(a[lane]);
}
inline Floats min(Floats a, Floats b) {
  return a < b ? a : b;
}
inline Floats max(Floats a, Floats b) {
  return a > b ? a : b;
}
inline Ints min(Ints a, Ints b) {
  return a < b ? a : b;
}
inline Ints max(Ints a, Ints b) {
  return a > b ? a : b;
}
inline Floats round_even(Floats a) {
  // Adding 2^23 leaves a float no room for a fraction; from there on there is none to round.
  const Floats magnet = broadcast(0x1p23f);
  const Ints sign = (Ints)a & broadcast(INT32_MIN);
  const Floats magnitude = (Floats)((Ints)a & broadcast(INT32_MAX));
  const Floats whole = (magnitude + magnet) - magnet;
  const Floats rounded = (Floats)((Ints)whole | sign);
  return magnitude < magnet ? rounded : a;
}
inline Floats round_down(Floats a) {
  const Floats nearest = round_even(a);
  return nearest > a ? nearest - broadcast(1.0f) : nearest;
}
inline bool any(Ints a) {
  return (a[0] | a[1] | a[2] | a[3]) != 0;
}
inline bool any_without(Ints a, Ints mask) {
  return any((a & mask) == broadcast(0));
}
inline Floats unless_zero_or_nan(Floats a, Floats other) {
  const Floats magnitude = (Floats)((Ints)a & broadcast(INT32_MAX));
  return magnitude > broadcast(0.0f) ? other : a;
}
inline Ints largest_everywhere(Ints a) {
  a = max(a, __builtin_shufflevector(a, a, 2, 3, 0, 1));
  return max(a, __builtin_shufflevector(a, a, 1, 0, 3, 2));
}
// Blocks of half a vector are none of ours: the smallest that have kernels are of eight.
Ints largest_of_half(Ints a);
Ints largest_of_halves(const Ints (&vectors)[kWidth / 2]);
Floats broadcast_halves(Floats a, int i);
inline Ints largest_of_each(const Ints (&v)[kWidth]) {
  const auto pair = [](Ints a, Ints b) {
    return max(__builtin_shufflevector(a, b, 0, 4, 1, 5),
               __builtin_shufflevector(a, b, 2, 6, 3, 7));
  };
  const Ints a = pair(v[0], v[1]);
  const Ints b = pair(v[2], v[3]);
  return max(__builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7));
}
struct Table {
  const float* all;
};
inline Table load_table(const float* from) {
  return {from};
}
struct SmallTable {
  float all[8];
};
inline SmallTable load_small_table(const float* from) {
  SmallTable table;
  for (int i = 0; i < 8; ++i) table.all[i] = from[i];
  return table;
}
inline Floats look_up(const SmallTable& table, Ints index) {
  return Floats{table.all[index[0]], table.all[index[1]], table.all[index[2]], table.all[index[3]]};
}
inline Floats look_up(Table table, Ints index, Ints) {
  return Floats{table.all[index[0]], table.all[index[1]], table.all[index[2]], table.all[index[3]]};
}
