#include <cmath>
#include <limits>

#include "lathe/core/philox.h"
#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

struct Problem {
  std::int64_t lq, lk, d;
  Matrix q, k, v, dout;
  float scale;
  bool causal = false;
  std::vector<std::uint8_t> keep = {};
  Dropout dropout = {};

  Problem(std::int64_t query_length, std::int64_t key_length, std::int64_t width)
      : lq(query_length),
        lk(key_length),
        d(width),
        q(Matrix::random(lq, d, 2 * d, 1)),
        k(Matrix::random(lk, d, 2 * d + 1, 2)),
        v(Matrix::random(lk, d, 3, 3)),
        dout(Matrix::random(lq, d, 1, 4)),
        scale(1.0f / std::sqrt(static_cast<float>(d))) {}
};

constexpr std::uint32_t kHead = 3, kExample = 1234;

struct Gradients {
  Matrix dq, dk, dv;
  explicit Gradients(const Problem& problem)
      : dq(problem.lq, problem.d, 1), dk(problem.lk, problem.d, 2), dv(problem.lk, problem.d, 5) {}
};

// The factor of one weight, from the definition.
double dropout_factor(const Dropout& dropout, std::int64_t i, std::int64_t j) {
  if (dropout.threshold == 0) return 1;
  const PhiloxCounter random =
      philox({dropout.site << 16 | kHead, static_cast<std::uint32_t>(i << 16 | j / 8), kExample,
              dropout.step},
             dropout.seed);
  const std::uint32_t bits = random[j % 8 / 2] >> (16 * (j % 2)) & 0xffff;
  return bits < dropout.threshold ? 0.0 : 65536.0 / (65536.0 - dropout.threshold);
}

// The weights of query i before dropout; empty `kept` is all.
std::vector<double> exact_weights(const Problem& problem, std::int64_t i, bool& sees_a_key) {
  const std::int64_t visible = problem.causal ? i + 1 + problem.lk - problem.lq : problem.lk;
  std::vector<double> weights(static_cast<std::size_t>(visible));
  double total = 0;
  for (std::int64_t j = 0; j < visible; ++j) {
    double score = 0;
    for (std::int64_t c = 0; c < problem.d; ++c)
      score += double{problem.q(i, c)} * double{problem.k(j, c)};
    const bool kept = problem.keep.empty() || problem.keep[j] != 0;
    total += weights[j] = kept ? std::exp(score * problem.scale) : 0.0;
  }
  sees_a_key = total > 0;
  for (double& weight : weights)
    weight = sees_a_key ? weight / total : 1 / static_cast<double>(visible);
  return weights;
}

class AttentionBackwardKernel : public EveryIsa {
 protected:
  void run(const Problem& problem, Gradients& gradients, bool accumulate = false) const {
    Matrix scratch(1, table().attention_backward_scratch_size(problem.lq, problem.lk, problem.d));
    scratch.fill(std::numeric_limits<float>::quiet_NaN());
    table().attention_backward({.lq = problem.lq,
                                .lk = problem.lk,
                                .d = problem.d,
                                .q = problem.q.data(),
                                .k = problem.k.data(),
                                .v = problem.v.data(),
                                .dout = problem.dout.data(),
                                .q_stride = problem.q.stride(),
                                .k_stride = problem.k.stride(),
                                .v_stride = problem.v.stride(),
                                .dout_stride = problem.dout.stride(),
                                .dq = gradients.dq.data(),
                                .dk = gradients.dk.data(),
                                .dv = gradients.dv.data(),
                                .dq_stride = gradients.dq.stride(),
                                .dk_stride = gradients.dk.stride(),
                                .dv_stride = gradients.dv.stride(),
                                .accumulate = accumulate,
                                .scale = problem.scale,
                                .causal = problem.causal,
                                .keep = problem.keep.empty() ? nullptr : problem.keep.data(),
                                .dropout = problem.dropout,
                                .head = kHead,
                                .example = kExample,
                                .scratch = scratch.data()});
    EXPECT_TRUE(scratch.guards_are_intact());
    EXPECT_TRUE(gradients.dq.guards_are_intact());
    EXPECT_TRUE(gradients.dk.guards_are_intact());
    EXPECT_TRUE(gradients.dv.guards_are_intact());
  }

