#include "lathe/engine/cuda/cuda_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <thread>

#include "lathe/core/testing/error_text.h"
#include "lathe/engine/testing/cuda_gpu.h"

// On a GPU: sizes that are no multiple of any tile, rows beyond the real ones, states, faults.
namespace lathe::engine {
namespace {

Tensor integers(std::vector<std::int32_t> values) {
  return Tensor::from<std::int32_t>({static_cast<std::int64_t>(values.size())},
                                    std::span<const std::int32_t>(values));
}

// One forward and backward chain at widths and lengths off every tile.
TEST(CudaExecutor, LeavesRowsBeyondTheRealOnesOutOfSums) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(R"(
    ids = input() : i32[T]
    labels = input() : i32[T]
    dsum = input() : f32[]
    table = state() : f32[40,36]
    g = state() : f32[36]
    b = state() : f32[36]
    w = state() : f32[52,36]
    c = state() : f32[52]
    u = state() : f32[7,52]
    d = state() : f32[7]
    x = embedding(ids, table)
    n = layer_norm(x, g, b)
    h = linear(n, w, c)
    a = gelu(h)
    y = linear(a, u, d)
    loss = cross_entropy(y, labels)
    dy = cross_entropy_gradient(dsum, y, labels)
    du = linear_weight_gradient(dy, a)
    dd = sum_rows(dy)
    da = linear_input_gradient(dy, u)
    dh = map_gradient(da, h) {function="gelu"}
    dw = linear_weight_gradient(dh, n)
    dn = linear_input_gradient(dh, w)
    dx = layer_norm_gradient(dn, x, g)
    dt = embedding_gradient(dx, ids) {rows=40}
    ds = sum_squares(dx)
    output loss <- loss
    output count <- loss#1
    output du <- du
    output dd <- dd
    output dw <- dw
    output dg <- dx#1
    output db <- dx#2
    output dt <- dt
    output ds <- ds
    output y <- y)");
  const State state = random_state(graph, 3);
  const std::unique_ptr<Executor> gpu = make_executor(graph, state, {.device = "cuda"});
  for (const std::int64_t tokens : {139, 144, 137, 144, 130, 1}) {
    SCOPED_TRACE(tokens);
    Feed feed = random_feed(graph, {{"T", tokens}}, static_cast<unsigned>(tokens));
    for (std::int64_t i = 0; i < tokens; ++i) {
      feed["ids"].mutable_data<std::int32_t>()[static_cast<std::size_t>(i)] =
          static_cast<std::int32_t>(i * i % 40);
      feed["labels"].mutable_data<std::int32_t>()[static_cast<std::size_t>(i)] =
          i % 9 == 0 ? -100 : static_cast<std::int32_t>(i % 7);
    }
    const Feed actual = gpu->run(feed);
    expect_near(actual, make_executor(graph, state, {.device = "reference"})->run(feed), 1e-4);
    expect_identical(make_executor(graph, state, {.device = "cuda"})->run(feed), actual);
  }
}

// More elements than are added up by themselves, logits whose exponential overflows a float, and
// rows beyond the real ones. Terms and sums are double, as the reference's.
TEST(CudaExecutor, SumsTheCrossEntropyOfSigmoids) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(R"(
    x = input() : f32[T,9]
    y = input() : f32[T,9]
    dsum = input() : f32[]
    loss = binary_cross_entropy(x, y)
    dx = binary_cross_entropy_gradient(dsum, x, y)
    output loss <- loss
    output count <- loss#1
    output dx <- dx)");
  const std::unique_ptr<Executor> gpu = make_executor(graph, {}, {.device = "cuda"});
  const std::unique_ptr<Executor> reference = make_executor(graph, {}, {.device = "reference"});
  for (const std::int64_t rows : {1003, 139, 144, 1}) {
    SCOPED_TRACE(rows);
    Feed feed = random_feed(graph, {{"T", rows}}, static_cast<unsigned>(rows));
    for (float& x : feed["x"].mutable_data<float>()) x *= 50;
    for (float& y : feed["y"].mutable_data<float>()) y = y > 0 ? 1.0f : 0.0f;
    const Feed actual = gpu->run(feed);
    // One rounding to float on either side.
    expect_near(actual, reference->run(feed), 0x1p-23);
    expect_identical(gpu->run(feed), actual);
  }
}

