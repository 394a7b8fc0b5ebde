// The gradients of attention.inl.h. With weights P, dropout factors F and dP = F (dout . v^T),
//   dv = (F P)^T . dout,  dS = scale P (dP - rowsum(P dP)),  dq = dS . k,  dk = dS^T . q.
// Where weights are rounded, those that make dv are, and the others are not.
//
// Query rows are taken in blocks of whole tiles, so that F P and dS of a block stay in the second
// cache between the product that makes them and the two that read them. dk and dv are added to
// where they lie, block after block: each of their elements is a sum over queries in ascending
// order whatever the blocks are.

struct AttentionBackwardScratch {
  float* keys;           // k transposed and packed: n = lk, k = d
  float* values;         // v likewise
  float* key_rows;       // k packed: n = d, k = lk
  float* query_rows;     // q of a block, packed: n = d, k = rows of the block
  float* dout_rows;      // dout likewise
  float* keep;           // 1 or 0 for each key, 0 to the end of the last vector
  float* probabilities;  // one row of P, while dropout or rounding makes other weights of it
  float* weights;        // F P of a block
  float* gradients;      // dS of a block
  std::int64_t score_stride;
  std::int64_t block_tiles;
};

inline std::int64_t backward_block_tiles(std::int64_t lq, std::int64_t lk) {
  constexpr std::int64_t kCachedFloats = 64 * 1024;
  const std::int64_t tiles = kCachedFloats / (2 * kTileRows * score_stride(lk));
  const std::int64_t all = RowTiles(lq).count;
  return tiles < 1 ? 1 : smaller(tiles, all);
}

inline std::int64_t attention_backward_scratch_size(std::int64_t lq, std::int64_t lk,
                                                    std::int64_t d) {
  const std::int64_t rows = backward_block_tiles(lq, lk) * kTileRows;
  return 2 * packed_size(lk, d) + packed_size(d, lk) + 2 * packed_size(d, rows) +
         (2 + 2 * rows) * score_stride(lk);
}

inline AttentionBackwardScratch divide_scratch(const AttentionBackwardArgs& args) {
  AttentionBackwardScratch scratch;
  scratch.score_stride = score_stride(args.lk);
  scratch.block_tiles = backward_block_tiles(args.lq, args.lk);
  const std::int64_t rows = scratch.block_tiles * kTileRows;
  scratch.keys = args.scratch;
  scratch.values = scratch.keys + packed_size(args.lk, args.d);
  scratch.key_rows = scratch.values + packed_size(args.lk, args.d);
  scratch.query_rows = scratch.key_rows + packed_size(args.d, args.lk);
  scratch.dout_rows = scratch.query_rows + packed_size(args.d, rows);
  scratch.keep = scratch.dout_rows + packed_size(args.d, rows);
  scratch.probabilities = scratch.keep + scratch.score_stride;
  scratch.weights = scratch.probabilities + scratch.score_stride;
  scratch.gradients = scratch.weights + rows * scratch.score_stride;
  return scratch;
}

inline void clear_rows(float* y, std::int64_t rows, std::int64_t n, std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r)
    over_lanes(
        n, [&](std::int64_t c, auto lanes) { store(y + r * stride + c, broadcast(0.0f), lanes); });
}

// From the exponentials of a row, their sum, and dout . v^T to F P and dS, each in place.
inline void score_gradient_row(const AttentionBackwardArgs& args, const PhiloxKeys& random_keys,
                               std::int64_t row, std::int64_t visible, float total,
                               float* probabilities, float* weights, float* gradients) {
  const Vec share = broadcast(1.0f / total);
  Vec sums = broadcast(0.0f);
  if (args.dropout.threshold == 0) {
    probabilities = weights;
    for (std::int64_t c = 0; c < visible; c += kWidth) {
      const Vec p = load(weights + c) * share;
      sums = fma(p, load(gradients + c), sums);
      store(weights + c, p);
    }
  } else {
    const Vec factor = broadcast(kept_factor(args.dropout.threshold));
    over_kept_keys(args.dropout, random_keys, args.head, args.example, row, visible,
                   [&](std::int64_t c, Mask kept) {
                     const Vec f = select(kept, factor, broadcast(0.0f));
                     const Vec p = load(weights + c) * share;
                     const Vec dp = load(gradients + c) * f;
                     sums = fma(p, dp, sums);
                     store(probabilities + c, p);
                     store(weights + c, p * f);
                     store(gradients + c, dp);
                   });
  }
  const Vec mean = broadcast(sum(sums));
  const Vec scale = broadcast(args.scale);
  for (std::int64_t c = 0; c < visible; c += kWidth) {
    const Vec ds = load(probabilities + c) * (load(gradients + c) - mean) * scale;
    store(gradients + c, unless_below(kLeastScoreGradient, ds));
  }
}

