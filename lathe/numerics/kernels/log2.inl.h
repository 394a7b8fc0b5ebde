// Whole numbers made of log2(v) as float32 gives it (mase/rounded_log2.h), by additions to the bits
// of v. Included inside a namespace by the kernel files, after blocks.inl.h.
//
// With v in [2^k, 2^(k+1)) and u the distance of the floats on the way from k to k + 1, float32's
// log2 is k + 1 from 2^(k+1) * (1 - u/2 * ln 2) on, k up to 2^k * (1 + u/2 * ln 2), and k + 1/2
// within sqrt(2) * 2^k * (1 +- u/2 * ln 2). Each limit is a few steps of v's mantissa, and u goes
// by the largest power of two in a number between k and k + 1, for which v's own bits serve: as a
// whole number they are 2^23 * (k + 127) and something below 2^23. Compared with log2 over every
// positive float.

inline Floats to_floats(Ints a) {
  return __builtin_convertvector(a, Floats);
}
inline Ints to_ints(Floats a) {  // towards 0
  return __builtin_convertvector(a, Ints);
}

// The largest power of two in |bits - one|.
LATHE_KERNEL_INLINE Floats binade(Ints bits, Ints one) {
  return (Floats)((Ints)to_floats(bits - one) & broadcast(0x7f800000));
}

constexpr std::int32_t kOneBits = 127 << 23;
constexpr float kLn2 = 0x1.62e43p-1f;

// Bits whose exponent field is log2 + 127. Bits of NaN may overflow and give anything.
LATHE_KERNEL_INLINE Ints floor_log2_bits(Ints bits) {
  const Ints near = to_ints(binade(bits, broadcast(kOneBits)) * broadcast(kLn2 * 0x1p-23f));
  return add_wrapping(bits, near);
}
LATHE_KERNEL_INLINE Ints ceil_log2_bits(Ints bits) {
  // Close to k the conversion could round to it.
  const Ints inside = bits | broadcast(0x400000);
  const Ints near = to_ints(binade(inside, broadcast(kOneBits)) * broadcast(kLn2 / 2 * 0x1p-23f));
  return add_wrapping(bits, broadcast(0x7fffff) - near);
}
// The exponent field is that of floor_log2_bits, except where there is doubt: see any_without.
constexpr std::int32_t kNoDoubt = 0x7fff80;
LATHE_KERNEL_INLINE Ints quick_floor_log2_bits(Ints bits) {
  return add_wrapping(bits, broadcast(128));  // `near` is at most 88
}
// `one` are the bits of 1, or of what v was multiplied by: an even power of two.
constexpr std::int32_t kRoot = 3474675;  // (sqrt(2) - 1) * 2^23 is this and kRest
LATHE_KERNEL_INLINE Ints nearest_log2_bits(Ints bits, Ints one) {
  // k + 1/2 goes to the even neighbour: later than the square root for an even k, sooner for an
  // odd one. The last bit of the field is 1 for an even k.
  constexpr float kRest = 0.2030314f;
  constexpr float kSlope = 0.98025814f / 2;  // ln 2 * sqrt(2) / 2
  constexpr std::int32_t kShift = 128;       // so that truncation goes down
  const Ints is_odd = ~(bits << 8) & broadcast(INT32_MIN);
  const Floats near = binade(bits, one) * broadcast(kSlope * 0x1p-23f);
  const Ints first = to_ints((Floats)((Ints)near ^ is_odd) + broadcast(kRest + kShift));
  return add_wrapping(bits, broadcast((1 << 23) - kRoot - 1 + kShift) - first);
}
// The same but for doubt. `near` is at most 63.
LATHE_KERNEL_INLINE Ints quick_nearest_log2_bits(Ints bits) {
  return add_wrapping(bits, broadcast((1 << 23) - kRoot - 1 + 64));
}
