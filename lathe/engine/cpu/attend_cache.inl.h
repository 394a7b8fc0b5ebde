// Attention of one token to the rows of a cache, for the query heads that share a head of keys.
// Nothing is packed: every key and value is read once for all of them, where it lies and as it
// lies.

// What a cache holds of one head, row after row: `at` are features of a row from c on, times
// `worth` what they were.
struct FloatRows {
  const std::byte* first;
  std::int64_t stride, d;

  const float* row(std::int64_t j) const {
    return reinterpret_cast<const float*>(first + j * stride);
  }
  template <typename Lanes>
  Vec at(std::int64_t j, std::int64_t c, Lanes lanes) const {
    return load(row(j) + c, lanes);
  }
  float worth(std::int64_t) const { return 1.0f; }
};

inline Vec load_narrow(const std::uint16_t* from) {
  return load_bf16(from);
}
inline Vec load_narrow(const std::int8_t* from) {
  return load_numbers(from);
}

// Rows of narrower numbers, with a scale each or without.
template <typename Number>
struct NarrowRows {
  const std::byte* first;
  std::int64_t stride, d;
  const std::byte* scales;  // or null

  const Number* row(std::int64_t j) const {
    return reinterpret_cast<const Number*>(first + j * stride);
  }
  Vec at(std::int64_t j, std::int64_t c, Whole) const { return load_narrow(row(j) + c); }
  // Those behind the last of a row may be nobody's.
  template <typename Lanes>
  Vec at(std::int64_t j, std::int64_t c, Lanes) const {
    Number numbers[kWidth] = {};
    for (std::int64_t i = 0; i < d - c; ++i) numbers[i] = row(j)[c + i];
    return load_narrow(numbers);
  }
  float worth(std::int64_t j) const {
    float scale = 1.0f;
    if (scales != nullptr) __builtin_memcpy(&scale, scales + j * stride, sizeof scale);
    return scale;
  }
};

// Calls visit(keys, values) with the rows as they are kept.
template <typename Visit>
inline void visit_cache(const CacheRows& cache, Visit visit) {
  const std::int64_t stride = cache.stride, d = cache.d;
  switch (cache.kind) {
    case CacheKind::Float:
      return visit(FloatRows{cache.k, stride, d}, FloatRows{cache.v, stride, d});
    case CacheKind::Bf16:
      return visit(NarrowRows<std::uint16_t>{cache.k, stride, d, nullptr},
                   NarrowRows<std::uint16_t>{cache.v, stride, d, nullptr});
    case CacheKind::Int8:
      return visit(NarrowRows<std::int8_t>{cache.k, stride, d, cache.k + cache.scales},
                   NarrowRows<std::int8_t>{cache.v, stride, d, cache.v + cache.scales});
  }
}

inline std::int64_t attend_cache_scratch_size(std::int64_t lk, std::int64_t group) {
  return group * score_stride(lk);
}

// Query heads whose sums are kept in registers at a time.
constexpr std::int64_t kCacheHeads = 4;
// A row of a head is a few lines far from the next one's: nobody guesses where. Values are asked
// for while their keys are met.
constexpr std::int64_t kRowsAhead = 12;

template <typename Rows>
[[gnu::always_inline]] inline void ask_for_row(const Rows& rows, std::int64_t j) {
  constexpr std::int64_t kLine = 64;
  const auto* const begin = reinterpret_cast<const char*>(rows.row(j));
  const auto* const end = reinterpret_cast<const char*>(rows.row(j) + rows.d);
  for (const char* line = begin; line < end; line += kLine) ask_to_read_now(line);
}

// scores[h, j] = scale q[h] . k[j] for `Heads` query heads.
template <int Heads, typename Rows>
inline void score_cache(const AttendCacheArgs& args, const Rows& keys, const Rows& values,
                        const float* q, float* scores) {
  const std::int64_t d = keys.d, stride = score_stride(args.lk);
  for (std::int64_t j = 0; j < args.lk; ++j) {
    ask_for_row(keys, smaller(j + kRowsAhead, args.lk - 1));
    ask_for_row(values, j);
    Vec sums[Heads];
    for (Vec& total : sums) total = broadcast(0.0f);
    over_lanes(d, [&](std::int64_t c, auto lanes) {
      const Vec part = keys.at(j, c, lanes);
      for (int h = 0; h < Heads; ++h) sums[h] = fma(load(q + h * d + c, lanes), part, sums[h]);
    });
    const float factor = args.scale * keys.worth(j);
    for (int h = 0; h < Heads; ++h) scores[h * stride + j] = factor * sum(sums[h]);
  }
}

