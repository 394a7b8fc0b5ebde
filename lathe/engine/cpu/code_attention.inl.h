// Softmax attention of one head over one sequence of whole numbers, for a file that has included
// code_gemm.inl.h, softmax.inl.h and a way to sum values, `ValueSums`: the exact sums of a tile of
// queries with all its keys, the exponentials of what they are worth, and those times the values.
//
// Rows do not depend on each other, so a row has the same bits in any range. As in attention.inl.h
// tiles are cut from the whole sequence and say which keys are looked at.

// Keys are multiplied in panels and weighed up to a whole step of the second product.
constexpr std::int64_t kKeyGrain = kPanel > kWeightGrain ? kPanel : kWeightGrain;
static_assert(kKeyGrain % kPanel == 0 && kKeyGrain % kWeightGrain == 0);

// Keys as the columns of B.
inline void pack_keys(const CodeAttentionArgs& args, const CodeCut& cut, std::int8_t* packed) {
  // Fours of bytes move as floats do.
  if constexpr (kStep == sizeof(float)) {
    if (args.d % kStep == 0 && args.k_stride % kStep == 0) {
      const std::int32_t offset = weight_offset(cut);
      for (std::int64_t key = 0; key < args.lk; key += kPanel) {
        std::int8_t* const panel = packed + code_packed_size(key, cut);
        pack_b(reinterpret_cast<const float*>(args.k + key * args.k_stride),
               smaller(args.lk - key, kPanel), args.d / kStep, args.k_stride / kStep, 1,
               reinterpret_cast<float*>(panel));
        if (offset != 0)
          for (std::int64_t i = 0; i < args.d * kPanel; ++i)
            panel[i] = static_cast<std::int8_t>(panel[i] + offset);
        __builtin_memset(panel + args.d * kPanel, 0,
                         static_cast<std::size_t>((padded_code_depth(cut) - args.d) * kPanel));
      }
      return;
    }
  }
  code_pack_columns(args.k, args.k_stride, args.lk, cut, packed);
}

// Where the parts of the caller's scratch begin, in bytes.
struct CodeAttentionScratch {
  CodeCut cut;
  std::int64_t left_stride;                          // numbers of a query
  std::int64_t values, key_scales, factors, packed;  // with the keys, of all queries
  std::int64_t left, starts, scores, weights, sums, keep, size;
  CodeAttentionScratch(std::int64_t lk, std::int64_t d)
      : cut{.k = d,
            .blocks = 1,
            .width = d,
            .x_has_blocks = false,
            .weight_has_blocks = false,
            .has_nibbles = false},
        left_stride(round_up(padded_code_depth(cut), 64) + 64) {
    const auto lines = [](std::int64_t bytes) { return round_up(bytes, 64); };
    const std::int64_t of_keys = lines(round_up(lk, kKeyGrain) * 4);
    values = lines(code_packed_size(lk, cut));
    key_scales = values + lines(value_bytes(lk, d));
    factors = key_scales + of_keys;
    packed = factors + of_keys;
    left = packed;
    starts = left + lines(kLeftRows * left_stride * static_cast<std::int64_t>(sizeof(Left)));
    scores = starts + lines(kLeftRows * 4);
    weights = scores + lines(round_up(lk, kKeyGrain) * kLeftRows * 4);
    sums = weights + lines(weight_bytes(lk));
    keep = sums + lines(value_sum_bytes());
    size = keep + of_keys;
  }
};

inline std::int64_t code_attention_scratch_bytes(std::int64_t lk, std::int64_t d) {
  return CodeAttentionScratch(lk, d).size;
}

inline std::int64_t code_attention_packed_bytes(std::int64_t lk, std::int64_t d) {
  return CodeAttentionScratch(lk, d).packed;
}

inline void code_attention_pack(const CodeAttentionArgs& args, void* packed) {
  const CodeAttentionScratch layout(args.lk, args.d);
  auto* const memory = static_cast<unsigned char*>(packed);
  auto* const key_scales = reinterpret_cast<float*>(memory + layout.key_scales);
  auto* const factors = reinterpret_cast<float*>(memory + layout.factors);
  pack_keys(args, layout.cut, reinterpret_cast<std::int8_t*>(memory));
  ValueSums::pack(args, memory + layout.values, factors);
  for (std::int64_t j = 0; j < args.lk; ++j) key_scales[j] = args.k_scales[j];
  for (std::int64_t j = args.lk; j < round_up(args.lk, kKeyGrain); ++j)
    key_scales[j] = factors[j] = 0;
}

inline std::int64_t code_attention_tile(std::int64_t, std::int64_t row) {
  return row / kLeftRows * kLeftRows;
}

struct CodeAttentionParts {
  const std::int8_t* keys;
  const float *key_scales, *factors;
  Left* left;
  std::int32_t* starts;
  float* scores;
  float* keep;  // 1 or 0 for each key; null where all count
  ValueSums values;
  CodeAttentionParts(const CodeAttentionArgs& args, const CodeAttentionScratch& layout)
      : CodeAttentionParts(args, layout, static_cast<unsigned char*>(args.scratch),
                           static_cast<const unsigned char*>(
                               args.packed != nullptr ? args.packed : args.scratch)) {}

