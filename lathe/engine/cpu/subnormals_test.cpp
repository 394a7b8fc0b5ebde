// Arithmetic on subnormal numbers is a hundred times slower on many processors, and whether a
// machine is one of them cannot be seen from its results. So these tests count: what training
// produces in volume must hold none.

#include <cmath>
#include <limits>

#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

std::int64_t num_subnormals(const Matrix& matrix) {
  std::int64_t count = 0;
  for (std::int64_t r = 0; r < matrix.rows(); ++r)
    for (std::int64_t c = 0; c < matrix.columns(); ++c)
      if (std::fpclassify(matrix(r, c)) == FP_SUBNORMAL) ++count;
  return count;
}

std::int64_t num_nonzeros(const Matrix& matrix) {
  std::int64_t count = 0;
  for (std::int64_t r = 0; r < matrix.rows(); ++r)
    for (std::int64_t c = 0; c < matrix.columns(); ++c)
      if (matrix(r, c) != 0.0f) ++count;
  return count;
}

class SubnormalNumbers : public EveryIsa {};

// An embedding row that no batch uses: its moments only decay.
TEST_P(SubnormalNumbers, AreNotLeftByDecayingMoments) {
  constexpr std::int64_t kCount = 333;
  Matrix param = Matrix::random(1, kCount, 0, 1), m = Matrix::random(1, kCount, 0, 2),
         v = Matrix::random(1, kCount, 0, 3), velocity = m;
  for (std::int64_t c = 0; c < kCount; ++c) v(0, c) = std::abs(v(0, c));
  std::int64_t seen = 0;
  for (int step = 1; step <= 2000; ++step) {
    table().adamw({.count = kCount,
                   .param = param.data(),
                   .gradient = nullptr,
                   .m = m.data(),
                   .v = v.data(),
                   .scale = 1.0f,
                   .beta1 = 0.9f,
                   .one_minus_beta1 = 0.1f,
                   .beta2 = 0.9f,
                   .one_minus_beta2 = 0.1f,
                   .decay = 1.0f,
                   .step_size = 1e-3f,
                   .root_correction = 1.0f,
                   .eps = 1e-8f});
    table().sgd({.count = kCount,
                 .param = param.data(),
                 .gradient = nullptr,
                 .velocity = velocity.data(),
                 .scale = 1.0f,
                 .learning_rate = 1e-3f,
                 .momentum = 0.9f,
                 .weight_decay = 0.0f});
    seen += num_subnormals(m) + num_subnormals(v) + num_subnormals(velocity);
  }
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(num_nonzeros(m) + num_nonzeros(v) + num_nonzeros(velocity), 0);
}

TEST_P(SubnormalNumbers, MomentsAboveTheSmallestNormalNumberStay) {
  constexpr float kSmallest = std::numeric_limits<float>::min();
  Matrix param(1, 4), m(1, 4), v(1, 4);
  m(0, 0) = 2 * kSmallest, m(0, 1) = -2 * kSmallest, m(0, 2) = kSmallest, m(0, 3) = -kSmallest;
  v(0, 0) = 2 * kSmallest, v(0, 1) = kSmallest;
  table().adamw({.count = 4,
                 .param = param.data(),
                 .gradient = nullptr,
                 .m = m.data(),
                 .v = v.data(),
                 .scale = 1.0f,
                 .beta1 = 0.75f,
                 .one_minus_beta1 = 0.25f,
                 .beta2 = 0.75f,
                 .one_minus_beta2 = 0.25f,
                 .decay = 1.0f,
                 .step_size = 1e-3f,
                 .root_correction = 1.0f,
                 .eps = 1e-8f});
  EXPECT_EQ(m(0, 0), 1.5f * kSmallest);
  EXPECT_EQ(m(0, 1), -1.5f * kSmallest);
  EXPECT_EQ(m(0, 2), 0.0f);
  EXPECT_EQ(m(0, 3), 0.0f);
  EXPECT_EQ(v(0, 0), 1.5f * kSmallest);
  EXPECT_EQ(v(0, 1), 0.0f);
}

