// Functions of one and two arguments over arrays, and the sum of embedding rows.

template <typename F>
void map(const float* x, std::int64_t count, float* y, F f) {
  over_lanes(count,
             [&](std::int64_t c, auto lanes) { store(y + c, f(load(x + c, lanes)), lanes); });
}

// Calls visit(f) with the function as a type of its own, so that the loop in `visit` is compiled
// for each function.
template <typename Visit>
void with_function(Unary op, Visit visit) {
  switch (op) {
    case Unary::None:
      return visit([](Vec a) { return a; });
    case Unary::Relu:
      return visit([](Vec a) { return max(broadcast(0.0f), a); });
    case Unary::GeluErf:
      return visit([](Vec a) { return gelu_erf(a); });
    case Unary::GeluTanh:
      return visit([](Vec a) { return gelu_tanh(a); });
    case Unary::Tanh:
      return visit([](Vec a) { return tanh(a); });
    case Unary::Sigmoid:
      return visit([](Vec a) { return sigmoid(a); });
    case Unary::Silu:
      return visit([](Vec a) { return silu(a); });
    case Unary::QuickGelu:
      return visit([](Vec a) { return quick_gelu(a); });
    case Unary::Exp:
      return visit([](Vec a) { return exp(a); });
    case Unary::Erf:
      return visit([](Vec a) { return erf(a); });
    case Unary::Log:
      return visit([](Vec a) { return log(a); });
    case Unary::Negate:
      return visit([](Vec a) { return negate(a); });
    case Unary::Abs:
      return visit([](Vec a) { return abs(a); });
    case Unary::Sqrt:
      return visit([](Vec a) { return sqrt(a); });
    case Unary::Reciprocal:
      return visit([](Vec a) { return broadcast(1.0f) / a; });
  }
}

inline void unary(Unary op, const float* x, std::int64_t count, float* y) {
  with_function(op, [&](auto f) { map(x, count, y, f); });
}

// Zero times a number is NaN where the number is not finite, and NaN stays in a sum. Four sums,
// because one would wait for itself.
inline bool is_finite(const float* x, std::int64_t count) {
  const Vec zero = broadcast(0.0f);
  Vec sums[4] = {zero, zero, zero, zero};
  std::int64_t i = 0;
  for (; i + 4 * kWidth <= count; i += 4 * kWidth)
#pragma GCC unroll 4
    for (int s = 0; s < 4; ++s) sums[s] = fma(load(x + i + s * kWidth), zero, sums[s]);
  over_lanes(count - i, [&](std::int64_t c, auto lanes) {
    sums[0] = fma(load(x + i + c, lanes), zero, sums[0]);
  });
  return sum(sums[0] + sums[1] + (sums[2] + sums[3])) == 0.0f;
}

// An operand whose elements lie side by side, or one number repeated along the row.
struct Row {
  const float* data;
  template <typename Lanes>
  Vec at(std::int64_t column, Lanes lanes) const {
    return load(data + column, lanes);
  }
};
struct Repeated {
  Vec value;
  template <typename Lanes>
  Vec at(std::int64_t, Lanes) const {
    return value;
  }
};

template <typename F>
void combine(const BinaryArgs& args, F f) {
  if (args.n == 0) return;
  for (std::int64_t r = 0; r < args.rows; ++r) {
    float* y = args.y + r * args.y_stride;
    const auto write = [&](auto a, auto b) {
      over_lanes(args.n, [&](std::int64_t c, auto lanes) {
        store(y + c, f(a.at(c, lanes), b.at(c, lanes)), lanes);
      });
    };
    const Row a{args.a.data + r * args.a.row_stride};
    const Row b{args.b.data + r * args.b.row_stride};
    const Repeated one_a{broadcast(*a.data)};
    const Repeated one_b{broadcast(*b.data)};
    if (args.a.step != 0 && args.b.step != 0)
      write(a, b);
    else if (args.a.step != 0)
      write(a, one_b);
    else if (args.b.step != 0)
      write(one_a, b);
    else
      write(one_a, one_b);
  }
}

// The hardware's min and max give their second argument for NaN; this lets the first count as well.
inline Vec unless_nan(Vec a, Vec result) {
  return select(is_nan(a), a, result);
}

inline void binary(const BinaryArgs& args) {
  switch (args.op) {
    case Binary::Add:
      return combine(args, [](Vec a, Vec b) { return a + b; });
    case Binary::Subtract:
      return combine(args, [](Vec a, Vec b) { return a - b; });
    case Binary::Multiply:
      return combine(args, [](Vec a, Vec b) { return a * b; });
    case Binary::Divide:
      return combine(args, [](Vec a, Vec b) { return a / b; });
    case Binary::Min:
      return combine(args, [](Vec a, Vec b) { return unless_nan(a, min(a, b)); });
    case Binary::Max:
      return combine(args, [](Vec a, Vec b) { return unless_nan(a, max(a, b)); });
  }
}

inline void embedding_sum(const EmbeddingSumArgs& args) {
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const float* from[kMaxEmbeddingTables];
    for (int t = 0; t < args.num_tables; ++t)
      from[t] = args.tables[t] + std::int64_t{args.ids[t][r]} * args.n;
    float* y = args.y + r * args.y_stride;
    over_lanes(args.n, [&](std::int64_t c, auto lanes) {
      Vec total = load(from[0] + c, lanes);
      for (int t = 1; t < args.num_tables; ++t) total = total + load(from[t] + c, lanes);
      store(y + c, total, lanes);
    });
  }
}
