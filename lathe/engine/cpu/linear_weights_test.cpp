// Every kernel of a linear layer against the dense one, to the bit, wherever the zeros are.

#include "lathe/engine/cpu/linear_weights.h"

#include <cmath>
#include <functional>
#include <limits>

#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

// A weight [n, k] whose elements are kept where `is_kept(row, column)`.
template <typename Kept>
Matrix pruned(std::int64_t n, std::int64_t k, const Kept& is_kept) {
  Matrix weight = Matrix::random(n, k, 0, 2);
  for (std::int64_t r = 0; r < n; ++r)
    for (std::int64_t c = 0; c < k; ++c)
      if (!is_kept(r, c)) weight(r, c) = 0;
  return weight;
}

class EveryLinearKernel : public EveryIsa {
 protected:
  Matrix product(LinearKernel kernel, const Matrix& x, const Matrix& weight, LinearArgs args) {
    LinearWeights weights(weight.rows(), weight.columns());
    weights.pack_for(kernel, table(),
                     {weight.data(), static_cast<std::size_t>(weight.rows() * weight.columns())});
    Matrix y(x.rows(), weight.rows());
    const AlignedBuffer scratch((weights.scratch_floats(table(), x.rows()) + 16) * 4);
    args.rows = x.rows();
    args.x = x.data();
    if (args.y == nullptr) args.y = y.data();
    args.scratch = scratch.floats();
    weights.multiply(table(), args);
    EXPECT_TRUE(y.guards_are_intact());
    return y;
  }
  void expect_same_as_dense(const Matrix& x, const Matrix& weight, const LinearArgs& args) {
    const Matrix dense = product(LinearKernel::Dense, x, weight, args);
    for (const LinearKernel kernel : kSparseKernels)
      EXPECT_TRUE(product(kernel, x, weight, args).has_same_bits(dense))
          << name(kernel) << " " << x.rows() << " x " << weight.rows() << " x " << weight.columns();
  }
};

TEST_P(EveryLinearKernel, GivesTheBitsOfTheDenseOneForAwkwardSizes) {
  for (const auto& [rows, n, k] :
       {std::tuple{1, 1, 1}, std::tuple{2, 3, 1}, std::tuple{5, 15, 17}, std::tuple{16, 64, 128},
        std::tuple{17, 65, 129}, std::tuple{33, 63, 300}, std::tuple{42, 130, 127},
        std::tuple{65, 70, 256}, std::tuple{150, 33, 40}}) {
    const Matrix bias = Matrix::random(1, n, 0, 3), residual = Matrix::random(rows, n, 0, 4);
    const Matrix x = Matrix::random(rows, k, 0, 1);
    const Matrix weight =
        pruned(n, k, [](std::int64_t r, std::int64_t c) { return (r * 7 + c * 5) % 9 == 0; });
    for (const Unary activation : {Unary::None, Unary::GeluErf})
      for (const float* added : {static_cast<const float*>(nullptr), residual.data()})
        expect_same_as_dense(x, weight,
                             {.bias = bias.data(), .activation = activation, .residual = added});
    expect_same_as_dense(x, weight, {});
  }
}

TEST_P(EveryLinearKernel, GivesTheBitsOfTheDenseOneWithEmptyAndFullRowsAndColumns) {
  const Matrix x = Matrix::random(37, 140, 0, 1);
  const Matrix bias = Matrix::random(1, 90, 0, 3);
  const LinearArgs args{.bias = bias.data(), .activation = Unary::Relu};
  expect_same_as_dense(x, pruned(90, 140, [](auto, auto) { return false; }), args);
  expect_same_as_dense(x, pruned(90, 140, [](auto, auto) { return true; }), args);
  expect_same_as_dense(x, pruned(90, 140, [](auto r, auto) { return r % 3 == 1; }), args);
  expect_same_as_dense(x, pruned(90, 140, [](auto, auto c) { return c % 5 == 2; }), args);
  expect_same_as_dense(x, pruned(90, 140, [](auto r, auto c) { return (r / 4 + c / 4) % 4 == 0; }),
                       args);
}