// A vocabulary large enough for a sparse gradient, and a table of two rows beside it.
TEST(CudaExecutor, SumsGradientsOfEmbeddings) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(R"(
    ids = input() : i32[T]
    kinds = input() : i32[T]
    dy = input() : f32[T,130]
    rate = input() : f32[]
    scale = input() : f32[]
    random = input() : i32[3]
    table = state() : f32[3000,130]
    m = state() : f32[3000,130]
    v = state() : f32[3000,130]
    dt = embedding_gradient(dy, ids) {rows=3000}
    dk = embedding_gradient(dy, kinds) {rows=2}
    s = sum_squares(dt)
    t = adamw(table, dt, m, v, rate, scale, random) {weight_decay=0.1}
    output s <- s
    output dk <- dk
    state table <- t
    state m <- t#1
    state v <- t#2)");
  State state = random_state(graph, 3);
  for (float& value : state["v"].mutable_data<float>()) value = value * value;
  Feed feed = random_feed(graph, {{"T", 517}}, 5);
  for (std::size_t i = 0; i < 517; ++i)
    feed["ids"].mutable_data<std::int32_t>()[i] =
        static_cast<std::int32_t>(i % 3 == 0 ? 17 : i * 7919 % 3000);
  feed["rate"] = Tensor::from<float>({}, {0.01f});
  feed["scale"] = Tensor::from<float>({}, {0.5f});
  feed["random"] = integers({1, 0, 2});
  const std::unique_ptr<Executor> gpu = make_executor(graph, state, {.device = "cuda"});
  const std::unique_ptr<Executor> reference = make_executor(graph, state, {.device = "reference"});
  for (int step = 0; step < 3; ++step) {
    SCOPED_TRACE(step);
    expect_near(gpu->run(feed), reference->run(feed), 1e-4);
    expect_near(gpu->state(), reference->state(), 1e-4);
  }
  // A failed step leaves every state as it is.
  const State before = gpu->state();
  feed["scale"] = Tensor::from<float>({}, {std::nanf("")});
  gpu->run(feed);
  expect_identical(gpu->state(), before);
}

TEST(CudaExecutor, DropsTheElementsThatTheReferenceDrops) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(R"(
    x = input() : f32[T,21]
    random = input() : i32[3]
    examples = input() : i32[T]
    positions = input() : i32[T]
    one = state() : f32[]
    y = random_dropout(x, random, examples, positions) {rate=0.3, site=12}
    next = neg(one)
    output y <- y
    state one <- next)");
  const State state = random_state(graph, 1);
  Feed feed = random_feed(graph, {{"T", 33}}, 2);
  feed["random"] = integers({77, 5, 9});
  // One rounding of a product on either side: 2^-24 each.
  expect_near(make_executor(graph, state, {.device = "cuda"})->run(feed),
              make_executor(graph, state, {.device = "reference"})->run(feed), 1.2e-7);
}

TEST(CudaExecutor, MultipliesMatricesOfAnyShape) {
  LATHE_NEEDS_GPU();
  for (const char* text : {"a = input() : f32[5,7]\nb = input() : f32[7,3]\ny = matmul(a, b)",
                           "a = input() : f32[7,5]\nb = input() : f32[3,7]\n"
                           "y = matmul(a, b) {transpose_a=true, transpose_b=true}",
                           "a = input() : f32[4,5,7]\nb = input() : f32[4,7,3]\ny = matmul(a, b)",
                           "a = input() : f32[4,5,7]\nb = input() : f32[7,3]\ny = matmul(a, b)",
                           "a = input() : f32[2,1,5,7]\nb = input() : f32[3,7,6]\ny = matmul(a, b)",
                           "a = input() : f32[1000,300]\nb = input() : f32[300,200]\n"
                           "y = matmul(a, b)"}) {
    SCOPED_TRACE(text);
    const Graph graph = parse_graph(std::string(text) + "\noutput y <- y");
    expect_same_on_gpu(graph, {}, random_feed(graph, {}, 6));
  }
}

TEST(CudaExecutor, ComputesParametersAgainWhenAStateIsSet) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[4,4]
    m = state() : f32[4,4]
    p = mul(w, m)
    y = linear(x, p)
    output y <- y)");
  const State state = random_state(graph, 1), other = random_state(graph, 2);
  const Feed feed = random_feed(graph, {{"B", 3}}, 3);
  const std::unique_ptr<Executor> gpu = make_executor(graph, state, {.device = "cuda"});
  expect_near(gpu->run(feed), make_executor(graph, state, {.device = "reference"})->run(feed),
              1e-5);
  gpu->set_state(other);
  expect_near(gpu->run(feed), make_executor(graph, other, {.device = "reference"})->run(feed),
              1e-5);
  expect_identical(gpu->state(), other);
}