// Scores spread over hundreds, so that in each row one key takes nearly all the weight. The
// caller's scratch still holds the last weights and score gradients, which the kernel multiplies
// with whole matrices.
TEST_P(SubnormalNumbers, AreNotMadeBySaturatedAttention) {
  constexpr std::int64_t kLength = 96, kWidth = 32;
  const Matrix q = Matrix::random(kLength, kWidth, 0, 1), k = Matrix::random(kLength, kWidth, 0, 2),
               v = Matrix::random(kLength, kWidth, 0, 3);
  for (const float size : {1.0f, 1e-3f, 1e-6f}) {
    Matrix dout = Matrix::random(kLength, kWidth, 0, 4);
    for (std::int64_t r = 0; r < kLength; ++r)
      for (std::int64_t c = 0; c < kWidth; ++c) dout(r, c) *= size;
    for (const float scale : {2.0f, 8.0f, 32.0f})
      for (const std::uint32_t threshold : {0u, 6554u}) {
        SCOPED_TRACE(testing::Message() << "gradients of " << size << ", scale " << scale
                                        << ", dropout threshold " << threshold);
        Matrix out(kLength, kWidth), dq(kLength, kWidth), dk(kLength, kWidth), dv(kLength, kWidth);
        const Dropout dropout{.threshold = threshold, .seed = 5, .step = 1, .site = 2};
        Matrix scratch(1, table().attention_scratch_size(kLength, kLength, kWidth));
        AttentionArgs forward{};
        forward.lq = forward.lk = forward.q_end = kLength;
        forward.d = kWidth;
        forward.q = q.data();
        forward.k = k.data();
        forward.v = v.data();
        forward.out = out.data();
        forward.q_stride = forward.k_stride = forward.v_stride = forward.out_stride = kWidth;
        forward.scale = scale;
        forward.scratch = scratch.data();
        forward.dropout = dropout;
        table().attention(forward);
        EXPECT_EQ(num_subnormals(scratch), 0) << "weights";
        EXPECT_EQ(num_subnormals(out), 0) << "results";

        Matrix more(1, table().attention_backward_scratch_size(kLength, kLength, kWidth));
        table().attention_backward({.lq = kLength,
                                    .lk = kLength,
                                    .d = kWidth,
                                    .q = q.data(),
                                    .k = k.data(),
                                    .v = v.data(),
                                    .dout = dout.data(),
                                    .q_stride = kWidth,
                                    .k_stride = kWidth,
                                    .v_stride = kWidth,
                                    .dout_stride = kWidth,
                                    .dq = dq.data(),
                                    .dk = dk.data(),
                                    .dv = dv.data(),
                                    .dq_stride = kWidth,
                                    .dk_stride = kWidth,
                                    .dv_stride = kWidth,
                                    .accumulate = false,
                                    .scale = scale,
                                    .causal = false,
                                    .keep = nullptr,
                                    .dropout = dropout,
                                    .scratch = more.data()});
        EXPECT_EQ(num_subnormals(more), 0) << "weights and score gradients";
        EXPECT_EQ(num_subnormals(dq), 0) << "gradients of queries";
        EXPECT_EQ(num_subnormals(dk), 0) << "gradients of keys";
        EXPECT_EQ(num_subnormals(dv), 0) << "gradients of values";
        EXPECT_GT(num_nonzeros(dv), 0);
      }
  }
}

TEST_P(SubnormalNumbers, AreNotMadeBySoftmaxAndItsLoss) {
  constexpr std::int64_t kRows = 40, kClasses = 301;
  Matrix logits = Matrix::random(kRows, kClasses, 0, 7);
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t c = 0; c < kClasses; ++c) logits(r, c) *= 30.0f;
  Matrix y(kRows, kClasses);
  table().softmax_rows({kRows, kClasses, logits.data(), kClasses, y.data(), kClasses});
  EXPECT_EQ(num_subnormals(y), 0);
  const std::vector<std::int32_t> labels(kRows, 3);
  table().cross_entropy_backward_rows({.rows = kRows,
                                       .classes = kClasses,
                                       .logits = logits.data(),
                                       .logits_stride = kClasses,
                                       .labels = labels.data(),
                                       .ignore_index = -100,
                                       .dsum = 1.0f / 4096,
                                       .dlogits = y.data(),
                                       .dlogits_stride = kClasses});
  EXPECT_EQ(num_subnormals(y), 0);
  EXPECT_GT(num_nonzeros(y), kRows * kClasses / 8);
}

// The rule is one comparison of the argument, so that every instruction set has the same zeros.
TEST_P(SubnormalNumbers, AreNotMadeByExp) {
  constexpr std::int64_t kCount = 4000;
  constexpr float kLowest = -87.3f;
  Matrix x(1, kCount), y(1, kCount);
  for (std::int64_t c = 0; c < kCount; ++c) x(0, c) = -80.0f - 0.01f * static_cast<float>(c);
  x(0, 0) = kLowest;
  x(0, 1) = std::nextafter(kLowest, -100.0f);
  table().unary(Unary::Exp, x.data(), kCount, y.data());
  EXPECT_EQ(num_subnormals(y), 0);
  for (std::int64_t c = 0; c < kCount; ++c)
    ASSERT_EQ(y(0, c) == 0.0f, x(0, c) < kLowest) << "exp(" << x(0, c) << ")";
}

INSTANTIATE_TEST_SUITE_P(, SubnormalNumbers, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
