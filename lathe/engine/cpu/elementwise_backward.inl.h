// The derivatives of the functions of one argument, times the gradient that comes in.

// sigmoid(u) and sigmoid(u) sigmoid(-u), its derivative, without cancellation on either side.
struct Logistic {
  Vec value, slope;
};
inline Logistic logistic(Vec u) {
  const Vec e = exp_weight(negate(abs(u)));
  const Vec share = broadcast(1.0f) / (broadcast(1.0f) + e);
  const Vec rest = e * share;
  return {select(less(u, broadcast(0.0f)), rest, share), share * rest};
}

// Derivatives have long reached their limits at +-limit; infinity times 0 must not appear.
inline Vec within(float limit, Vec x) {
  return max(broadcast(-limit), min(broadcast(limit), x));
}

// Phi(x) + x phi(x) is e(|x|) for negative x and 1 - e(|x|) for others, where
// e(a) = phi(a) (Phi(-a) / phi(a) - a): one exponential times a polynomial of degree 11, within
// 3.5e-8 before rounding. From 7 on it is 0 to that accuracy.
inline Vec gelu_erf_slope(Vec x) {
  const Vec a = min(broadcast(7.0f), abs(x));
  Vec p = broadcast(-3.155410013278015e-7f);
  p = fma(p, a, broadcast(7.7087615864002146e-6f));
  p = fma(p, a, broadcast(-8.4771054389420897e-5f));
  p = fma(p, a, broadcast(5.6365405907854438e-4f));
  p = fma(p, a, broadcast(-2.5900972541421652e-3f));
  p = fma(p, a, broadcast(9.0038655325770378e-3f));
  p = fma(p, a, broadcast(-2.5471845641732216e-2f));
  p = fma(p, a, broadcast(6.1923958361148834e-2f));
  p = fma(p, a, broadcast(-0.13280579447746277f));
  p = fma(p, a, broadcast(0.24997258186340332f));
  p = fma(p, a, broadcast(-0.79788285493850708f));
  p = fma(p, a, broadcast(0.49999997019767761f));
  Vec n_bits;
  const Vec r = reduce_exp(a * a * broadcast(-0.5f), n_bits);
  const Vec e = add_exponent(exp_near_zero(r), n_bits) * p;
  return select(less(x, broadcast(0.0f)), e, broadcast(1.0f) - e);
}

// gelu(x) = x sigmoid(u) with u = 2 sqrt(2/pi) (x + 0.044715 x^3).
inline Vec gelu_tanh_slope(Vec x) {
  x = within(30.0f, x);
  constexpr float kLinear = 2 * 0.79788456080286536f;
  constexpr float kCubic = kLinear * 0.044715f;
  const Vec square = x * x;
  const Logistic s = logistic(x * fma(square, broadcast(kCubic), broadcast(kLinear)));
  const Vec du = fma(square, broadcast(3 * kCubic), broadcast(kLinear));
  return fma(x * du, s.slope, s.value);
}

// The derivative of x sigmoid(factor x).
inline Vec swish_slope(Vec x, float factor) {
  const Vec u = within(90.0f, x * broadcast(factor));
  const Logistic s = logistic(u);
  return fma(u, s.slope, s.value);
}

// Calls visit(f) with f(dy, x) = dy op'(x) as a type of its own.
template <typename Visit>
void with_slope(Unary op, Visit visit) {
  const auto times = [&](auto slope) { visit([slope](Vec dy, Vec x) { return dy * slope(x); }); };
  const Vec zero = broadcast(0.0f);
  switch (op) {
    case Unary::None:
      return visit([](Vec dy, Vec) { return dy; });
    case Unary::Relu:
      return visit([zero](Vec dy, Vec x) { return select(less(zero, x), dy, zero); });
    case Unary::GeluErf:
      return times([](Vec x) { return gelu_erf_slope(x); });
    case Unary::GeluTanh:
      return times([](Vec x) { return gelu_tanh_slope(x); });
    case Unary::Tanh:  // tanh(x) = 2 sigmoid(2x) - 1
      return times([](Vec x) { return broadcast(4.0f) * logistic(x + x).slope; });
    case Unary::Sigmoid:
      return times([](Vec x) { return logistic(x).slope; });
    case Unary::Silu:
      return times([](Vec x) { return swish_slope(x, 1.0f); });
    case Unary::QuickGelu:
      return times([](Vec x) { return swish_slope(x, 1.702f); });
    case Unary::Exp:
      return times([](Vec x) { return exp(x); });
    case Unary::Erf:
      return times(
          [](Vec x) { return broadcast(1.1283791670955126f) * exp_weight(negate(x * x)); });
    case Unary::Log:
      return visit([](Vec dy, Vec x) { return dy / x; });
    case Unary::Negate:
      return visit([](Vec dy, Vec) { return negate(dy); });
    case Unary::Abs:
      return visit([zero](Vec dy, Vec x) {
        return select(less(zero, x), dy, select(less(x, zero), negate(dy), zero));
      });
    case Unary::Sqrt:
      return visit([](Vec dy, Vec x) { return dy * broadcast(0.5f) / sqrt(x); });
    case Unary::Reciprocal:
      return visit([](Vec dy, Vec x) {
        const Vec y = broadcast(1.0f) / x;
        return negate(dy * y) * y;
      });
  }
}

inline void unary_backward(Unary op, const float* dy, const float* x, std::int64_t count,
                           float* dx) {
  with_slope(op, [&](auto f) {
    over_lanes(count, [&](std::int64_t c, auto lanes) {
      const Vec at = load(x + c, lanes);
      store(dx + c, unless_nan(at, f(load(dy + c, lanes), at)), lanes);
    });
  });
}