TEST(CudaExecutor, BeginsARunBeforeTheLastOneIsFinished) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[4,4]
    y = linear(x, w)
    half = constant() {values=[0.5]} : f32[]
    next = mul(w, half)
    output y <- y
    state w <- next)");
  const State state = random_state(graph, 1);
  const std::unique_ptr<Executor> gpu = make_executor(graph, state, {.device = "cuda"});
  const std::unique_ptr<Executor> one_by_one = make_executor(graph, state, {.device = "reference"});
  // The third is larger than what was there, so that memory is laid out anew under the second.
  std::vector<Feed> feeds;
  for (const std::int64_t rows : {3, 2, 700, 5, 700, 3})
    feeds.push_back(random_feed(graph, {{"B", rows}}, static_cast<std::uint64_t>(rows)));
  gpu->start(feeds[0]);
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    if (i + 1 < feeds.size()) gpu->start(feeds[i + 1]);
    SCOPED_TRACE(i);
    expect_near(gpu->finish(), one_by_one->run(feeds[i]), 1e-5);
  }
  expect_identical(gpu->state(), one_by_one->state());
}

TEST(CudaExecutor, ReportsAnIdOutsideItsTable) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(R"(
    ids = input() : i32[T]
    table = state() : f32[10,4]
    x = embedding(ids, table)
    output y <- x)");
  const std::unique_ptr<Executor> gpu =
      make_executor(graph, random_state(graph, 1), {.device = "cuda"});
  EXPECT_EQ(error_text([&] {
              gpu->run({{"ids", integers({3, 10})}});
            }),
            "node \"x\": an id, a label, an index or an offset of embedding is outside its range");
  EXPECT_NO_THROW(gpu->run({{"ids", integers({3, 9})}}));
}

TEST(CudaExecutor, SaysHowMuchMemoryIsMissing) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(R"(
    x = input() : f32[B]
    y = constant() {values=[1.0]} : f32[B,1073741824]
    s = sum(y) {axes=[1]}
    output y <- s)");
  const std::unique_ptr<Executor> gpu = make_executor(graph, {}, {.device = "cuda"});
  EXPECT_THAT(error_text([&] {
                gpu->run(random_feed(graph, {{"B", 4096}}, 1));
              }),
              testing::HasSubstr("device cuda: out of GPU memory: 1759218"));
  EXPECT_NO_THROW(make_executor(parse_graph("x = input() : f32[B]\ny = relu(x)\noutput y <- y"), {},
                                {.device = "cuda"})
                      ->run({{"x", Tensor(DType::F32, {4})}}));
}

float rounded_to_bf16(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  bits += 0x7fff + (bits >> 16 & 1);
  return std::bit_cast<float>(bits & 0xffff0000u);
}

// Both kinds of products: our own, and the library's, which large weights have.
TEST(CudaExecutor, RoundsOperandsAndResultsOfProductsToBfloat16) {
  LATHE_NEEDS_GPU();
  for (const int width : {40, 512}) {
    SCOPED_TRACE(width);
    const Graph graph = parse_graph(fmt::format(R"(
      x = input() : f32[T,{0}]
      w = input() : f32[{0},{0}]
      y = linear(x, w)
      output y <- y)",
                                                width));
    Feed feed = random_feed(graph, {{"T", 100}}, 3);
    const Feed actual =
        make_executor(graph, {}, {.device = "cuda", .precision = Precision::Bf16})->run(feed);
    for (auto& [name, tensor] : feed)
      for (float& value : tensor.mutable_data<float>()) value = rounded_to_bf16(value);
    // Sums of exact products differ in their order alone, by far less than half of the last of
    // eight bits: results are the same or neighbours.
    expect_near(actual, make_executor(graph, {}, {.device = "reference"})->run(feed), 0x1p-7);
    for (std::int64_t i = 0; i < actual.at("y").num_elements(); ++i) {
      const auto value = static_cast<float>(actual.at("y").at(i));
      ASSERT_EQ(value, rounded_to_bf16(value)) << i;
    }
  }
}

