#include <cmath>
#include <limits>
#include <numeric>

#include "lathe/core/philox.h"
#include "lathe/engine/cpu/attention_cases.h"
#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

// Three heads' worth of room in each row, as in a fused query-key-value buffer.
struct Problem {
  std::int64_t lq, lk, d;
  Matrix q, k, v;
  float scale;
  bool causal = false;
  std::vector<std::uint8_t> keep = {};
  Dropout dropout = {};
  std::uint32_t head = 0, example = 0;

  Problem(std::int64_t query_length, std::int64_t key_length, std::int64_t width)
      : lq(query_length),
        lk(key_length),
        d(width),
        q(Matrix::random(lq, d, 2 * d, 1)),
        k(Matrix::random(lk, d, 2 * d + 1, 2)),
        v(Matrix::random(lk, d, 3, 3)),
        scale(1.0f / std::sqrt(static_cast<float>(d))) {}
};

struct Result {
  Matrix out;
  Matrix log_sum_exp;
};

class AttentionKernel : public EveryIsa {
 protected:
  // Rows [begin, end) into an otherwise untouched result.
  void run(const Problem& problem, std::int64_t begin, std::int64_t end, Result& result,
           bool packs_before = false) const {
    Matrix scratch(1, table().attention_scratch_size(problem.lq, problem.lk, problem.d));
    scratch.fill(std::numeric_limits<float>::quiet_NaN());
    const AttentionArgs args{.lq = problem.lq,
                             .lk = problem.lk,
                             .d = problem.d,
                             .q_begin = begin,
                             .q_end = end,
                             .q = problem.q.data(),
                             .k = problem.k.data(),
                             .v = problem.v.data(),
                             .out = result.out.data(),
                             .q_stride = problem.q.stride(),
                             .k_stride = problem.k.stride(),
                             .v_stride = problem.v.stride(),
                             .out_stride = result.out.stride(),
                             .scale = problem.scale,
                             .causal = problem.causal,
                             .keep = problem.keep.empty() ? nullptr : problem.keep.data(),
                             .row_log_sum_exp = result.log_sum_exp.data(),
                             .scratch = scratch.data(),
                             .dropout = problem.dropout,
                             .head = problem.head,
                             .example = problem.example};
    attend(table(), args, packs_before);
    EXPECT_TRUE(scratch.guards_are_intact());
    EXPECT_TRUE(result.out.guards_are_intact());
    EXPECT_TRUE(result.log_sum_exp.guards_are_intact());
  }
  Result run(const Problem& problem) const {
    Result result{Matrix(problem.lq, problem.d, 5), Matrix(1, problem.lq)};
    run(problem, 0, problem.lq, result);
    return result;
  }
};

// The factor of one weight, from the definition.
double dropout_factor(const Problem& problem, std::int64_t i, std::int64_t j) {
  const Dropout& dropout = problem.dropout;
  if (dropout.threshold == 0) return 1;
  const PhiloxCounter random =
      philox({dropout.site << 16 | problem.head, static_cast<std::uint32_t>(i << 16 | j / 8),
              problem.example, dropout.step},
             dropout.seed);
  const std::uint32_t bits = random[j % 8 / 2] >> (16 * (j % 2)) & 0xffff;
  return bits < dropout.threshold ? 0.0 : 65536.0 / (65536.0 - dropout.threshold);
}

