// Softmax attention of one head over one sequence, by tiles of query rows: the scores of a tile
// against all its keys, their exponentials in place, then those times the values.
//
// The tiles are cut from the whole sequence, whatever range of it is asked for, and the keys a tile
// looks at follow from the tile, so a row is computed the same way in every range.

// The parts of the caller's scratch.
struct AttentionScratch {
  const float* keys;    // k transposed and packed: n = lk, k = d
  const float* values;  // v packed: n = d, k = lk
  float* keep;          // 1 or 0 for each key, 0 to the end of the last vector
  bool has_masked;
  float* scores;  // kTileRows rows
  std::int64_t score_stride;
};

// A few floats more than the keys need keep rows of a power of two from sharing cache sets.
inline std::int64_t score_stride(std::int64_t lk) {
  return round_up(lk, kPanel) + kWidth;
}

inline std::int64_t attention_packed_size(std::int64_t lk, std::int64_t d) {
  return packed_size(lk, d) + packed_size(d, lk);
}

inline std::int64_t attention_packed_bytes(std::int64_t lk, std::int64_t d) {
  return attention_packed_size(lk, d) * 4;
}

inline void attention_pack(const AttentionArgs& args, void* packed) {
  auto* const keys = static_cast<float*>(packed);
  pack_b(args.k, args.lk, args.d, args.k_stride, 1, keys);
  pack_b(args.v, args.d, args.lk, 1, args.v_stride, keys + packed_size(args.lk, args.d));
}

inline std::int64_t attention_tile(std::int64_t lq, std::int64_t row) {
  const RowTiles tiles(lq);
  return tiles.begin(tiles.holding(row));
}

inline std::int64_t attention_scratch_size(std::int64_t, std::int64_t lk, std::int64_t d) {
  return attention_packed_size(lk, d) + (kTileRows + 1) * score_stride(lk);
}

// Whether some key does not count: in a full row all do, and a mask says nothing.
inline bool has_masked_keys(const AttentionArgs& args) {
  bool all_kept = true;
  if (args.keep != nullptr)
    for (std::int64_t j = 0; j < args.lk; ++j) all_kept = all_kept && args.keep[j] != 0;
  return !all_kept;
}

inline AttentionScratch divide_scratch(const AttentionArgs& args) {
  AttentionScratch scratch;
  scratch.has_masked = has_masked_keys(args);
  scratch.score_stride = score_stride(args.lk);
  scratch.keys = args.packed != nullptr ? static_cast<const float*>(args.packed) : args.scratch;
  scratch.values = scratch.keys + packed_size(args.lk, args.d);
  scratch.keep = args.scratch + attention_packed_size(args.lk, args.d);
  scratch.scores = scratch.keep + scratch.score_stride;
  return scratch;
}

// Turns the first `visible` scores of a row into weights that are still to be divided by the sum
// returned, and the rest up to `extent` into 0. `keep` may be null.
inline float weigh_row(float* scores, const float* keep, std::int64_t visible, std::int64_t extent,
                       float* log_sum_exp) {
  // The score of a key that does not count is -infinity, whose weight is 0.
  const Vec nothing = broadcast(-kInfinity);
  const auto visible_score = [&](std::int64_t c, auto lanes) {
    return select(lanes, load(scores + c, lanes), nothing);
  };
  const auto kept_score = [&](std::int64_t c, auto lanes) {
    const Mask kept = less(broadcast(0.0f), load(keep + c, lanes));
    return select(kept, load(scores + c, lanes), nothing);
  };
  // The vector in which the visible keys end is stored whole, its other lanes 0.
  const auto write = [&](std::int64_t c, auto, Vec weights) { store(scores + c, weights); };

  const bool any_kept = keep == nullptr || largest_score(visible, [&](std::int64_t c, auto lanes) {
                                             return load(keep + c, lanes);
                                           }) > 0.0f;
  float top = 0.0f;
  float total = 0.0f;
  if (keep == nullptr) {
    top = largest_score(visible, visible_score);
    total = weigh_scores(visible, top, visible_score, write, kLowestAttentionScore);
  } else if (any_kept) {
    top = largest_score(visible, kept_score);
    total = weigh_scores(visible, top, kept_score, write, kLowestAttentionScore);
  } else {
    const auto equal = [&](std::int64_t, auto lanes) {
      return select(lanes, broadcast(0.0f), nothing);
    };
    total = weigh_scores(visible, top, equal, write);
  }
  for (std::int64_t c = round_up(visible, kWidth); c < extent; c += kWidth)
    store(scores + c, broadcast(0.0f));
  if (log_sum_exp != nullptr) *log_sum_exp = any_kept ? top + log_of(total) : -__FLT_MAX__;
  return total;
}

