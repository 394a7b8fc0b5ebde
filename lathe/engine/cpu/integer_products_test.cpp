#include <random>

#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

class IntegerProducts : public EveryIsa {};

TEST_P(IntegerProducts, AreExactForEveryShape) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> any(-32768, 32767);
  for (const std::int64_t m : {1, 2, 5})
    for (const std::int64_t n : {1, 3, 4, 9})
      for (const std::int64_t depth : {32, 96}) {
        std::vector<std::int16_t> a(static_cast<std::size_t>(m * depth)),
            b(static_cast<std::size_t>(n * depth));
        for (auto* const matrix : {&a, &b})
          for (std::int16_t& x : *matrix) x = static_cast<std::int16_t>(any(random));
        a[0] = b[0] = a[1] = b[1] = -32768;  // two products that together leave 32 bits
        std::vector<std::int32_t> y(static_cast<std::size_t>(m * (n + 1)), 77);
        table().integer_products({m, n, depth, a.data(), depth, b.data(), depth, y.data(), n + 1});
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            std::int64_t sum = 0;
            for (std::int64_t p = 0; p < depth; ++p)
              sum += std::int64_t{a[static_cast<std::size_t>(i * depth + p)]} *
                     b[static_cast<std::size_t>(j * depth + p)];
            EXPECT_EQ(y[static_cast<std::size_t>(i * (n + 1) + j)],
                      static_cast<std::int32_t>(static_cast<std::uint32_t>(sum)));
          }
          EXPECT_EQ(y[static_cast<std::size_t>(i * (n + 1) + n)], 77) << "beside the row";
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Isas, IntegerProducts, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