// Checks every row against double arithmetic. With S the largest scale |q||k| of the row, a score
// is within (d + 3) S units (its sum, the scale, and the subtraction of the largest score).
// Weights, ratios of exponentials, are then within twice that plus 4 for exp; the sums over lk keys
// of the weights and of the weighted values add lk units each.
void expect_attention(const Problem& problem, const Result& result) {
  for (std::int64_t i = 0; i < problem.lq; ++i) {
    const std::int64_t visible = problem.causal ? i + 1 + problem.lk - problem.lq : problem.lk;
    bool any_kept = problem.keep.empty();
    for (std::int64_t j = 0; j < visible && !any_kept; ++j) any_kept = problem.keep[j] != 0;
    std::vector<double> scores;
    double largest_magnitude = 0;
    for (std::int64_t j = 0; j < visible; ++j) {
      double score = 0;
      double magnitude = 0;
      for (std::int64_t c = 0; c < problem.d; ++c) {
        const double term = double{problem.q(i, c)} * double{problem.k(j, c)};
        score += term;
        magnitude += std::abs(term);
      }
      largest_magnitude = std::max(largest_magnitude, magnitude * problem.scale);
      score *= problem.scale;
      if (!any_kept)
        score = 0;
      else if (!problem.keep.empty() && problem.keep[j] == 0)
        score = -std::numeric_limits<double>::infinity();
      scores.push_back(score);
    }
    const double top = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    for (double& score : scores) total += score = std::exp(score - top);
    const double score_bound = static_cast<double>(problem.d + 3) * kUnit * largest_magnitude;
    const double bound = 2 * score_bound + (2.0 * static_cast<double>(problem.lk) + 8) * kUnit;
    for (std::int64_t c = 0; c < problem.d; ++c) {
      double exact = 0;
      double magnitude = 0;
      for (std::int64_t j = 0; j < visible; ++j) {
        const double term =
            scores[j] / total * dropout_factor(problem, i, j) * double{problem.v(j, c)};
        exact += term;
        magnitude += std::abs(term);
      }
      ASSERT_NEAR(result.out(i, c), exact, bound * magnitude) << "row " << i << " column " << c;
    }
    if (any_kept) {
      const double exact = top + std::log(total);
      ASSERT_NEAR(result.log_sum_exp(0, i), exact, bound + 4 * kUnit * std::abs(exact))
          << "row " << i;
    } else {
      ASSERT_EQ(result.log_sum_exp(0, i), std::numeric_limits<float>::lowest());
    }
  }
}

TEST_P(AttentionKernel, AgreesWithADoubleLoopForManyLengthsAndWidths) {
  for (const std::int64_t d : {1, 8, 12, 16, 24, 32, 64, 128})
    for (const std::int64_t length : {1, 2, 13, 14, 15, 16, 17, 31, 33, 64, 100}) {
      SCOPED_TRACE(testing::Message() << "length " << length << " d " << d);
      const Problem problem(length, length, d);
      expect_attention(problem, run(problem));
    }
}

TEST_P(AttentionKernel, HandlesALongSequence) {
  const Problem problem(20, 1500, 16);
  expect_attention(problem, run(problem));
}

TEST_P(AttentionKernel, LooksOnlyBackWhenCausal) {
  for (const std::int64_t length : {1, 5, 14, 29, 70}) {
    SCOPED_TRACE(length);
    Problem problem(length, length, 24);
    problem.causal = true;
    expect_attention(problem, run(problem));
  }
}

TEST_P(AttentionKernel, TheLastQuerySeesAllKeysWhenCausal) {
  Problem problem(3, 40, 16);
  problem.causal = true;
  expect_attention(problem, run(problem));
}

TEST_P(AttentionKernel, GivesDroppedKeysNoWeight) {
  Problem problem(19, 45, 32);
  for (std::int64_t j = 0; j < 45; ++j) problem.keep.push_back(j % 3 != 1 && j < 40);
  expect_attention(problem, run(problem));
  // Exactly none: an enormous value changes nothing.
  const Result before = run(problem);
  for (std::int64_t c = 0; c < 32; ++c) problem.v(1, c) = problem.k(44, c) = 1e30f;
  const Result after = run(problem);
  EXPECT_TRUE(after.out.has_same_bits(before.out));
}

TEST_P(AttentionKernel, WeighsAllKeysEquallyWhenNoneIsKept) {
  Problem problem(4, 21, 8);
  problem.keep.assign(21, 0);
  const Result result = run(problem);
  expect_attention(problem, result);
  double mean = 0;
  for (std::int64_t j = 0; j < 21; ++j) mean += problem.v(j, 0) / 21.0;
  EXPECT_NEAR(result.out(2, 0), mean, 1e-6);
}