  // Against double arithmetic. Scores are sums of d products below 16 in magnitude, so weights are
  // within (2 d + 30) units of themselves; dP is a sum of d products and its mean one of lk; dq and
  // dk sum lk and lq of the differences. Bounding each term by its magnitude gives the units below.
  void expect_gradients(const Problem& problem) const {
    Gradients gradients(problem);
    gradients.dq.fill(std::numeric_limits<float>::quiet_NaN());
    gradients.dk.fill(std::numeric_limits<float>::quiet_NaN());
    gradients.dv.fill(std::numeric_limits<float>::quiet_NaN());
    run(problem, gradients);
    const std::int64_t lq = problem.lq, lk = problem.lk, d = problem.d;
    const auto size = [](std::int64_t rows, std::int64_t columns) {
      return static_cast<std::size_t>(rows * columns);
    };
    std::vector<double> dq(size(lq, d)), dk(size(lk, d)), dv(size(lk, d));
    std::vector<double> dq_size(dq), dk_size(dk), dv_size(dv);
    for (std::int64_t i = 0; i < lq; ++i) {
      bool sees_a_key = false;
      const std::vector<double> weights = exact_weights(problem, i, sees_a_key);
      const auto visible = static_cast<std::int64_t>(weights.size());
      std::vector<double> dweights(weights.size()), magnitudes(weights.size());
      double mean = 0;
      double mean_size = 0;
      for (std::int64_t j = 0; j < visible; ++j) {
        const double factor = dropout_factor(problem.dropout, i, j);
        for (std::int64_t c = 0; c < d; ++c) {
          const double term = factor * double{problem.dout(i, c)} * double{problem.v(j, c)};
          dweights[j] += term;
          magnitudes[j] += std::abs(term);
          const double part = weights[j] * factor * double{problem.dout(i, c)};
          dv[j * d + c] += part;
          dv_size[j * d + c] += std::abs(part);
        }
        mean += weights[j] * dweights[j];
        mean_size += weights[j] * magnitudes[j];
      }
      for (std::int64_t j = 0; j < visible && sees_a_key; ++j) {
        const double ds = problem.scale * weights[j] * (dweights[j] - mean);
        const double ds_size = problem.scale * weights[j] * (magnitudes[j] + mean_size);
        for (std::int64_t c = 0; c < d; ++c) {
          dq[i * d + c] += ds * problem.k(j, c);
          dk[j * d + c] += ds * problem.q(i, c);
          dq_size[i * d + c] += ds_size * std::abs(problem.k(j, c));
          dk_size[j * d + c] += ds_size * std::abs(problem.q(i, c));
        }
      }
    }
    const double bound = static_cast<double>(3 * d + 2 * lk + lq + 60) * kUnit;
    for (std::int64_t c = 0; c < d; ++c) {
      for (std::int64_t i = 0; i < lq; ++i)
        ASSERT_NEAR(gradients.dq(i, c), dq[i * d + c], bound * dq_size[i * d + c])
            << "dq of row " << i << " column " << c;
      for (std::int64_t j = 0; j < lk; ++j) {
        ASSERT_NEAR(gradients.dk(j, c), dk[j * d + c], bound * dk_size[j * d + c])
            << "dk of row " << j << " column " << c;
        ASSERT_NEAR(gradients.dv(j, c), dv[j * d + c], bound * dv_size[j * d + c])
            << "dv of row " << j << " column " << c;
      }
    }
  }
};

const Dropout kTenth = {.threshold = 6554, .seed = 0x1122334455667788, .step = 12, .site = 5};

