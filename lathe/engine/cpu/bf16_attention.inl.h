// Softmax attention of one head over one sequence whose operands are bfloat16 numbers, for a file
// that has included softmax.inl.h and bf16_gemm.inl.h: scores of a tile of queries against all its
// keys, their exponentials rounded to bfloat16, and those times the values. Sums are float
// throughout.
//
// Rows of a product do not depend on each other, so a row has the same bits in any range. As in
// attention.inl.h tiles are cut from the whole sequence and say which keys are looked at.

constexpr float kLogarithm = 1.44269504088896341f;  // of e to the base 2

// 2^f for |f| <= 1/2, within 7.5e-5 of it: a minimax fit, and less than a fiftieth of what
// rounding to eight bits may change.
inline Vec short_exp2_near_zero(Vec f) {
  Vec p = broadcast(0.0551716685295105f);
  p = fma(p, f, broadcast(0.2426111251115799f));
  p = fma(p, f, broadcast(0.6932609677314758f));
  return fma(p, f, broadcast(0.9999280571937561f));
}

// 2^x for x <= 0, and 0 below `lowest`, so that no weight is subnormal.
inline Vec short_exp2_weight(Vec x, float lowest) {
  const Vec above = max(broadcast(lowest), x);
  const Vec n_bits = above + broadcast(kRounder);
  const Vec weight = add_exponent(short_exp2_near_zero(above - (n_bits - broadcast(kRounder))),
                                  exponent_or_sign(n_bits));
  return select(less(x, broadcast(lowest)), broadcast(0.0f), weight);
}

// Keys are scored in panels and weighed up to a whole step of the second product.
constexpr std::int64_t kKeyGrain = kPanel > kDepthGrain ? kPanel : kDepthGrain;
static_assert(Bf16Kernels::kMostHeadSize <= kPairDepth);
static_assert(kKeyGrain % kPanel == 0 && kKeyGrain % kDepthGrain == 0);

// Where the parts of the caller's scratch begin, in bytes.
struct Bf16AttentionScratch {
  std::int64_t score_panel;   // floats of a panel of scores: kPanel keys of a tile's queries
  std::int64_t weight_piece;  // numbers of a piece of the weights: kPairDepth keys
  std::int64_t values, queries, weights, scores, sums, keep, size;
  Bf16AttentionScratch(std::int64_t lk, std::int64_t d) {
    const auto lines = [](std::int64_t bytes) { return round_up(bytes, 64); };
    const std::int64_t pieces = (lk + kPairDepth - 1) / kPairDepth;
    score_panel = kPairRows * kPanel;
    weight_piece = kPairRows * kLeftStride;
    values = lines(bf16_packed_size(lk, d) * 2);
    queries = values + lines(bf16_packed_size(d, lk) * 2);
    weights = queries + lines(kPairRows * kLeftStride * 2);
    scores = weights + lines(pieces * weight_piece * 2);
    sums = scores + round_up(lk, kKeyGrain) * kPairRows * 4;
    keep = sums + score_panel * 4;
    size = keep + round_up(lk, kKeyGrain) * 4;
  }
};

inline std::int64_t bf16_attention_scratch_bytes(std::int64_t lk, std::int64_t d) {
  return Bf16AttentionScratch(lk, d).size;
}

inline std::int64_t bf16_attention_packed_bytes(std::int64_t lk, std::int64_t d) {
  return Bf16AttentionScratch(lk, d).queries;
}

inline void bf16_attention_pack(const Bf16AttentionArgs& args, void* packed) {
  auto* const keys = static_cast<std::uint16_t*>(packed);
  std::uint16_t* const values = keys + Bf16AttentionScratch(args.lk, args.d).values / 2;
  const auto pack_keys = [&](const auto* k) {
    bf16_pack(k, args.lk, args.d, args.k_stride, 1, keys);
  };
  const auto pack_values = [&](const auto* v) {
    bf16_pack(v, args.d, args.lk, 1, args.v_stride, values);
  };
  args.narrow_k != nullptr ? pack_keys(args.narrow_k) : pack_keys(args.k);
  args.narrow_v != nullptr ? pack_values(args.narrow_v) : pack_values(args.v);
}

inline std::int64_t bf16_attention_tile(std::int64_t lq, std::int64_t row) {
  const PairTiles tiles(lq);
  return tiles.begin(tiles.holding(row));
}

struct Bf16AttentionParts {
  const std::uint16_t *keys, *values;
  std::uint16_t *queries, *weights;
  float *scores, *sums, *keep;
  bool has_masked = false;  // else a mask says nothing, as in a full row
  Bf16AttentionParts(const Bf16AttentionArgs& args, const Bf16AttentionScratch& layout) {
    auto* const memory = reinterpret_cast<unsigned char*>(args.scratch);
    keys = static_cast<const std::uint16_t*>(args.packed != nullptr ? args.packed : memory);
    values = keys + layout.values / 2;
    queries = reinterpret_cast<std::uint16_t*>(memory + layout.queries);
    weights = reinterpret_cast<std::uint16_t*>(memory + layout.weights);
    scores = reinterpret_cast<float*>(memory + layout.scores);
    sums = reinterpret_cast<float*>(memory + layout.sums);
    keep = reinterpret_cast<float*>(memory + layout.keep);
    if (args.keep != nullptr)
      for (std::int64_t j = 0; j < args.lk; ++j) has_masked = has_masked || args.keep[j] == 0;
  }
};