// From exponentials and their sum to weights, rounded where the query sees keys. Lanes after the
// last such key stay 0.
inline void round_row(const WeightRounding& rounding, const std::uint8_t* keep, float* weights,
                      std::int64_t visible, float total) {
  const Vec share = broadcast(1.0f / total);
  for (std::int64_t c = 0; c < visible; c += kWidth) store(weights + c, load(weights + c) * share);
  rounding.round(rounding.context, weights, keep, visible);
}

// Calls body(column, kept) for the vectors of keys that hold the first `visible` ones, `kept` being
// the weights of query `row` that dropout leaves.
template <typename Body>
[[gnu::always_inline]] inline void over_kept_keys(const Dropout& dropout, const PhiloxKeys& keys,
                                                  std::uint32_t head, std::uint32_t example,
                                                  std::int64_t row, std::int64_t visible,
                                                  Body body) {
  const std::uint32_t counter[4] = {dropout.site << 16 | head,
                                    static_cast<std::uint32_t>(row) << 16, example, dropout.step};
  over_kept_lanes<1>(counter, keys, dropout.threshold, round_up(visible, kWidth),
                     [&](std::int64_t c, auto, Mask kept) { body(c, kept); });
}

inline void attend_tile(const AttentionArgs& args, const AttentionScratch& scratch,
                        const PhiloxKeys& random_keys, std::int64_t row, std::int64_t rows,
                        std::int64_t keys) {
  for (std::int64_t j = 0; j < keys; j += kPanel)
    multiply_tile({.k = args.d,
                   .x = args.q + row * args.q_stride,
                   .x_stride = args.q_stride,
                   .panel = scratch.keys + j * args.d,
                   .y = scratch.scores + j,
                   .y_stride = scratch.score_stride,
                   .columns = kPanel,  // beyond lk the packed keys and so the scores are 0
                   .bias = nullptr,
                   .scale = args.scale,
                   .accumulate = false},
                  rows);

  const float* keep = scratch.has_masked ? scratch.keep : nullptr;
  float totals[kTileRows];
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t visible = args.causal ? row + r + 1 + (args.lk - args.lq) : args.lk;
    float* scores = scratch.scores + r * scratch.score_stride;
    totals[r] = weigh_row(scores, keep, visible, keys,
                          args.row_log_sum_exp ? args.row_log_sum_exp + row + r : nullptr);
    if (args.rounding.round != nullptr) {
      round_row(args.rounding, args.keep, scores, visible, totals[r]);
      totals[r] = 1.0f;
    }
    if (args.dropout.threshold == 0) continue;
    over_kept_keys(args.dropout, random_keys, args.head, args.example, row + r, visible,
                   [&](std::int64_t c, Mask kept) {
                     store(scores + c, select(kept, load(scores + c), broadcast(0.0f)));
                   });
    // The kept weights are scaled up by scaling their sum down, unless there are none.
    if (args.dropout.threshold < 65536)
      totals[r] *= static_cast<float>(65536 - args.dropout.threshold) / 65536.0f;
  }

  sum_weighted_values({.lk = args.lk,
                       .d = args.d,
                       .keys = keys,
                       .weights = scratch.scores,
                       .weight_stride = scratch.score_stride,
                       .values = scratch.values,
                       .out = args.out + row * args.out_stride,
                       .out_stride = args.out_stride},
                      rows, totals);
}

inline void attention(const AttentionArgs& args) {
  if (args.q_begin >= args.q_end || args.lk == 0) return;
  const AttentionScratch scratch = divide_scratch(args);
  if (args.packed == nullptr) attention_pack(args, args.scratch);
  if (scratch.has_masked)
    for (std::int64_t j = 0; j < scratch.score_stride; ++j)
      scratch.keep[j] = j < args.lk && args.keep[j] != 0 ? 1.0f : 0.0f;

  const PhiloxKeys random_keys(args.dropout.seed);
  const RowTiles tiles(args.lq);
  for (std::int64_t t = 0; t < tiles.count; ++t) {
    const std::int64_t end = tiles.begin(t + 1);
    const std::int64_t from = tiles.begin(t) > args.q_begin ? tiles.begin(t) : args.q_begin;
    const std::int64_t to = smaller(end, args.q_end);
    if (from >= to) continue;
    const std::int64_t keys = args.causal ? end + (args.lk - args.lq) : args.lk;
    attend_tile(args, scratch, random_keys, from, to - from, keys);
  }
}
