// Whole numbers made of log2(v) as float32 gives it (mase/rounded_log2.h), by additions to the bits
// of v. Included inside a namespace by the kernel files, after blocks.inl.h.
//
// With v in [2^k, 2^(k+1)) and u the distance of the floats on the way from k to k + 1, float32's
// log2 is k + 1 from 2^(k+1) * (1 - u/2 * ln 2) on, k up to 2^k * (1 + u/2 * ln 2), and k + 1/2
// within sqrt(2) * 2^k * (1 +- u/2 * ln 2). u goes by the largest power of two in |k + 1/2|, so
// each limit is a few steps of v's mantissa that one product gives. Compared with log2 over every
// positive float.

inline Floats to_floats(Ints a) {
  return __builtin_convertvector(a, Floats);
}
inline Ints to_ints(Floats a) {  // towards 0
  return __builtin_convertvector(a, Ints);
}

// The bits of positive numbers as if exponents had no lower end: a subnormal number gets an
// exponent field below 1, and a leading one. 0 is below them all.
inline Ints unbounded_bits(Ints bits) {
  const Ints subnormal = (Ints)to_floats(bits) - broadcast(149 << 23);
  return bits < broadcast(0x00800000) ? subnormal : bits;
}

// The largest power of two in |2k + 1|.
LATHE_KERNEL_INLINE Floats odd_binade(Ints bits) {
  const Ints odd = ((bits >> 22) | broadcast(1)) - broadcast(2 * 127);
  return (Floats)((Ints)to_floats(odd) & broadcast(0x7f800000));
}

constexpr float kLn2 = 0x1.62e43p-1f;

// These give the exponent field, log2 + 127. Bits of NaN may overflow and give anything.
LATHE_KERNEL_INLINE Ints floor_log2_field(Ints bits) {
  const Ints near = to_ints(odd_binade(bits) * broadcast(kLn2 / 2));
  return add_wrapping(bits, near) >> 23;
}
LATHE_KERNEL_INLINE Ints ceil_log2_field(Ints bits) {
  const Ints near = to_ints(odd_binade(bits) * broadcast(kLn2 / 4));
  return add_wrapping(bits, broadcast(0x7fffff) - near) >> 23;
}
LATHE_KERNEL_INLINE Ints nearest_log2_field(Ints bits) {
  // k + 1/2 goes to the even neighbour: later than the square root for an even k, sooner for an
  // odd one. The last bit of the field is 1 for an even k.
  constexpr std::int32_t kRoot = 3474675;  // (sqrt(2) - 1) * 2^23 is this and kRest
  constexpr float kRest = 0.2030314f;
  constexpr float kSlope = 0.9802581f / 4;  // ln 2 * sqrt(2) / 4
  constexpr std::int32_t kShift = 128;      // so that truncation goes down
  const Ints is_odd = ~(bits << 8) & broadcast(INT32_MIN);
  const Floats near = (Floats)((Ints)(odd_binade(bits) * broadcast(kSlope)) ^ is_odd);
  const Ints first = to_ints(near + broadcast(kRest + kShift));
  return add_wrapping(bits, broadcast((1 << 23) - kRoot - 1 + kShift) - first) >> 23;
}