TEST_P(AttentionBackwardKernel, AgreesWithADoubleLoopForManyLengthsAndWidths) {
  for (const std::int64_t d : {1, 12, 16, 33, 64})
    for (const std::int64_t length : {1, 2, 13, 14, 15, 17, 33, 64, 100}) {
      SCOPED_TRACE(testing::Message() << "length " << length << " d " << d);
      Problem problem(length, length, d);
      expect_gradients(problem);
      problem.dropout = kTenth;
      expect_gradients(problem);
    }
}

TEST_P(AttentionBackwardKernel, CutsLongSequencesIntoBlocks) {
  Problem problem(70, 1500, 16);
  expect_gradients(problem);
  problem.causal = true;
  problem.dropout = kTenth;
  expect_gradients(problem);
  Problem square(330, 330, 8);
  square.causal = true;
  expect_gradients(square);
}

TEST_P(AttentionBackwardKernel, LooksOnlyBackWhenCausal) {
  for (const std::int64_t length : {1, 5, 14, 29, 70, 150})
    for (const std::int64_t more_keys : {0, 1, 20})
      for (const bool drops : {false, true}) {
        SCOPED_TRACE(testing::Message() << length << " queries and " << more_keys << " keys more");
        Problem problem(length, length + more_keys, 24);
        problem.causal = true;
        if (drops) problem.dropout = kTenth;
        expect_gradients(problem);
      }
}

TEST_P(AttentionBackwardKernel, GivesDroppedKeysNoGradient) {
  Problem problem(19, 45, 32);
  for (std::int64_t j = 0; j < 45; ++j) problem.keep.push_back(j % 3 != 1 && j < 40);
  expect_gradients(problem);
  Gradients gradients(problem);
  run(problem, gradients);
  for (std::int64_t c = 0; c < 32; ++c) {
    EXPECT_EQ(gradients.dk(1, c), 0.0f);
    EXPECT_EQ(gradients.dv(44, c), 0.0f);
  }
}

TEST_P(AttentionBackwardKernel, AQueryThatSeesNoKeyMovesValuesOnly) {
  Problem problem(33, 33, 16);
  problem.causal = true;
  for (std::int64_t j = 0; j < 33; ++j) problem.keep.push_back(j >= 4 && j % 2 == 0);
  expect_gradients(problem);
  Gradients gradients(problem);
  run(problem, gradients);
  for (std::int64_t c = 0; c < 16; ++c) {
    EXPECT_EQ(gradients.dq(3, c), 0.0f);
    EXPECT_EQ(gradients.dk(3, c), 0.0f);
    EXPECT_NE(gradients.dv(3, c), 0.0f);
  }
}

TEST_P(AttentionBackwardKernel, AddsToKeysAndValuesOfAnEarlierHead) {
  Problem problem(20, 20, 16);
  Gradients once(problem);
  run(problem, once);
  Gradients twice(problem);
  run(problem, twice);
  run(problem, twice, true);
  EXPECT_TRUE(twice.dq.has_same_bits(once.dq));
  for (std::int64_t j = 0; j < 20; ++j)
    for (std::int64_t c = 0; c < 16; ++c) {
      ASSERT_NEAR(twice.dk(j, c), 2 * once.dk(j, c), 1e-5);
      ASSERT_NEAR(twice.dv(j, c), 2 * once.dv(j, c), 1e-5);
    }
}

TEST_P(AttentionBackwardKernel, IsZeroWithoutQueriesOrKeys) {
  const Problem no_queries(0, 3, 8);
  Gradients gradients(no_queries);
  gradients.dk.fill(1.0f);
  gradients.dv.fill(1.0f);
  run(no_queries, gradients);
  EXPECT_EQ(gradients.dk(2, 7), 0.0f);
  EXPECT_EQ(gradients.dv(0, 0), 0.0f);
  const Problem no_keys(3, 0, 8);
  Gradients others(no_keys);
  others.dq.fill(1.0f);
  run(no_keys, others);
  EXPECT_EQ(others.dq(2, 7), 0.0f);
}

INSTANTIATE_TEST_SUITE_P(, AttentionBackwardKernel, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