// The same where weights are rounded: F round(P) and the dS of P, straight through.
inline void rounded_gradient_row(const AttentionBackwardArgs& args, const PhiloxKeys& random_keys,
                                 std::int64_t row, std::int64_t visible, float total,
                                 float* probabilities, float* weights, float* gradients) {
  const Vec share = broadcast(1.0f / total);
  for (std::int64_t c = 0; c < visible; c += kWidth)
    store(probabilities + c, load(weights + c) * share);
  round_row(args.rounding, args.keep, weights, visible, total);
  if (args.dropout.threshold != 0) {
    const Vec factor = broadcast(kept_factor(args.dropout.threshold));
    over_kept_keys(args.dropout, random_keys, args.head, args.example, row, visible,
                   [&](std::int64_t c, Mask kept) {
                     const Vec f = select(kept, factor, broadcast(0.0f));
                     store(weights + c, load(weights + c) * f);
                     store(gradients + c, load(gradients + c) * f);
                   });
  }
  Vec sums = broadcast(0.0f);
  for (std::int64_t c = 0; c < visible; c += kWidth)
    sums = fma(load(probabilities + c), load(gradients + c), sums);
  const Vec mean = broadcast(sum(sums));
  const Vec scale = broadcast(args.scale);
  for (std::int64_t c = 0; c < visible; c += kWidth) {
    const Vec ds = load(probabilities + c) * (load(gradients + c) - mean) * scale;
    store(gradients + c, unless_below(kLeastScoreGradient, ds));
  }
}

// Fills the rows of one tile in the block's weights and gradients, up to key `extent`, with 0
// beyond what each row sees, and writes its dq.
inline void backward_tile(const AttentionBackwardArgs& args,
                          const AttentionBackwardScratch& scratch, const PhiloxKeys& random_keys,
                          std::int64_t row, std::int64_t rows, std::int64_t keys,
                          std::int64_t extent, float* weights, float* gradients) {
  const std::int64_t stride = scratch.score_stride;
  const auto against_all_keys = [&](const float* x, std::int64_t x_stride, const float* packed,
                                    float scale, float* y) {
    for (std::int64_t j = 0; j < keys; j += kPanel)
      multiply_tile({.k = args.d,
                     .x = x + row * x_stride,
                     .x_stride = x_stride,
                     .panel = packed + j * args.d,
                     .y = y + j,
                     .y_stride = stride,
                     .columns = kPanel,
                     .bias = nullptr,
                     .scale = scale,
                     .accumulate = false},
                    rows);
  };
  against_all_keys(args.q, args.q_stride, scratch.keys, args.scale, weights);
  against_all_keys(args.dout, args.dout_stride, scratch.values, 1.0f, gradients);

  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t visible = args.causal ? row + r + 1 + (args.lk - args.lq) : args.lk;
    float* p = weights + r * stride;
    float* ds = gradients + r * stride;
    float log_sum_exp = 0.0f;
    const float total = weigh_row(p, args.keep ? scratch.keep : nullptr, visible, extent,
                                  args.keep ? &log_sum_exp : nullptr);
    if (args.rounding.round == nullptr)
      score_gradient_row(args, random_keys, row + r, visible, total, scratch.probabilities, p, ds);
    else
      rounded_gradient_row(args, random_keys, row + r, visible, total, scratch.probabilities, p,
                           ds);
    const bool sees_no_key = log_sum_exp == -__FLT_MAX__;
    for (std::int64_t c = sees_no_key ? 0 : round_up(visible, kWidth); c < extent; c += kWidth)
      store(ds + c, broadcast(0.0f));
  }

  for (std::int64_t column = 0; column < args.d; column += kPanel)
    multiply_tile({.k = keys,
                   .x = gradients,
                   .x_stride = stride,
                   .panel = scratch.key_rows + column * args.lk,
                   .y = args.dq + row * args.dq_stride + column,
                   .y_stride = args.dq_stride,
                   .columns = smaller(args.d - column, kPanel),
                   .bias = nullptr,
                   .scale = 1.0f,
                   .accumulate = false},
                  rows);
}

