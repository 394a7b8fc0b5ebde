// Weights times values in float (weighted_values.inl.h), for attention of whole numbers
// (code_attention.inl.h): values are widened once for all queries, and their scales are factors of
// the weights.

// Keys whose weights are stored at once.
constexpr std::int64_t kWeightGrain = kWidth;

inline std::int64_t value_bytes(std::int64_t lk, std::int64_t d) {
  return packed_size(d, lk) * 4;
}
// A few floats more than the keys need keep rows of a power of two from sharing cache sets.
inline std::int64_t weight_stride(std::int64_t lk) {
  return round_up(lk, kPanel) + kWidth;
}
inline std::int64_t weight_bytes(std::int64_t lk) {
  return kLeftRows * weight_stride(lk) * 4;
}
inline std::int64_t value_sum_bytes() {
  return 0;
}

struct ValueSums {
  const float* values;
  float* weights;
  std::int64_t lk;
  ValueSums(const CodeAttentionArgs& args, const void* value_memory, void* weight_memory, void*)
      : values(static_cast<const float*>(value_memory)),
        weights(static_cast<float*>(weight_memory)),
        lk(args.lk) {}

  // Packs the values and gives each key what its weights are multiplied with.
  static void pack(const CodeAttentionArgs& args, void* value_memory, float* factors) {
    auto* const values = static_cast<float*>(value_memory);
    for (std::int64_t column = 0; column < round_up(args.d, kPanel); column += kWidth) {
      float* const to = values + column / kPanel * kPanel * args.lk + column % kPanel;
      for (std::int64_t j = 0; j < args.lk; ++j) {
        const std::int8_t* const from = args.v + j * args.k_stride + column;
        if (column + kWidth <= args.d)
          store(to + j * kPanel, load_numbers(from));
        else
          for (std::int64_t c = 0; c < kWidth; ++c)
            to[j * kPanel + c] = column + c < args.d ? static_cast<float>(from[c]) : 0.0f;
      }
    }
    for (std::int64_t j = 0; j < args.lk; ++j) factors[j] = args.v_scales[j];
  }

  void store_weights(std::int64_t r, std::int64_t key, const Vec (&of_keys)[1]) const {
    store(weights + r * weight_stride(lk) + key, of_keys[0]);
  }

  // Rows of the result from the weights of the first `keys` keys and their totals.
  void finish(const CodeAttentionArgs& args, std::int64_t row, std::int64_t rows, std::int64_t keys,
              const float* totals) const {
    sum_weighted_values({.lk = lk,
                         .d = args.d,
                         .keys = keys,
                         .weights = weights,
                         .weight_stride = weight_stride(lk),
                         .values = values,
                         .out = args.out + row * args.out_stride,
                         .out_stride = args.out_stride},
                        rows, totals);
  }
};
