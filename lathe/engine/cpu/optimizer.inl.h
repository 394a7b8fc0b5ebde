// One step of an optimizer over a range of a parameter and its moments, and the sum of squares that
// gradients are clipped by.

// Calls body(column, lanes, gradient) with gradient * scale, which is 0 without a gradient.
template <typename Body>
void over_gradient(const float* gradient, float scale, std::int64_t count, Body body) {
  const Vec factor = broadcast(scale);
  if (gradient == nullptr)
    over_lanes(count, [&](std::int64_t c, auto lanes) { body(c, lanes, broadcast(0.0f)); });
  else
    over_lanes(count, [&](std::int64_t c, auto lanes) {
      body(c, lanes, load(gradient + c, lanes) * factor);
    });
}

inline void adamw(const AdamwArgs& args) {
  if (args.scale != args.scale) return;
  const Vec beta1 = broadcast(args.beta1);
  const Vec one_minus_beta1 = broadcast(args.one_minus_beta1);
  const Vec beta2 = broadcast(args.beta2);
  const Vec one_minus_beta2 = broadcast(args.one_minus_beta2);
  const Vec decay = broadcast(args.decay);
  const Vec step_size = broadcast(args.step_size);
  const Vec root_correction = broadcast(args.root_correction);
  const Vec eps = broadcast(args.eps);
  over_gradient(args.gradient, args.scale, args.count, [&](std::int64_t c, auto lanes, Vec g) {
    const Vec m =
        unless_below(kSmallestNormal, fma(load(args.m + c, lanes), beta1, g * one_minus_beta1));
    const Vec v =
        unless_below(kSmallestNormal, fma(load(args.v + c, lanes), beta2, g * g * one_minus_beta2));
    const Vec step = m / fma(sqrt(v), root_correction, eps);
    store(args.m + c, m, lanes);
    store(args.v + c, v, lanes);
    store(args.param + c, fnma(step, step_size, load(args.param + c, lanes) * decay), lanes);
  });
}

inline void sgd(const SgdArgs& args) {
  if (args.scale != args.scale) return;
  const Vec rate = broadcast(args.learning_rate);
  const Vec momentum = broadcast(args.momentum);
  const Vec weight_decay = broadcast(args.weight_decay);
  over_gradient(args.gradient, args.scale, args.count, [&](std::int64_t c, auto lanes, Vec g) {
    const Vec param = load(args.param + c, lanes);
    Vec velocity = fma(param, weight_decay, g);
    if (args.velocity != nullptr) {
      velocity = fma(load(args.velocity + c, lanes), momentum, velocity);
      velocity = unless_below(kSmallestNormal, velocity);
      store(args.velocity + c, velocity, lanes);
    }
    store(args.param + c, fnma(velocity, rate, param), lanes);
  });
}

// The sum over one block. Its lanes are 32 on every instruction set, and folded in the same order.
inline double sum_block_squares(const float* x, std::int64_t count) {
  constexpr int kLanes = 32;
  constexpr int kSums = kLanes / kWidth;
  Doubles sums[kSums];
  for (Doubles& one : sums) one = zero_doubles();
  std::int64_t start = 0;
  for (; start + kLanes <= count; start += kLanes)
#pragma GCC unroll 8
    for (int i = 0; i < kSums; ++i) sums[i] = add_squares(sums[i], load(x + start + i * kWidth));
#pragma GCC unroll 8
  for (int i = 0; i < kSums; ++i)
    if (start + i * kWidth < count) {
      const std::int64_t at = start + i * kWidth;
      sums[i] = add_squares(sums[i], load(x + at, first_lanes(count - at)));
    }
  double folded[kLanes];
  for (int i = 0; i < kSums; ++i) store(folded + i * kWidth, sums[i]);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) folded[i] += folded[i + width];
  return folded[0];
}

inline double sum_squares(const float* x, std::int64_t count) {
  double total = 0;
  for (std::int64_t start = 0; start < count; start += kSquaresBlock)
    total += sum_block_squares(x + start, smaller(count - start, kSquaresBlock));
  return total;
}
