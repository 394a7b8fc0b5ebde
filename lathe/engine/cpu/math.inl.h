// Elementary functions on Vec: one algorithm for every instruction set, in float throughout.
// The polynomials are minimax fits whose coefficients are floats. NaN goes through all of them:
// min and max below give their second argument when it is NaN.

constexpr float kInfinity = __builtin_inff();
constexpr float kNan = __builtin_nanf("");
constexpr float kSmallestNormal = __FLT_MIN__;

// 0 for magnitudes below `least`: the rule by which numbers that no result can notice underflow,
// before they become subnormal and slow on many processors. NaN stays.
inline Vec unless_below(float least, Vec a) {
  return select(less(abs(a), broadcast(least)), broadcast(0.0f), a);
}

// Adding 1.5 2^23 rounds a number below 2^22 to the nearest integer and leaves that integer in the
// low bits, which is where add_exponent looks for it; subtracting it gives the integer as a float.
constexpr float kRounder = 12582912.0f;

// e^r for |r| <= log(2)/2, within 3.3e-9 before rounding.
inline Vec exp_near_zero(Vec r) {
  Vec p = broadcast(1.378250424750149e-3f);
  p = fma(p, r, broadcast(8.368674665689468e-3f));
  p = fma(p, r, broadcast(4.166896268725395e-2f));
  p = fma(p, r, broadcast(0.16666521131992340f));
  p = fma(p, r, broadcast(0.49999991059303284f));
  return fma(p, r * r, r + broadcast(1.0f));
}

// x = n log(2) + r. The first part of log(2) has nine bits, so its product with n is exact even
// where multiply and add are separate. Returns r; `n_bits` gets kRounder + n.
inline Vec reduce_exp(Vec x, Vec& n_bits) {
  n_bits = fma(x, broadcast(1.44269504088896341f), broadcast(kRounder));
  const Vec n = n_bits - broadcast(kRounder);
  return fnma(n, broadcast(-2.12194440054690583e-4f), fnma(n, broadcast(0.693359375f), x));
}

// From here on e^x is a normal number; below, it is 0 by rule.
constexpr float kLowestExponent = -87.3f;

inline Vec exp(Vec x) {
  // Above 89 the result is infinity by rounding.
  Vec n_bits;
  const Vec r = reduce_exp(max(broadcast(kLowestExponent), min(broadcast(89.0f), x)), n_bits);
  // 2^n can leave the range of floats, so it is applied as two factors that do not.
  const Vec n = n_bits - broadcast(kRounder);
  const Vec half_bits = fma(n, broadcast(0.5f), broadcast(kRounder));
  const Vec rest = n - (half_bits - broadcast(kRounder));
  const Vec factor = add_exponent(broadcast(1.0f), rest + broadcast(kRounder));
  const Vec y = add_exponent(exp_near_zero(r), half_bits) * factor;
  return select(is_nan(x), x, select(less(x, broadcast(kLowestExponent)), broadcast(0.0f), y));
}

// n_bits, but with 256 where they are NaN, whose low bits may be anything and would make a number
// of another NaN: adding 256 to an exponent changes the sign alone.
inline Vec exponent_or_sign(Vec n_bits) {
  return min(n_bits, broadcast(kRounder + 256));
}

// e^x for x <= 0, as a softmax needs it: 0 below `lowest`, which a sum of at least 1 cannot notice.
inline Vec exp_weight(Vec x, float lowest = kLowestExponent) {
  Vec n_bits;
  const Vec r = reduce_exp(max(broadcast(lowest), x), n_bits);
  const Vec weight = add_exponent(exp_near_zero(r), exponent_or_sign(n_bits));
  return select(less(x, broadcast(lowest)), broadcast(0.0f), weight);
}

// erfc(a / sqrt 2) for a from 0 to 6, as 2^-u: u/a is a polynomial of degree 7, and the absolute
// error below 2.6e-8 before rounding.
inline Vec erfc_of_root(Vec a) {
  Vec p = broadcast(2.8349128172681921e-6f);
  p = fma(p, a, broadcast(-3.9377692028913433e-5f));
  p = fma(p, a, broadcast(1.8618024763415837e-4f));
  p = fma(p, a, broadcast(1.3693634818969167e-4f));
  p = fma(p, a, broadcast(-7.0634200929983571e-3f));
  p = fma(p, a, broadcast(5.2496178319687797e-2f));
  p = fma(p, a, broadcast(0.45920819667183356f));
  p = fma(p, a, broadcast(1.1511052053015439f));
  // -u = n - f with |f| <= 1/2; the product is not rounded before n is taken off it.
  const Vec n_bits = fnma(p, a, broadcast(kRounder));
  const Vec f = fma(p, a, n_bits - broadcast(kRounder));
  Vec e = broadcast(1.5241284563672e-4f);  // 2^-f, within 3.7e-9
  e = fma(e, f, broadcast(-1.3391302200034e-3f));
  e = fma(e, f, broadcast(9.6188336610794e-3f));
  e = fma(e, f, broadcast(-5.5503588169813e-2f));
  e = fma(e, f, broadcast(0.240226447582245f));
  e = fma(e, f, broadcast(-0.693147182464600f));
  e = fma(e, f, broadcast(1.0f));
  return add_exponent(e, n_bits);
}