TEST_P(EveryLinearKernel, GivesTheBitsOfTheDenseOneForEveryGranularity) {
  const auto random = [](auto r, auto c) { return (r * 7919 + c * 104729) % 1009; };
  const std::vector<std::pair<const char*, std::function<bool(std::int64_t, std::int64_t)>>>
      granularities = {
          {"element", [&](auto r, auto c) { return random(r, c) < 200; }},
          {"2:4", [&](auto r, auto c) { return (c + random(r, c / 4)) % 4 < 2; }},
          {"4:8", [&](auto r, auto c) { return (c + random(r, c / 8)) % 8 < 4; }},
          {"1:4", [&](auto r, auto c) { return (c + random(r, c / 4)) % 4 == 0; }},
          {"1x16", [&](auto r, auto c) { return random(r, c / 16) < 200; }},
          {"4x4", [&](auto r, auto c) { return random(r / 4, c / 4) < 200; }},
          {"row", [&](auto r, auto) { return random(r, 0) < 300; }},
          {"column", [&](auto, auto c) { return random(0, c) < 300; }},
          {"head", [&](auto r, auto) { return r / 32 % 2 == 0; }},
          {"neuron", [&](auto r, auto c) { return r % 3 != 0 && c % 2 == 0; }},
      };
  for (const std::int64_t rows : {1, 7, 50}) {
    const Matrix x = Matrix::random(rows, 150, 0, 1), residual = Matrix::random(rows, 70, 0, 4);
    for (const auto& [name, is_kept] : granularities) {
      SCOPED_TRACE(name);
      expect_same_as_dense(x, pruned(70, 150, is_kept),
                           {.activation = Unary::GeluTanh, .residual = residual.data()});
    }
  }
}

// As a layer whose output is added to its own residual is planned.
TEST_P(EveryLinearKernel, MayWriteOverItsResidual) {
  const Matrix x = Matrix::random(50, 30, 0, 1), residual = Matrix::random(50, 70, 0, 4);
  const Matrix weight = pruned(70, 30, [](auto r, auto c) { return r % 2 == 0 && c % 3 == 0; });
  for (const LinearKernel kernel : kSparseKernels) {
    const Matrix apart = product(kernel, x, weight, {.residual = residual.data()});
    Matrix y = residual;
    product(kernel, x, weight, {.residual = y.data(), .y = y.data()});
    EXPECT_TRUE(y.has_same_bits(apart)) << name(kernel);
  }
}

// Infinity times a weight that was pruned is NaN in the masked model, and so it stays.
TEST_P(EveryLinearKernel, GivesTheNaNsOfTheDenseOneForWhatIsNotFinite) {
  for (const float value :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()})
    for (const std::int64_t at : {0, 33, 64}) {
      Matrix x = Matrix::random(40, 65, 0, 1);
      x(17, at) = value;
      const Matrix weight = pruned(33, 65, [](auto r, auto c) { return (r + c) % 10 == 0; });
      expect_same_as_dense(x, weight, {});
      const Matrix y = product(LinearKernel::Elements, x, weight, {});
      EXPECT_TRUE(std::isnan(y(17, (at + 1) % 10)));
      EXPECT_TRUE(std::isfinite(y(16, (at + 1) % 10)));
    }
}

TEST_P(EveryLinearKernel, KnowsWhatIsFinite) {
  for (const std::int64_t count : {0, 1, 5, 64, 67, 200}) {
    Matrix x = Matrix::random(1, count);
    if (count > 0) x(0, 0) = std::numeric_limits<float>::max();
    EXPECT_TRUE(table().is_finite(x.data(), count));
    for (std::int64_t i = 0; i < count; ++i) {
      const float before = x(0, i);
      x(0, i) = -std::numeric_limits<float>::infinity();
      EXPECT_FALSE(table().is_finite(x.data(), count)) << i << " of " << count;
      x(0, i) = before;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, EveryLinearKernel, testing::ValuesIn(supported_isas()), isa_name);

TEST(KeptWeights, AreCountedByElementsGroupsRowsAndColumns) {
  std::vector<float> weight(18);  // [6, 3]
  weight[0 * 3 + 1] = 1;          // rows 0 and 3 are one group, row 5 is in the next
  weight[3 * 3 + 1] = 2;
  weight[5 * 3 + 0] = 3;
  const KeptWeights kept = count_kept(weight, 6, 3);
  EXPECT_EQ(kept.elements, 3);
  EXPECT_EQ(kept.groups, 2);
  EXPECT_EQ(kept.rows, (std::vector<std::int32_t>{0, 3, 5}));
  EXPECT_EQ(kept.columns, (std::vector<std::int32_t>{0, 1}));
}

}  // namespace
}  // namespace lathe::engine
