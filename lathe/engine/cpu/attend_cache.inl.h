// Attention of one token to the rows of a cache, for the query heads that share a head of keys.
// Nothing is packed: every key and value is read once for all of them, where it lies.

inline std::int64_t attend_cache_scratch_size(std::int64_t lk, std::int64_t group) {
  return group * score_stride(lk);
}

// Query heads whose sums are kept in registers at a time.
constexpr std::int64_t kCacheHeads = 4;

// scores[h, j] = scale q[h] . k[j] for `Heads` query heads.
template <int Heads>
inline void score_cache(const AttendCacheArgs& args, const float* q, float* scores) {
  const std::int64_t stride = score_stride(args.lk);
  for (std::int64_t j = 0; j < args.lk; ++j) {
    const float* const key = args.k + j * args.stride;
    Vec sums[Heads];
    for (Vec& total : sums) total = broadcast(0.0f);
    over_lanes(args.d, [&](std::int64_t c, auto lanes) {
      const Vec part = load(key + c, lanes);
      for (int h = 0; h < Heads; ++h) sums[h] = fma(load(q + h * args.d + c, lanes), part, sums[h]);
    });
    for (int h = 0; h < Heads; ++h) scores[h * stride + j] = args.scale * sum(sums[h]);
  }
}

// out[h] = sum over j of weights[h, j] v[j], divided by totals[h], a vector of features at a time.
template <int Heads>
inline void sum_cache(const AttendCacheArgs& args, const float* weights, const float* totals,
                      float* out) {
  const std::int64_t stride = score_stride(args.lk);
  over_lanes(args.d, [&](std::int64_t c, auto lanes) {
    Vec sums[Heads];
    for (Vec& total : sums) total = broadcast(0.0f);
    for (std::int64_t j = 0; j < args.lk; ++j) {
      const Vec part = load(args.v + j * args.stride + c, lanes);
      for (int h = 0; h < Heads; ++h)
        sums[h] = fma(broadcast(weights[h * stride + j]), part, sums[h]);
    }
    for (int h = 0; h < Heads; ++h)
      store(out + h * args.d + c, sums[h] / broadcast(totals[h]), lanes);
  });
}

template <int Heads>
inline void attend_cache_heads(const AttendCacheArgs& args, const float* q, float* out) {
  score_cache<Heads>(args, q, args.scratch);
  float totals[Heads];
  for (int h = 0; h < Heads; ++h)
    totals[h] =
        weigh_row(args.scratch + h * score_stride(args.lk), nullptr, args.lk, args.lk, nullptr);
  sum_cache<Heads>(args, args.scratch, totals, out);
}

inline void attend_cache(const AttendCacheArgs& args) {
  std::int64_t head = 0;
  for (; head + kCacheHeads <= args.group; head += kCacheHeads)
    attend_cache_heads<kCacheHeads>(args, args.q + head * args.d, args.out + head * args.d);
  for (; head < args.group; ++head)
    attend_cache_heads<1>(args, args.q + head * args.d, args.out + head * args.d);
}
