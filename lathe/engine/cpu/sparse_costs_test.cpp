#include "lathe/engine/cpu/sparse_costs.h"

#include <gtest/gtest.h>

namespace lathe::engine {
namespace {

constexpr Isa kIsas[] = {Isa::Plain, Isa::Avx2, Isa::Avx512};

// A weight [n, k] whose elements are kept where `is_kept(row, column)`.
template <typename Kept>
KeptWeights kept_where(std::int64_t n, std::int64_t k, const Kept& is_kept) {
  std::vector<float> weight;
  for (std::int64_t r = 0; r < n; ++r)
    for (std::int64_t c = 0; c < k; ++c) weight.push_back(is_kept(r, c) ? 1.0f : 0.0f);
  return count_kept(weight, n, k);
}

TEST(SparseCosts, LeaveADenseWeightAlone) {
  const KeptWeights kept = kept_where(256, 256, [](auto r, auto c) { return r + c > 0; });
  for (const Isa isa : kIsas)
    for (std::int64_t rows = 1; rows <= 64; ++rows)
      EXPECT_EQ(fastest_kernel(sparse_costs(isa), kept, rows), LinearKernel::Dense);
}

TEST(SparseCosts, PickTheKernelThatFitsWhereTheZerosAre) {
  const KeptWeights scattered =
      kept_where(256, 256, [](auto r, auto c) { return (r * 7 + c) % 20 == 0; });
  const KeptWeights blocks =
      kept_where(256, 256, [](auto r, auto c) { return (r / 4 * 7 + c) % 10 == 0; });
  const KeptWeights half = kept_where(256, 256, [](auto r, auto c) { return (r + c) % 2 == 0; });
  const KeptWeights rows = kept_where(256, 256, [](auto r, auto) { return r % 4 == 0; });
  const KeptWeights columns = kept_where(256, 256, [](auto, auto c) { return c % 4 == 0; });
  for (const Isa isa : kIsas) {
    const SparseCosts& costs = sparse_costs(isa);
    EXPECT_EQ(fastest_kernel(costs, scattered, 64), LinearKernel::Elements);
    EXPECT_EQ(fastest_kernel(costs, blocks, 64), LinearKernel::Groups);
    EXPECT_EQ(fastest_kernel(costs, rows, 64), LinearKernel::Reduced);
    EXPECT_EQ(fastest_kernel(costs, columns, 64), LinearKernel::Reduced);
    // A single row fills one lane of a vector: only zeros in whole rows of the weight pay soon.
    EXPECT_EQ(fastest_kernel(costs, half, 1), LinearKernel::Dense);
    EXPECT_EQ(fastest_kernel(costs, rows, 1), LinearKernel::Reduced);
  }
}

TEST(SparseCosts, ExpectLessTimeForFewerWeights) {
  for (const Isa isa : kIsas)
    for (const LinearKernel kernel : {LinearKernel::Groups, LinearKernel::Elements})
      for (const std::int64_t rows : {1, 16, 42, 64, 300}) {
        double before = std::numeric_limits<double>::infinity();
        for (const std::int64_t period : {1, 2, 8, 32}) {
          const KeptWeights kept =
              kept_where(128, 96, [&](auto r, auto c) { return (r / 4 + c) % period == 0; });
          const double time = expected_time(sparse_costs(isa), kernel, kept, rows);
          EXPECT_LT(time, before);
          EXPECT_GT(time, 0);
          before = time;
        }
      }
}

TEST(SparseCosts, WorkOutAnEmptyWeight) {
  const KeptWeights kept = kept_where(64, 64, [](auto, auto) { return false; });
  for (const Isa isa : kIsas)
    EXPECT_EQ(fastest_kernel(sparse_costs(isa), kept, 16), LinearKernel::Reduced);
}

}  // namespace
}  // namespace lathe::engine
