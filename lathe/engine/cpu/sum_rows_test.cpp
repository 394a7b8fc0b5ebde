#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

class SumRowsKernel : public EveryIsa {};

TEST_P(SumRowsKernel, AddsAllRowsInAscendingOrder) {
  for (const std::int64_t n : {1, 4, 19, 64, 127, 128, 150, 512})
    for (const std::int64_t rows : {0, 1, 2, 37}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << n);
      const Matrix x = Matrix::random(rows, n, 3);
      const Matrix start = Matrix::random(1, n, 0, 2);
      Matrix out = start;
      table().sum_rows_accumulate(x.data(), rows, n, x.stride(), out.data());
      for (std::int64_t c = 0; c < n; ++c) {
        float expected = start(0, c);
        for (std::int64_t r = 0; r < rows; ++r) expected += x(r, c);
        ASSERT_EQ(out(0, c), expected);
      }
      EXPECT_TRUE(out.guards_are_intact());
    }
}

TEST_P(SumRowsKernel, AddsSelectedRowsInTheOrderGiven) {
  const std::vector<std::int32_t> indices = {7, 0, 7, 3, 19};
  for (const std::int64_t n : {1, 15, 128, 131})
    for (std::int64_t count = 0; count <= 5; ++count)
      for (const bool accumulate : {false, true}) {
        const Matrix x = Matrix::random(20, n, 1);
        Matrix out(1, n);
        out.fill(0.25f);
        table().sum_selected_rows(x.data(), x.stride(), indices.data(), count, n, out.data(),
                                  accumulate);
        for (std::int64_t c = 0; c < n; ++c) {
          float expected = accumulate ? 0.25f : 0.0f;
          for (std::int64_t i = 0; i < count; ++i) expected += x(indices[i], c);
          ASSERT_EQ(out(0, c), expected);
        }
        EXPECT_TRUE(out.guards_are_intact());
      }
}

INSTANTIATE_TEST_SUITE_P(, SumRowsKernel, testing::ValuesIn(supported_isas()), isa_name);

}  // namespace
}  // namespace lathe::engine