// Weights of query `r` of a tile for its first `visible` keys, still to be divided by the sum
// returned; those after them are 0 up to `extent`. `score_at(column, lanes)` gives scores of 2 to
// the power, `-infinity` where lanes or keys do not count.
template <typename ScoreAt>
[[gnu::always_inline]] inline float weigh_bf16_keys(const Bf16AttentionScratch& layout,
                                                    std::uint16_t* weights, std::int64_t visible,
                                                    std::int64_t extent, float top,
                                                    ScoreAt score_at) {
  constexpr float kLowest = kLowestAttentionScore * kLogarithm;
  const Vec top_lanes = broadcast(top);
  Vec sums = broadcast(0.0f);
  std::int64_t panel = 0;
  const auto weigh = [&](std::int64_t c, auto lanes) {
    const Vec weight = short_exp2_weight(score_at(panel + c, lanes) - top_lanes, kLowest);
    sums = sums + weight;
    store_bf16(weights + panel / kPairDepth * layout.weight_piece + panel % kPairDepth + c, weight);
  };
  for (; panel + kPanel <= visible; panel += kPanel)
    for (std::int64_t c = 0; c < kPanel; c += kWidth) weigh(c, Whole{});
  for (; panel < extent; panel += kPanel)
    for (std::int64_t c = 0; c < kPanel; c += kWidth)
      weigh(c, first_lanes(visible > panel + c ? visible - panel - c : 0));
  return sum(sums);
}

inline float weigh_bf16_row(const Bf16AttentionArgs& args, const Bf16AttentionScratch& layout,
                            const Bf16AttentionParts& parts, std::int64_t r, std::int64_t visible,
                            std::int64_t extent) {
  const float* const scores = parts.scores + r * kPanel;
  std::uint16_t* const weights = parts.weights + r * kLeftStride;
  const Vec scale = broadcast(args.scale * kLogarithm);
  const Vec nothing = broadcast(-kInfinity);
  const auto visible_score = [&](std::int64_t c, auto lanes) {
    return select(lanes, load(scores + c / kPanel * layout.score_panel + c % kPanel) * scale,
                  nothing);
  };
  return weigh_kept(parts.has_masked ? parts.keep : nullptr, visible, visible_score,
                    [&](float top, auto score_at) {
                      return weigh_bf16_keys(layout, weights, visible, extent, top, score_at);
                    });
}

inline void attend_bf16_tile(const Bf16AttentionArgs& args, const Bf16AttentionScratch& layout,
                             const Bf16AttentionParts& parts, std::int64_t row, std::int64_t rows,
                             std::int64_t keys) {
  for (std::int64_t r = 0; r < rows; ++r) {
    std::uint16_t* const query = parts.queries + r * kLeftStride;
    const std::int64_t place = (row + r) * args.q_stride;
    if (args.narrow_q != nullptr)
      round_row(args.narrow_q + place, args.d, query);
    else
      round_row(args.q + place, args.d, query);
    clear_row(query, args.d, round_up(args.d, kDepthGrain));
  }
  for (std::int64_t j = 0; j < keys; j += kPanel)
    multiply_pairs({.depth = round_up(args.d, kDepthGrain),
                    .left = parts.queries,
                    .left_stride = kLeftStride,
                    .right = parts.keys + bf16_packed_size(j, args.d),
                    .sums = parts.scores + j / kPanel * layout.score_panel,
                    .accumulate = false},
                   rows);

  const std::int64_t extent = round_up(keys, kKeyGrain);
  float shares[kPairRows];
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t visible = args.causal ? row + r + 1 + (args.lk - args.lq) : args.lk;
    shares[r] = 1.0f / weigh_bf16_row(args, layout, parts, r, visible, extent);
  }

  for (std::int64_t column = 0; column < args.d; column += kPanel) {
    for (std::int64_t from = 0; from < keys; from += kPairDepth)
      multiply_pairs({.depth = round_up(smaller(keys - from, kPairDepth), kDepthGrain),
                      .left = parts.weights + from / kPairDepth * layout.weight_piece,
                      .left_stride = kLeftStride,
                      .right = parts.values + bf16_packed_size(column, args.lk) + from * kPanel,
                      .sums = parts.sums,
                      .accumulate = from > 0},
                     rows);
    const std::int64_t columns = smaller(args.d - column, kPanel);
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* const sums = parts.sums + r * kPanel;
      const std::int64_t place = (row + r) * args.out_stride + column;
      const Vec share = broadcast(shares[r]);
      over_lanes(columns, [&](std::int64_t c, auto lanes) {
        const Vec value = load(sums + c) * share;
        if (args.narrow_out != nullptr)
          store_bf16(args.narrow_out + place + c, value, columns - c);
        else
          store(args.out + place + c, near_bf16(value), lanes);
      });
    }
  }
}

inline void bf16_attention(const Bf16AttentionArgs& args) {
  if (args.q_begin >= args.q_end || args.lk == 0) return;
  const Bf16AttentionScratch layout(args.lk, args.d);
  const Bf16AttentionParts parts(args, layout);
  if (args.packed == nullptr) bf16_attention_pack(args, args.scratch);
  if (parts.has_masked)
    for (std::int64_t j = 0; j < round_up(args.lk, kKeyGrain); ++j)
      parts.keep[j] = j < args.lk && args.keep[j] != 0 ? 1.0f : 0.0f;

  const TileSession session;
  const PairTiles tiles(args.lq);
  for (std::int64_t t = 0; t < tiles.count; ++t) {
    const std::int64_t end = tiles.begin(t + 1);
    const std::int64_t from = tiles.begin(t) > args.q_begin ? tiles.begin(t) : args.q_begin;
    const std::int64_t to = smaller(end, args.q_end);
    if (from >= to) continue;
    const std::int64_t keys = args.causal ? end + (args.lk - args.lq) : args.lk;
    attend_bf16_tile(args, layout, parts, from, to - from, keys);
  }
}