// y[keys, d] += x^T . packed, x being the `rows` rows of the block's weights or gradients.
inline void add_to_keys(const AttentionBackwardArgs& args, const float* x, std::int64_t x_stride,
                        const float* packed, std::int64_t row, std::int64_t rows, std::int64_t keys,
                        float* y, std::int64_t y_stride) {
  const RowTiles tiles(keys);
  for (std::int64_t t = 0; t < tiles.count; ++t) {
    const std::int64_t first = tiles.begin(t);
    // Rows before the first one that sees any key of the tile are 0 there.
    const std::int64_t seen_from = args.causal ? first - (args.lk - args.lq) - row : 0;
    const std::int64_t skipped = seen_from > 0 ? seen_from : 0;
    for (std::int64_t column = 0; column < args.d; column += kPanel)
      multiply_tile({.k = rows - skipped,
                     .x = x + skipped * x_stride + first,
                     .x_stride = 1,
                     .x_step = x_stride,
                     .panel = packed + column * rows + skipped * kPanel,
                     .y = y + first * y_stride + column,
                     .y_stride = y_stride,
                     .columns = smaller(args.d - column, kPanel),
                     .bias = nullptr,
                     .scale = 1.0f,
                     .accumulate = true},
                    tiles.begin(t + 1) - first);
  }
}

inline void attention_backward(const AttentionBackwardArgs& args) {
  if (!args.accumulate) {
    clear_rows(args.dk, args.lk, args.d, args.dk_stride);
    clear_rows(args.dv, args.lk, args.d, args.dv_stride);
  }
  if (args.lk == 0) return clear_rows(args.dq, args.lq, args.d, args.dq_stride);
  if (args.lq == 0) return;
  const AttentionBackwardScratch scratch = divide_scratch(args);
  pack_b(args.k, args.lk, args.d, args.k_stride, 1, scratch.keys);
  pack_b(args.v, args.lk, args.d, args.v_stride, 1, scratch.values);
  pack_b(args.k, args.d, args.lk, 1, args.k_stride, scratch.key_rows);
  if (args.keep != nullptr)
    for (std::int64_t j = 0; j < scratch.score_stride; ++j)
      scratch.keep[j] = j < args.lk && args.keep[j] != 0 ? 1.0f : 0.0f;

  const PhiloxKeys random_keys(args.dropout.seed);
  const RowTiles tiles(args.lq);
  const auto keys_seen_before = [&](std::int64_t row) {
    return args.causal ? row + (args.lk - args.lq) : args.lk;
  };
  for (std::int64_t first = 0; first < tiles.count; first += scratch.block_tiles) {
    const std::int64_t last = smaller(first + scratch.block_tiles, tiles.count);
    const std::int64_t row = tiles.begin(first);
    const std::int64_t rows = tiles.begin(last) - row;
    const std::int64_t extent = keys_seen_before(row + rows);
    for (std::int64_t t = first; t < last; ++t) {
      const std::int64_t begin = tiles.begin(t);
      const std::int64_t end = tiles.begin(t + 1);
      const std::int64_t at = (begin - row) * scratch.score_stride;
      backward_tile(args, scratch, random_keys, begin, end - begin, keys_seen_before(end), extent,
                    scratch.weights + at, scratch.gradients + at);
    }
    pack_b(args.dout + row * args.dout_stride, args.d, rows, 1, args.dout_stride,
           scratch.dout_rows);
    pack_b(args.q + row * args.q_stride, args.d, rows, 1, args.q_stride, scratch.query_rows);
    add_to_keys(args, scratch.weights, scratch.score_stride, scratch.dout_rows, row, rows, extent,
                args.dv, args.dv_stride);
    add_to_keys(args, scratch.gradients, scratch.score_stride, scratch.query_rows, row, rows,
                extent, args.dk, args.dk_stride);
  }
}
