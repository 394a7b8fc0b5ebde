// Softmax and its logarithm along rows: the largest number, the exponentials of the differences
// from it, and their sum.

// The largest of the first n scores, score_at(column, lanes) giving a vector of them whose lanes
// outside the row are -infinity.
template <typename ScoreAt>
float largest_score(std::int64_t n, ScoreAt score_at) {
  Vec top = broadcast(-kInfinity);
  over_lanes(n, [&](std::int64_t c, auto lanes) { top = max(top, score_at(c, lanes)); });
  return largest(top);
}

// Hands exp(score - top) to write(column, lanes, weights), lanes outside the row being 0, and
// returns the sum. Scores further than `lowest` below the top have weight 0.
template <typename ScoreAt, typename Write>
float weigh_scores(std::int64_t n, float top, ScoreAt score_at, Write write,
                   float lowest = kLowestExponent) {
  const Vec top_lanes = broadcast(top);
  Vec sums = broadcast(0.0f);
  over_lanes(n, [&](std::int64_t c, auto lanes) {
    const Vec weights = exp_weight(score_at(c, lanes) - top_lanes, lowest);
    write(c, lanes, weights);
    sums = sums + weights;
  });
  return sum(sums);
}

// Hands the largest of the first `visible` scores and a way to all of them to weigh(top, score_at)
// and returns what that does. `keep` is 1 or 0 for each key, to the end of the last vector; where
// it is null all count. The score of a key that does not count is -infinity, whose weight is 0;
// where none counts all do, equally.
template <typename ScoreAt, typename Weigh>
[[gnu::always_inline]] inline float weigh_kept(const float* keep, std::int64_t visible,
                                               ScoreAt visible_score, Weigh weigh) {
  if (keep == nullptr) return weigh(largest_score(visible, visible_score), visible_score);
  const Vec nothing = broadcast(-kInfinity);
  const auto kept_score = [&](std::int64_t c, auto lanes) {
    return select(less(broadcast(0.0f), load(keep + c)), visible_score(c, lanes), nothing);
  };
  const float top = largest_score(visible, kept_score);
  if (top > -kInfinity) return weigh(top, kept_score);
  // Scores that are no numbers have no largest: what they weigh is none either.
  const float most_kept = largest_score(
      visible, [&](std::int64_t c, auto lanes) { return select(lanes, load(keep + c), nothing); });
  if (most_kept > 0.0f) return weigh(top, kept_score);
  return weigh(0.0f,
               [&](std::int64_t, auto lanes) { return select(lanes, broadcast(0.0f), nothing); });
}

inline float log_of(float a) {
  return first(log(broadcast(a)));
}

inline void softmax_rows(const RowsArgs& args) {
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const float* x = args.x + r * args.x_stride;
    float* y = args.y + r * args.y_stride;
    const auto score_at = [&](std::int64_t c, auto lanes) {
      return select(lanes, load(x + c, lanes), broadcast(-kInfinity));
    };
    const float top = largest_score(args.n, score_at);
    const float total = weigh_scores(
        args.n, top, score_at,
        [&](std::int64_t c, auto lanes, Vec weights) { store(y + c, weights, lanes); });
    // What would not be a normal number after the division is 0 before it.
    const float least = total * (kSmallestNormal * 1.000001f);
    const Vec divisor = broadcast(total);
    map(y, args.n, y, [&](Vec a) { return unless_below(least, a) / divisor; });
  }
}

inline void log_softmax_rows(const RowsArgs& args) {
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const float* x = args.x + r * args.x_stride;
    const auto score_at = [&](std::int64_t c, auto lanes) {
      return select(lanes, load(x + c, lanes), broadcast(-kInfinity));
    };
    const float top = largest_score(args.n, score_at);
    const float total =
        weigh_scores(args.n, top, score_at, [](std::int64_t, auto, Vec) { /* only the sum */ });
    const Vec top_lanes = broadcast(top);
    const Vec log_sum = broadcast(log_of(total));
    map(x, args.n, args.y + r * args.y_stride, [&](Vec a) { return (a - top_lanes) - log_sum; });
  }
}