// Ten bits after the leading one of each operand: products are off by 2^-10 of their size at most.
TEST(CudaExecutor, RoundsOperandsOfProductsToTf32) {
  LATHE_NEEDS_GPU();
  for (const int width : {40, 512}) {
    SCOPED_TRACE(width);
    const Graph graph = parse_graph(fmt::format(R"(
      x = input() : f32[T,{0}]
      w = input() : f32[{0},{0}]
      a = abs(x)
      b = abs(w)
      y = linear(a, b)
      output y <- y)",
                                                width));
    const Feed feed = random_feed(graph, {{"T", 100}}, 3);
    const Feed actual =
        make_executor(graph, {}, {.device = "cuda", .precision = Precision::Tf32})->run(feed);
    expect_near(actual, make_executor(graph, {}, {.device = "reference"})->run(feed), 0x1p-10);
  }
}

// Products that may be the batches of one call, forward, backward and summed over rows, beside one
// that may not. Of -1, 0 and 1 every sum is exact in every precision, in any order, and results
// stay below the 256 up to which bfloat16 has all whole numbers.
TEST(CudaExecutor, MultipliesByThreeWeightsAtOnce) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(R"(
    x = input() : f32[T,384]
    dq = input() : f32[T,384]
    dk = input() : f32[T,384]
    dv = input() : f32[T,384]
    wq = state() : f32[384,384]
    bq = state() : f32[384]
    wk = state() : f32[384,384]
    bk = state() : f32[384]
    wv = state() : f32[384,384]
    bv = state() : f32[384]
    up = state() : f32[512,384]
    q = linear(x, wq, bq)
    k = linear(x, wk, bk)
    v = linear(x, wv, bv)
    u = linear(x, up)
    xv = linear_input_gradient(dv, wv)
    gv = linear_weight_gradient(dv, x)
    xk = linear_input_gradient(dk, wk)
    gk = linear_weight_gradient(dk, x)
    xq = linear_input_gradient(dq, wq)
    gq = linear_weight_gradient(dq, x)
    gu = linear_weight_gradient(u, x)
    dx = add(xq, xk)
    output q <- q
    output k <- k
    output v <- v
    output dx <- dx
    output xv <- xv
    output gq <- gq
    output gk <- gk
    output gv <- gv
    output gu <- gu)");
  const auto make_whole = [](auto& tensors) {
    for (auto& [name, tensor] : tensors)
      for (float& value : tensor.template mutable_data<float>())
        value = value < -0.5f ? -1.0f : value > 0.5f ? 1.0f : 0.0f;
  };
  State state = random_state(graph, 3);
  make_whole(state);
  for (const Precision precision : {Precision::Float32, Precision::Tf32, Precision::Bf16}) {
    const std::unique_ptr<Executor> gpu =
        make_executor(graph, state, {.device = "cuda", .precision = precision});
    for (const std::int64_t tokens : {139, 144}) {
      SCOPED_TRACE(fmt::format("{} {}", name(precision), tokens));
      Feed feed = random_feed(graph, {{"T", tokens}}, static_cast<unsigned>(tokens));
      make_whole(feed);
      const Feed actual = gpu->run(feed);
      expect_near(actual, make_executor(graph, state, {.device = "reference"})->run(feed), 0);
      expect_identical(gpu->run(feed), actual);
    }
  }
}

// Each with its own stream: some capture while others run a size for the first time.
TEST(CudaExecutor, ThreadsRunExecutorsOfTheirOwn) {
  LATHE_NEEDS_GPU();
  const Graph graph = parse_graph(R"(
    x = input() : f32[T,32]
    w = state() : f32[64,32]
    b = state() : f32[64]
    h = linear(x, w, b)
    g = gelu(h)
    y = softmax(g)
    output y <- y)");
  const State state = random_state(graph, 5);
  const auto run_all = [&] {
    const std::unique_ptr<Executor> executor = make_executor(graph, state, {.device = "cuda"});
    std::vector<Feed> results;
    for (int round = 0; round < 3; ++round)
      for (std::int64_t rows = 8; rows <= 400; rows += 56)
        results.push_back(executor->run(random_feed(graph, {{"T", rows}}, 3)));
    return results;
  };
  const std::vector<Feed> expected = run_all();
  std::vector<std::vector<Feed>> actual(6);
  std::vector<std::thread> threads;
  for (std::vector<Feed>& results : actual) threads.emplace_back([&] { results = run_all(); });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<Feed>& results : actual) {
    ASSERT_EQ(results.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) expect_identical(results[i], expected[i]);
  }
}

}  // namespace
}  // namespace lathe::engine
