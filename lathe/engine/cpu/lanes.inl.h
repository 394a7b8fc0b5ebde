// Walking along a row: whole vectors first, then one that is partly filled. The body is compiled
// for each, because masked loads and stores are slow on some processors; an element's result is the
// same in either.

// The mask of a vector that is entirely inside its row.
struct Whole {};
inline Vec load(const float* from, Whole) {
  return load(from);
}
inline void store(float* to, Vec a, Whole) {
  store(to, a);
}
inline Vec select(Whole, Vec yes, Vec) {
  return yes;
}

// Calls body(column, lanes) for the columns 0, kWidth, 2 kWidth, ... below n.
// Always inlined with its body, so that sums the body captures live in registers.
template <typename Body>
[[gnu::always_inline]] inline void over_lanes(std::int64_t n, Body body) {
  std::int64_t column = 0;
  for (; column + kWidth <= n; column += kWidth) body(column, Whole{});
  if (column < n) body(column, first_lanes(n - column));
}