// An odd polynomial near 0, where 1 - erfc would cancel. From 4.2 on erf is 1 in float.
inline Vec erf(Vec x) {
  const Vec square = x * x;
  Vec p = broadcast(-5.845337873324752e-4f);
  p = fma(p, square, broadcast(4.973326809704304e-3f));
  p = fma(p, square, broadcast(-2.675447985529900e-2f));
  p = fma(p, square, broadcast(0.11281377822160721f));
  p = fma(p, square, broadcast(-0.37612414360046387f));
  p = fma(p, square, broadcast(1.1283791065216064f));
  const Vec a = min(broadcast(6.0f), abs(x) * broadcast(1.41421356237309505f));
  const Vec far = with_sign_of(broadcast(1.0f) - erfc_of_root(a), x);
  // NaN is not above either.
  return select(less(broadcast(0.74999994f), abs(x)), far, p * x);
}

inline Vec sigmoid(Vec x) {
  return broadcast(1.0f) / (broadcast(1.0f) + exp(negate(x)));
}

// An odd polynomial near 0, where the other form would cancel; 1 - 2 / (e^2|x| + 1) beyond.
inline Vec tanh(Vec x) {
  const Vec square = x * x;
  Vec p = broadcast(-5.700091831386089e-3f);
  p = fma(p, square, broadcast(2.063411846756935e-2f));
  p = fma(p, square, broadcast(-5.373793840408325e-2f));
  p = fma(p, square, broadcast(0.13331416249275208f));
  p = fma(p, square, broadcast(-0.33333280682563782f));
  const Vec near = fma(p * square, x, x);
  const Vec a = abs(x);
  const Vec far = broadcast(1.0f) - broadcast(2.0f) / (exp(a + a) + broadcast(1.0f));
  return select(less(a, broadcast(0.625f)), near, with_sign_of(far, x));
}

// x/2 (1 + erf(x/sqrt 2)) = max(x, 0) - |x|/2 erfc(|x|/sqrt 2), which does not cancel for negative
// x. Below -6 the exact value is between -6e-9 and 0 and the result stays what it is at -6.
inline Vec gelu_erf(Vec x) {
  const Vec a = min(broadcast(6.0f), abs(x));
  return fnma(a * broadcast(0.5f), erfc_of_root(a), max(broadcast(0.0f), x));
}

// x/2 (1 + tanh(z)) = x sigmoid(2z), with z = sqrt(2/pi) (x + 0.044715 x^3).
inline Vec gelu_tanh(Vec x) {
  const Vec inner = fma(x * x, broadcast(2 * 0.79788456080286536f * 0.044715f),
                        broadcast(2 * 0.79788456080286536f));
  return x / (broadcast(1.0f) + exp(negate(x * inner)));
}

inline Vec silu(Vec x) {
  return x / (broadcast(1.0f) + exp(negate(x)));
}
inline Vec quick_gelu(Vec x) {
  return x / (broadcast(1.0f) + exp(x * broadcast(-1.702f)));
}

// log(2^n (1 + f)) = n log(2) + f - f^2/2 + f^3 P(f), P of degree 8.
inline Vec log(Vec x) {
  const Mask tiny = less(x, broadcast(kSmallestNormal));
  Vec n;
  const Vec mantissa = split_exponent(select(tiny, x * broadcast(8388608.0f), x), n);
  n = n - select(tiny, broadcast(23.0f), broadcast(0.0f));
  const Vec f = mantissa - broadcast(1.0f);
  Vec p = broadcast(6.746280193328857e-2f);
  p = fma(p, f, broadcast(-0.11795927584171295f));
  p = fma(p, f, broadcast(0.11958007514476776f));
  p = fma(p, f, broadcast(-0.12388803064823151f));
  p = fma(p, f, broadcast(0.14206506311893463f));
  p = fma(p, f, broadcast(-0.16668564081192017f));
  p = fma(p, f, broadcast(0.20002891123294830f));
  p = fma(p, f, broadcast(-0.25000008940696716f));
  p = fma(p, f, broadcast(0.33333298563957214f));
  const Vec square = f * f;
  Vec y = p * (square * f);
  y = fma(n, broadcast(-2.12194440054690583e-4f), y);
  y = fnma(square, broadcast(0.5f), y) + f;
  y = fma(n, broadcast(0.693359375f), y);
  y = select(less(x, broadcast(kInfinity)), y, x);  // infinity and NaN are their own logarithms
  const Vec at_most_zero = select(less(x, broadcast(0.0f)), broadcast(kNan), broadcast(-kInfinity));
  return select(less(broadcast(0.0f), x), y, select(is_nan(x), x, at_most_zero));
}
