#include "lathe/engine/cuda/cuda_few_rows.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/engine/cuda/cuda_executor.h"
#include "lathe/engine/testing/cuda_gpu.h"

namespace lathe::engine {
namespace {

cuda::Product small_product() {
  cuda::Product product;
  product.a_as = product.b_as = cuda::Number::BF16;
  product.n = 512;
  product.m.capacity = 32;
  product.k.capacity = 128;
  return product;
}

TEST(CudaFewRows, TakesProductsOfFewRowsInBfloat16) {
  EXPECT_TRUE(few_rows_stage(small_product()));
  cuda::Product many = small_product(), odd = small_product(), floats = small_product();
  many.m.capacity = 65;
  odd.k.capacity = 120;
  floats.a_as = cuda::Number::F32;
  for (const cuda::Product& product : {many, odd, floats}) EXPECT_FALSE(few_rows_stage(product));
}

TEST(CudaFewRows, TakesNormsOfSums) {
  cuda::RowChainArgs chain;
  chain.n = 128;
  chain.rows.capacity = 8;
  chain.num_sources = 2;
  chain.sources[1].kind = cuda::RowSource::Kind::Half;
  chain.stage = cuda::RowChainArgs::Stage::Normalize;
  const auto stage = few_rows_stage(chain);
  ASSERT_TRUE(stage);
  EXPECT_EQ(stage->norm.num_sources, 2);
  EXPECT_FALSE(stage->norm.sources[0].is_half);
  EXPECT_TRUE(stage->norm.sources[1].is_half);
  chain.sum_dropout.is_there = true;
  EXPECT_FALSE(few_rows_stage(chain));
}

// A layer's feed-forward part and a classifier: all of it is one launch.
void expect_one_launch(const std::vector<std::int64_t>& numbers_of_rows) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[T,128]
    up = state() : f32[512,128]
    down = state() : f32[128,512]
    last = state() : f32[3,128]
    b = state() : f32[512]
    c = state() : f32[128]
    d = state() : f32[3]
    weight = state() : f32[128]
    h = linear(x, up, b)
    g = gelu(h)
    y = linear(g, down, c)
    s = add(y, x)
    n = layer_norm(s, weight, c)
    t = linear(n, last, d)
    output n <- n
    output t <- t)");
  const State state = random_state(graph, 1);
  const ExecutionOptions options{.device = "cuda", .precision = Precision::Bf16};
  const std::unique_ptr<Executor> gpu = make_executor(graph, state, options);
  for (const std::int64_t rows : numbers_of_rows) {
    SCOPED_TRACE(rows);
    const Feed feed = random_feed(graph, {{"T", rows}}, 2);
    const Feed actual = gpu->run(feed);
    // Operands and results are rounded by 2^-9 at most; sums of 512 terms of random signs, and a
    // norm that makes them numbers of about 1 again.
    expect_near(actual, make_executor(graph, state, {.device = "reference"})->run(feed), 0x1p-4);
    expect_identical(gpu->run(feed), actual);
    expect_identical(gpu->run(feed), actual);
    EXPECT_LE(dynamic_cast<const CudaExecutor&>(*gpu).num_captured_nodes(), 4);
  }
}

TEST(CudaFewRows, ComputesALayerInOneLaunch) {
  LATHE_NEEDS_GPU();
  expect_one_launch({8});
}

// By itself, so that racecheck can look at several tiles of rows in a minute.
TEST(CudaFewRows, ComputesALayerOfSeveralTiles) {
  LATHE_NEEDS_GPU();
  expect_one_launch({33});
}

TEST(CudaFewRows, ComputesALayerOfAnyNumberOfRows) {
  LATHE_NEEDS_GPU();
  expect_one_launch({1, 64, 40});
}

}  // namespace
}  // namespace lathe::engine