// out[h] = sum over j of weights[h, j] v[j], divided by totals[h], `Vectors` vectors of features at
// a time: rows are read from their beginning to their end.
template <int Heads, int Vectors, typename Rows, typename Lanes>
[[gnu::always_inline]] inline void sum_features(const AttendCacheArgs& args, const Rows& values,
                                                const float* weights, const float* totals,
                                                std::int64_t c, Lanes lanes, float* out) {
  const std::int64_t stride = score_stride(args.lk);
  Vec sums[Heads][Vectors];
  for (auto& of_head : sums)
    for (Vec& total : of_head) total = broadcast(0.0f);
  for (std::int64_t j = 0; j < args.lk; ++j) {
    const float worth = values.worth(j);
    Vec shares[Heads];
    for (int h = 0; h < Heads; ++h) shares[h] = broadcast(weights[h * stride + j] * worth);
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const Vec part = values.at(j, c + v * kWidth, lanes);
      for (int h = 0; h < Heads; ++h) sums[h][v] = fma(shares[h], part, sums[h][v]);
    }
  }
  for (int h = 0; h < Heads; ++h)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      store(out + h * values.d + c + v * kWidth, sums[h][v] / broadcast(totals[h]), lanes);
}

template <int Heads, typename Rows>
inline void sum_cache(const AttendCacheArgs& args, const Rows& values, const float* weights,
                      const float* totals, float* out) {
  constexpr int kVectors = 4;
  std::int64_t c = 0;
  for (; c + kVectors * kWidth <= values.d; c += kVectors * kWidth)
    sum_features<Heads, kVectors>(args, values, weights, totals, c, Whole{}, out);
  for (; c + kWidth <= values.d; c += kWidth)
    sum_features<Heads, 1>(args, values, weights, totals, c, Whole{}, out);
  if (c < values.d)
    sum_features<Heads, 1>(args, values, weights, totals, c, first_lanes(values.d - c), out);
}

template <int Heads, typename Rows>
inline void attend_cache_heads(const AttendCacheArgs& args, const Rows& keys, const Rows& values,
                               std::int64_t head) {
  const std::int64_t place = head * keys.d;
  score_cache<Heads>(args, keys, values, args.q + place, args.scratch);
  float totals[Heads];
  for (int h = 0; h < Heads; ++h)
    totals[h] =
        weigh_row(args.scratch + h * score_stride(args.lk), nullptr, args.lk, args.lk, nullptr);
  sum_cache<Heads>(args, values, args.scratch, totals, args.out + place);
}

inline void attend_cache(const AttendCacheArgs& args) {
  visit_cache(args.cache, [&](const auto& keys, const auto& values) {
    std::int64_t head = 0;
    for (; head + kCacheHeads <= args.group; head += kCacheHeads)
      attend_cache_heads<kCacheHeads>(args, keys, values, head);
    for (; head < args.group; ++head) attend_cache_heads<1>(args, keys, values, head);
  });
}

// The rows of a head as floats, for whoever packs them: k and v, [rows, d] each.
inline void widen_cache(const CacheRows& cache, std::int64_t rows, float* k, float* v) {
  visit_cache(cache, [&](const auto& keys, const auto& values) {
    const auto widen = [&](const auto& from, std::int64_t j, float* to) {
      const Vec worth = broadcast(from.worth(j));
      over_lanes(from.d, [&](std::int64_t c, auto lanes) {
        store(to + c, from.at(j, c, lanes) * worth, lanes);
      });
    };
    for (std::int64_t j = 0; j < rows; ++j) {
      widen(keys, j, k + j * cache.d);
      widen(values, j, v + j * cache.d);
    }
  });
}

inline void round_to_bf16(const float* from, std::int64_t count, std::uint16_t* to) {
  over_lanes(count, [&](std::int64_t c, auto lanes) {
    std::uint16_t numbers[kWidth];
    store_bf16(numbers, load(from + c, lanes));
    const std::int64_t inside = smaller(count - c, kWidth);
    for (std::int64_t i = 0; i < inside; ++i) to[c + i] = numbers[i];
  });
}