TEST_P(AttentionKernel, CombinesTheCausalLimitWithDroppedKeys) {
  Problem problem(33, 33, 16);
  problem.causal = true;
  for (std::int64_t j = 0; j < 33; ++j) problem.keep.push_back(j >= 4 && j % 2 == 0);
  expect_attention(problem, run(problem));  // the first four rows see no kept key
}

TEST_P(AttentionKernel, DropsWeightsByTheirHeadQueryKeyAndExample) {
  for (const std::int64_t length : {1, 8, 15, 33, 100, 140})
    for (const bool causal : {false, true})
      for (const std::uint32_t threshold : {1u, 6554u, 32768u, 65535u}) {
        SCOPED_TRACE(testing::Message() << "length " << length << " threshold " << threshold);
        Problem problem(length, length + 3, 24);
        problem.causal = causal;
        problem.dropout = {
            .threshold = threshold, .seed = 0xabcdef0123456789, .step = 7, .site = 9};
        problem.head = 11;
        problem.example = 24999;
        expect_attention(problem, run(problem));
      }
}

TEST_P(AttentionKernel, DropsAllWeightsToZero) {
  Problem problem(5, 20, 16);
  problem.dropout = {.threshold = 65536, .seed = 1, .step = 1, .site = 1};
  const Result result = run(problem);
  for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(result.out(i, 3), 0.0f);
}

TEST_P(AttentionKernel, GivesARowTheSameBitsInAnyRange) {
  for (const bool causal : {false, true}) {
    Problem problem(61, 61, 24);
    problem.causal = causal;
    if (causal) problem.dropout = {.threshold = 20000, .seed = 3, .step = 1, .site = 2};
    const Result whole = run(problem);
    for (const std::int64_t step : {1, 5, 14, 16, 40}) {
      Result parts{Matrix(61, 24, 5), Matrix(1, 61)};
      for (std::int64_t r = 0; r < 61; r += step)
        run(problem, r, std::min(r + step, problem.lq), parts, step % 5 == 0);
      EXPECT_TRUE(parts.out.has_same_bits(whole.out)) << "in steps of " << step;
      EXPECT_TRUE(parts.log_sum_exp.has_same_bits(whole.log_sum_exp)) << "in steps of " << step;
    }
  }
}

TEST_P(AttentionKernel, SaysWhereItsTilesBegin) {
  expect_tiles(table().attention_tile);
}

TEST_P(AttentionKernel, WritesOnlyTheRowsAskedFor) {
  const Problem problem(30, 30, 16);
  Result result{Matrix(30, 16), Matrix(1, 30)};
  run(problem, 10, 12, result);
  EXPECT_EQ(result.out(9, 0), 0.0f);
  EXPECT_NE(result.out(10, 0), 0.0f);
  EXPECT_NE(result.out(11, 15), 0.0f);
  EXPECT_EQ(result.out(12, 0), 0.0f);
}

TEST_P(AttentionKernel, SurvivesScoresFarBeyondTheRangeOfExp) {
  Problem problem(6, 20, 16);
  problem.scale = 1000.0f;
  const Result result = run(problem);
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_TRUE(std::isfinite(result.out(i, 0)));
}

TEST_P(AttentionKernel, ANanInAQueryReachesItsRowAndNoOther) {
  Problem problem(20, 20, 16);
  problem.q(7, 3) = std::numeric_limits<float>::quiet_NaN();
  const Result result = run(problem);
  for (std::int64_t i = 0; i < 20; ++i)
    for (std::int64_t c = 0; c < 16; ++c) EXPECT_EQ(std::isnan(result.out(i, c)), i == 7);
}

INSTANTIATE_TEST_SUITE_P(, AttentionKernel, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
