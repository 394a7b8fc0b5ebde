// The end of softmax attention in float, for a file that has included gemm.inl.h: weights of a tile
// of queries times the values, divided by what the weights add up to.

struct WeightedValues {
  std::int64_t lk, d;
  std::int64_t keys;     // the first of lk, which are looked at
  const float* weights;  // a row for each query
  std::int64_t weight_stride;
  const float* values;  // packed: n = d, k = lk
  float* out;
  std::int64_t out_stride;
};

inline void sum_weighted_values(const WeightedValues& args, std::int64_t rows,
                                const float* totals) {
  for (std::int64_t column = 0; column < args.d; column += kPanel)
    multiply_tile({.k = args.keys,
                   .x = args.weights,
                   .x_stride = args.weight_stride,
                   .panel = args.values + column * args.lk,
                   .y = args.out + column,
                   .y_stride = args.out_stride,
                   .columns = smaller(args.d - column, kPanel),
                   .bias = nullptr,
                   .scale = 1.0f,
                   .accumulate = false},
                  rows);
  for (std::int64_t r = 0; r < rows; ++r) {
    const Vec total = broadcast(totals[r]);
    float* const y = args.out + r * args.out_stride;
    map(y, args.d, y, [&](Vec a) { return a / total; });
  }
}
