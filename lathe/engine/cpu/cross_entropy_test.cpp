#include <cmath>
#include <limits>

#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

constexpr std::int64_t kIgnored = -100;

class CrossEntropyKernel : public EveryIsa {
 protected:
  struct Loss {
    double sum = 0;
    std::int64_t count = 0;
  };
  Loss loss(const Matrix& logits, const std::vector<std::int32_t>& labels) const {
    Loss result;
    table().cross_entropy_rows({.rows = logits.rows(),
                                .classes = logits.columns(),
                                .logits = logits.data(),
                                .logits_stride = logits.stride(),
                                .labels = labels.data(),
                                .ignore_index = kIgnored,
                                .sum = &result.sum,
                                .count = &result.count});
    return result;
  }
  void gradient(const Matrix& logits, const std::vector<std::int32_t>& labels, float dsum,
                Matrix& dlogits) const {
    table().cross_entropy_backward_rows({.rows = logits.rows(),
                                         .classes = logits.columns(),
                                         .logits = logits.data(),
                                         .logits_stride = logits.stride(),
                                         .labels = labels.data(),
                                         .ignore_index = kIgnored,
                                         .dsum = dsum,
                                         .dlogits = dlogits.data(),
                                         .dlogits_stride = dlogits.stride()});
  }
};

TEST_P(CrossEntropyKernel, AgreesWithADoubleLoopForFewAndManyClasses) {
  for (const std::int64_t classes : {1, 2, 3, 16, 33, 1000, 30522}) {
    SCOPED_TRACE(classes);
    const Matrix logits = Matrix::random(4, classes, 3);
    const std::vector<std::int32_t> labels = {static_cast<std::int32_t>(classes - 1), 0, kIgnored,
                                              static_cast<std::int32_t>(classes / 2)};
    Matrix dlogits(4, classes, 1);
    dlogits.fill(std::numeric_limits<float>::quiet_NaN());
    gradient(logits, labels, 0.5f, dlogits);
    double exact = 0;
    // Sums by lanes take at most classes/4 additions in a row; the rest is exp and a division.
    const double units = static_cast<double>(classes) / 4 + 30;
    for (std::int64_t r = 0; r < 4; ++r) {
      double total = 0;
      for (std::int64_t c = 0; c < classes; ++c) total += std::exp(double{logits(r, c)});
      if (labels[r] != kIgnored) exact += std::log(total) - logits(r, labels[r]);
      for (std::int64_t c = 0; c < classes; ++c) {
        const double p = std::exp(double{logits(r, c)}) / total;
        const double expected =
            labels[r] == kIgnored ? 0.0 : 0.5 * (p - (c == labels[r] ? 1.0 : 0.0));
        ASSERT_NEAR(dlogits(r, c), expected, units * kUnit * p + (c == labels[r] ? kUnit : 0.0));
      }
    }
    const Loss result = loss(logits, labels);
    EXPECT_EQ(result.count, 3);
    EXPECT_NEAR(result.sum, exact, 3 * units * kUnit);
    EXPECT_TRUE(dlogits.guards_are_intact());
  }
}

TEST_P(CrossEntropyKernel, AddsToTheSumAndTheCount) {
  const Matrix logits = Matrix::random(6, 10);
  const std::vector<std::int32_t> labels = {1, 2, 3, 4, 5, 6};
  const Loss whole = loss(logits, labels);
  Loss parts;
  for (const std::int64_t r : {0, 3})
    table().cross_entropy_rows({.rows = 3,
                                .classes = 10,
                                .logits = logits.row(r),
                                .logits_stride = logits.stride(),
                                .labels = labels.data() + r,
                                .ignore_index = kIgnored,
                                .sum = &parts.sum,
                                .count = &parts.count});
  EXPECT_EQ(parts.sum, whole.sum);
  EXPECT_EQ(parts.count, 6);
}

TEST_P(CrossEntropyKernel, StaysFiniteForEnormousLogits) {
  Matrix logits(1, 2);
  logits(0, 0) = 3e38f;
  logits(0, 1) = -3e38f;
  EXPECT_EQ(loss(logits, {0}).sum, 0.0);
  EXPECT_EQ(loss(logits, {1}).sum, double{3e38f} * 2);
  gradient(logits, {1}, 1.0f, logits);  // in place
  EXPECT_EQ(logits(0, 0), 1.0f);
  EXPECT_EQ(logits(0, 1), -1.0f);
}

TEST_P(CrossEntropyKernel, PassesNanOn) {
  Matrix logits(1, 5);
  logits(0, 2) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(loss(logits, {0}).sum));
  gradient(logits, {0}, 1.0f, logits);
  for (std::int64_t c = 0; c < 5; ++c) EXPECT_TRUE(std::isnan(logits(0, c)));
}

INSTANTIATE_TEST_SUITE_P(, CrossEntropyKernel, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
