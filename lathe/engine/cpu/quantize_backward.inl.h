// The straight-through gradients of rounding to a number format.

// The value where minimum <= x <= maximum, else 0. A NaN counts as inside: it has to show.
inline Vec where_inside(Vec x, Vec minimum, Vec maximum, Vec value) {
  const Vec none = broadcast(0.0f);
  return select(less(x, minimum), none, select(less(maximum, x), none, value));
}

inline void gate(const float* dy, const float* x, float minimum, float maximum, std::int64_t count,
                 float* dx) {
  const Vec low = broadcast(minimum), high = broadcast(maximum);
  over_lanes(count, [&](std::int64_t i, auto lanes) {
    store(dx + i, where_inside(load(x + i, lanes), low, high, load(dy + i, lanes)), lanes);
  });
}

inline float learned_step(const LearnedStepArgs& a) {
  const Vec low = broadcast(a.minimum), high = broadcast(a.maximum);
  const Vec inverse = broadcast(1.0f / a.scale), zero = broadcast(a.zero);
  Vec sums = broadcast(0.0f);
  over_lanes(a.count, [&](std::int64_t i, auto lanes) {
    const Vec x = load(a.x + i, lanes), y = load(a.y + i, lanes), dy = load(a.dy + i, lanes);
    const Vec place = fma(x, inverse, zero);
    sums = fma(dy, y - where_inside(place, low, high, x), sums);
    store(a.dx + i, where_inside(place, low, high, dy), lanes);
  });
  return sum(sums) / a.scale;
}