 private:
  CodeAttentionParts(const CodeAttentionArgs& args, const CodeAttentionScratch& layout,
                     unsigned char* memory, const unsigned char* packed)
      : keys(reinterpret_cast<const std::int8_t*>(packed)),
        key_scales(reinterpret_cast<const float*>(packed + layout.key_scales)),
        factors(reinterpret_cast<const float*>(packed + layout.factors)),
        left(reinterpret_cast<Left*>(memory + layout.left)),
        starts(reinterpret_cast<std::int32_t*>(memory + layout.starts)),
        scores(reinterpret_cast<float*>(memory + layout.scores)),
        keep(nullptr),
        values(args, packed + layout.values, memory + layout.weights, memory + layout.sums) {
    if (args.packed == nullptr) code_attention_pack(args, memory);
    if (args.keep == nullptr) return;
    const std::int64_t extent = round_up(args.lk, kKeyGrain);
    // In a full row all count, and a mask says nothing.
    for (std::int64_t j = 0; j < args.lk && keep == nullptr; ++j)
      if (args.keep[j] == 0) keep = reinterpret_cast<float*>(memory + layout.keep);
    for (std::int64_t j = 0; keep != nullptr && j < extent; ++j)
      keep[j] = j < args.lk && args.keep[j] != 0 ? 1.0f : 0.0f;
  }
};

// Stores weights of query `r` of a tile for its first `visible` keys, still to be divided by the
// sum returned; those after them are 0 up to `extent`. `score_at(column, lanes)` gives scores,
// `-infinity` where lanes or keys do not count.
template <typename ScoreAt>
[[gnu::always_inline]] inline float weigh_code_keys(const CodeAttentionParts& parts, std::int64_t r,
                                                    std::int64_t visible, std::int64_t extent,
                                                    float top, ScoreAt score_at) {
  constexpr std::int64_t kVectors = kWeightGrain / kWidth;
  const Vec top_lanes = broadcast(top);
  Vec sums = broadcast(0.0f);
  const auto weigh = [&](std::int64_t c, auto lanes_of) {
    Vec weights[kVectors];
#pragma GCC unroll 4
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const std::int64_t at = c + v * kWidth;
      const Vec weight = exp_weight(score_at(at, lanes_of(at)) - top_lanes, kLowestAttentionScore);
      sums = sums + weight;
      weights[v] = weight * load(parts.factors + at);
    }
    parts.values.store_weights(r, c, weights);
  };
  std::int64_t c = 0;
  for (; c + kWeightGrain <= visible; c += kWeightGrain)
    weigh(c, [](std::int64_t) { return Whole{}; });
  for (; c < extent; c += kWeightGrain)
    weigh(c, [&](std::int64_t at) { return first_lanes(visible > at ? visible - at : 0); });
  return sum(sums);
}

inline float weigh_code_row(const CodeAttentionParts& parts, std::int64_t r, float factor,
                            std::int64_t visible, std::int64_t extent) {
  const float* const sums = parts.scores + r * kPanel;
  const Vec of_query = broadcast(factor), nothing = broadcast(-kInfinity);
  const auto visible_score = [&](std::int64_t c, auto lanes) {
    const float* const from = sums + c / kPanel * (kLeftRows * kPanel) + c % kPanel;
    const Vec of_key = to_floats(load_sums(from)) * load(parts.key_scales + c);
    return select(lanes, of_key * of_query, nothing);
  };
  return weigh_kept(parts.keep, visible, visible_score, [&](float top, auto score_at) {
    return weigh_code_keys(parts, r, visible, extent, top, score_at);
  });
}

// The exact sums of some queries with the first `keys` keys: panels of kLeftRows queries.
inline void multiply_keys(const CodeAttentionArgs& args, const CodeAttentionScratch& layout,
                          const CodeAttentionParts& parts, std::int64_t row, std::int64_t rows,
                          std::int64_t keys) {
  CodeArgs product{};
  product.rows = rows;
  product.n = keys;
  product.cut = layout.cut;
  product.x = args.q + row * args.q_stride;
  product.x_stride = args.q_stride;
  const CodeLeft left = find_left(product, layout.left_stride, parts.left);
  find_starts(product, parts.starts);
  multiply_panels(
      product, left,
      [&](std::int64_t key) {
        constexpr std::int64_t kGroup = kPanelGroup * kPanel;  // which count from their first
        CodeTile tile{};
        tile.cut = &layout.cut;
        tile.panel = parts.keys + code_packed_size(key, layout.cut);
        tile.starts = parts.starts;
        tile.totals = parts.scores + key / kGroup * kGroup * kLeftRows;
        return tile;
      },
      [](const CodeTile&, std::int64_t, std::int64_t, std::int64_t, std::int64_t) {});
}

inline void attend_code_tile(const CodeAttentionArgs& args, const CodeAttentionScratch& layout,
                             const CodeAttentionParts& parts, std::int64_t row, std::int64_t rows,
                             std::int64_t keys) {
  multiply_keys(args, layout, parts, row, rows, keys);
  const std::int64_t extent = round_up(keys, kKeyGrain);
  float totals[kLeftRows];
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t visible = args.causal ? row + r + 1 + (args.lk - args.lq) : args.lk;
    totals[r] = weigh_code_row(parts, r, args.scale * args.q_scales[row + r], visible, extent);
  }
  parts.values.finish(args, row, rows, keys, totals);
}

inline void code_attention(const CodeAttentionArgs& args) {
  if (args.q_begin >= args.q_end || args.lk == 0) return;
  const CodeAttentionScratch layout(args.lk, args.d);
  const CodeAttentionParts parts(args, layout);
  [[maybe_unused]] const TileSession session;
  for (std::int64_t tile = args.q_begin / kLeftRows * kLeftRows; tile < args.q_end;
       tile += kLeftRows) {
    const std::int64_t end = smaller(tile + kLeftRows, args.lq);
    const std::int64_t from = tile > args.q_begin ? tile : args.q_begin;
    const std::int64_t keys = args.causal ? end + (args.lk - args.lq) : args.lk;
    attend_code_tile(args, layout, parts, from, smaller(end, args.q_end) - from, keys);
  }
}
