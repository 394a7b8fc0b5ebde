#include "lathe/engine/cpu/cpu_executor.h"

#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/cpu/every_isa.h"
#include "lathe/engine/testing/executor_cases.h"

namespace lathe::engine {
namespace {

// A float sum of up to 48 products of numbers below one is off by at most 48 roundings of 2^-24 of
// its size; a few such layers after each other stay within 2e-5.
constexpr double kTolerance = 2e-5;

struct Network {
  const char* name;
  const char* text;
  bool is_in_rows = true;  ///< B rows; otherwise T tokens
};

const Network kNetworks[] = {
    {"Perceptron", R"(
      x = input() : f32[B,24]
      w0 = state() : f32[48,24]
      b0 = state() : f32[48]
      w1 = state() : f32[5,48]
      b1 = state() : f32[5]
      h = linear(x, w0, b0)
      a = relu(h)
      y = linear(a, w1, b1)
      output y <- y)"},
    {"EveryActivation", R"(
      x = input() : f32[B,16]
      w = state() : f32[16,16]
      b = state() : f32[16]
      h0 = linear(x, w, b)
      a0 = gelu(h0)
      h1 = linear(a0, w, b)
      a1 = gelu(h1) {approximate="tanh"}
      h2 = linear(a1, w)
      a2 = silu(h2)
      h3 = linear(a2, w, b)
      a3 = sigmoid(h3)
      h4 = linear(a3, w, b)
      a4 = tanh(h4)
      h5 = linear(a4, w, b)
      a5 = quick_gelu(h5)
      output y <- a5)"},
    {"Residuals", R"(
      x = input() : f32[B,16]
      w = state() : f32[16,16]
      b = state() : f32[16]
      h = linear(x, w, b)
      r = add(h, x)
      k = linear(r, w, b)
      a = relu(k)
      s = add(r, a)
      n = layer_norm(s, b, b)
      output y <- n)"},
    {"OutputsThatAreAlsoRead", R"(
      x = input() : f32[B,16]
      w = state() : f32[16,16]
      h = linear(x, w)
      a = relu(h)
      k = linear(a, w)
      output hidden <- h
      output active <- a
      output y <- k
      output same <- x
      output weight <- w)"},
    {"Broadcasts", R"(
      x = input() : f32[B,16]
      v = state() : f32[16]
      c = state() : f32[1]
      k = input() : f32[B,1]
      a = mul(x, v)
      d = sub(v, a)
      e = add(d, c)
      f = mul(e, k)
      g = maximum(f, a)
      output y <- g)"},
    {"OneValueUnderTwoShapes", R"(
      x = input() : f32[B,32]
      w = state() : f32[32,32]
      h = linear(x, w)
      r = reshape(h) : f32[B,4,8]
      s = softmax(r)
      t = reshape(s) : f32[B,32]
      y = add(t, h)
      output y <- y
      output r <- r)"},
    {"OpsWithoutAKernel", R"(
      x = input() : f32[B,16]
      w = state() : f32[16,16]
      s = split(x) {axis=-1, sizes=[4,12]}
      c = concat(s#1, s#0) {axis=-1}
      h = linear(c, w)
      m = softmax(h) {axis=0}
      a = relu(m)
      output y <- a
      output part <- s#1)"},
    {"AWeightThatIsComputed", R"(
      x = input() : f32[B,16]
      w = state() : f32[16,16]
      v = relu(w)
      h = linear(x, v)
      y = relu(h)
      output y <- y)"},
    {"AnOperandReadWholeInItsOwnRows", R"(
      x = input() : f32[B,16]
      w = state() : f32[16]
      v = state() : f32[1,16]
      a = relu(v)
      f = reshape(a) : f32[16]
      b = add(v, f)
      c = reshape(b) : f32[16]
      y = mul(x, c)
      output y <- y)"},
    {"Norms", R"(
      x = input() : f32[B,3,16]
      g = state() : f32[16]
      a = rms_norm(x, g)
      b = layer_norm(a, g, g) {eps=1e-3}
      c = log_softmax(b)
      d = exp(c)
      output y <- d)"},
};

class EveryNetwork : public testing::TestWithParam<Network> {};

TEST_P(EveryNetwork, AgreesWithTheReferenceOnEveryPathThreadCountAndBatch) {
  const Graph graph = parse_graph(GetParam().text);
  const State state = random_state(graph, 1);
  for (const Isa isa : supported_isas()) {
    SCOPED_TRACE(name(isa));
    ThreadPool two(2), three(3);
    CpuExecutor alone(graph, state, {.isa = isa});
    CpuExecutor pair(graph, state, {.pool = &two, .isa = isa});
    CpuExecutor triple(graph, state, {.pool = &three, .isa = isa});
    // Growing and shrinking, within a tile and over several.
    for (const std::int64_t rows : {3, 700, 1, 0, 50}) {
      SCOPED_TRACE(rows);
      const Feed feed = random_feed(graph, {{"B", rows}}, 7);
      const Feed outputs = alone.run(feed);
      expect_near(outputs, make_executor(graph, state, {.device = "reference"})->run(feed),
                  kTolerance);
      expect_identical(pair.run(feed), outputs);
      expect_identical(triple.run(feed), outputs);
      expect_identical(alone.run(feed), outputs);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, EveryNetwork, testing::ValuesIn(kNetworks),
                         [](const auto& test) { return std::string(test.param.name); });

// Layers too large for tiles, and what flows back through them.
constexpr const char* kLargeLayers = R"(
    x = input() : f32[B,1024]
    dy = input() : f32[B,300]
    w = state() : f32[300,1024]
    b = state() : f32[300]
    h = linear(x, w, b)
    a = gelu(h)
    dx = linear_input_gradient(dy, w)
    dw = linear_weight_gradient(dy, x)
    output y <- a
    output dx <- dx
    output dw <- dw)";

TEST(CpuExecutor, ComputesLargeLayersToTheSameBitsOnAnyNumberOfThreads) {
  const Graph graph = parse_graph(kLargeLayers);
  const State state = random_state(graph, 1);
  // As for the small ones, but sums have up to 1024 terms.
  constexpr double kLargeTolerance = 1024 * 0x1p-24 * 10;
  for (const Isa isa : supported_isas()) {
    SCOPED_TRACE(name(isa));
    CpuExecutor alone(graph, state, {.isa = isa});
    for (const std::int64_t rows : {1, 130, 7}) {
      const Feed feed = random_feed(graph, {{"B", rows}}, 7);
      const Feed outputs = alone.run(feed);
      expect_near(outputs, make_executor(graph, state, {.device = "reference"})->run(feed),
                  kLargeTolerance);
      for (const int threads : {2, 3, 5, 16}) {
        ThreadPool pool(threads);
        CpuExecutor shared(graph, state, {.pool = &pool, .isa = isa});
        expect_identical(shared.run(feed), outputs);
      }
    }
  }
}

TEST(CpuExecutor, GivesARowOfALargeLayerTheSameBitsAmongAnyRows) {
  const Graph graph = parse_graph(kLargeLayers);
  const State state = random_state(graph, 1);
  ThreadPool pool(3);
  CpuExecutor executor(graph, state, {.pool = &pool});
  const Feed many = random_feed(graph, {{"B", 61}}, 7);
  const Feed together = executor.run(many);
  for (const std::int64_t row : {0, 17, 60}) {
    Feed one;
    for (const auto& [name, tensor] : many) {
      const std::int64_t width = tensor.dims()[1];
      one[name] = Tensor::from<float>(
          {1, width}, tensor.data<float>().subspan(static_cast<std::size_t>(row * width),
                                                   static_cast<std::size_t>(width)));
    }
    const Feed single = executor.run(one);
    for (const std::string result : {"y", "dx"}) {
      const std::span<const float> alone = single.find(result)->second.data<float>();
      const std::span<const float> among = together.find(result)->second.data<float>();
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), among.begin() + row * std::ssize(alone)));
    }
  }
}

TEST(CpuExecutor, NamesTheNodeOfAnIdOutsideItsTable) {
  const Graph graph = parse_graph(R"(
    ids = input() : i32[T]
    t = state() : f32[9,8]
    u = state() : f32[9,8]
    words = embedding(ids, t)
    more = embedding(ids, u)
    y = add(words, more)
    z = relu(words)
    output y <- y
    output z <- z
  )");
  const State state = random_state(graph, 1);
  const auto refusal = [&](const char* kind, std::int32_t id) {
    const auto executor = make_executor(graph, state, {.device = kind});
    return error_text([&] { executor->run({{"ids", Tensor::from<std::int32_t>({2}, {0, id})}}); });
  };
  EXPECT_EQ(refusal("cpu", 9), "node \"words\": id 9 is outside the table of 9 rows");
  EXPECT_EQ(refusal("cpu", -1), "node \"words\": id -1 is outside the table of 9 rows");
  EXPECT_TRUE(refusal("reference", 9).starts_with("node \"words\": ")) << refusal("reference", 9);
}

// Steps that are tasks share a stage: its threads must know whose task it was.
TEST(CpuExecutor, NamesTheNodeOfATaskThatFails) {
  const Graph graph = parse_graph(R"(
    a = input() : f32[5,4]
    b = input() : f32[5,4]
    some = input() : i32[]
    more = input() : i32[]
    first = sum_squares_of_rows(a, some)
    second = sum_squares_of_rows(b, more)
    output first <- first
    output second <- second
  )");
  ThreadPool pool(2);
  CpuExecutor executor(graph, {}, {.pool = &pool});
  const auto squares = [&](std::int32_t some, std::int32_t more) {
    return executor.run({{"a", Tensor::from<float>({5, 4}, std::vector<float>(20, 1.0f))},
                         {"b", Tensor::from<float>({5, 4}, std::vector<float>(20, 2.0f))},
                         {"some", Tensor::from<std::int32_t>({}, {some})},
                         {"more", Tensor::from<std::int32_t>({}, {more})}});
  };
  EXPECT_EQ(squares(5, 1).at("second").data<float>()[0], 16.0f);
  EXPECT_EQ(error_text([&] { squares(6, 5); }), "node \"first\": 6 rows are used, but there are 5");
  EXPECT_EQ(error_text([&] { squares(5, -1); }),
            "node \"second\": -1 rows are used, but there are 5");
}

TEST(CpuExecutor, NamesTheNodeOnceWhoseBatchIsTooSmall) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[N,3]
    g = state() : f32[3]
    y = normalize_batch(x, g, g)
    output y <- y
  )");
  CpuExecutor executor(graph, random_state(graph, 1), {});
  EXPECT_EQ(error_text([&] {
              executor.run(random_feed(graph, {{"N", 1}}, 1));
            }),
            "node \"y\": one element a channel has no variance: expected more");
}

TEST(CpuExecutor, WorksOnAfterABatchThatFailed) {
  const Graph graph = parse_graph(R"(
    ids = input() : i32[T]
    t = state() : f32[9,8]
    y = embedding(ids, t)
    output y <- y
  )");
  ThreadPool pool(2);
  CpuExecutor executor(graph, random_state(graph, 1), {.pool = &pool});
  const Feed good{{"ids", Tensor::from<std::int32_t>({2}, {3, 8})}};
  const Feed before = executor.run(good);
  EXPECT_THROW(executor.run({{"ids", Tensor::from<std::int32_t>({2}, {3, 99})}}), UserError);
  EXPECT_THROW(executor.run({}), UserError);
  expect_identical(executor.run(good), before);
}

TEST(CpuExecutor, MarksAStepThatRunsByDefinition) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    s = sin(x)
    y = relu(s)
    output y <- y
  )");
  CpuExecutor executor(graph, random_state(graph, 1), {});
  const PlanReport report = executor.report();
  ASSERT_EQ(report.steps.size(), 2u);
  EXPECT_TRUE(report.steps[0].is_reference);
  EXPECT_EQ(kernel_text(report.steps[0]), "sin (reference)");
  EXPECT_FALSE(report.steps[1].is_reference);
  EXPECT_EQ(kernel_text(report.steps[1]), "relu");
  EXPECT_EQ(count_fallbacks(graph, find_backend("cpu")), (std::map<std::string, int>{{"sin", 1}}));
  EXPECT_TRUE(count_fallbacks(graph, find_backend("reference")).empty());
}

TEST(CpuExecutor, ReportsItsPlan) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,16]
    w = state() : f32[16,16]
    h = linear(x, w)
    a = relu(h)
    m = softmax(a) {axis=0}
    n = softmax(m) {axis=0}
    o = softmax(n) {axis=0}
    y = linear(o, w)
    output y <- y
  )");
  CpuExecutor executor(graph, random_state(graph, 1), {});
  executor.run(random_feed(graph, {{"B", 100}}, 1));
  executor.run(random_feed(graph, {{"B", 40}}, 1));
  const PlanReport report = executor.report();
  ASSERT_EQ(report.steps.size(), 5u);
  EXPECT_EQ(report.steps[0].op, "fused_linear");
  EXPECT_EQ(report.steps[0].origins, (std::vector<std::string>{"h", "a"}));
  EXPECT_EQ(report.steps[1].origins, std::vector<std::string>{"m"});
  EXPECT_EQ(report.steps[0].flops.text(), "512*B");
  EXPECT_EQ(report.capacity, (SymbolValues{{"B", 100}}));
  EXPECT_EQ(report.last_sizes, (SymbolValues{{"B", 40}}));
  // a, m, n, o and y: of 6400 bytes each, of which never more than two are alive at once.
  EXPECT_EQ(report.arena_bytes_unshared, 5 * 6400);
  EXPECT_EQ(report.arena_bytes, 2 * 6400);
  EXPECT_EQ(print(parse_graph(report.lowered)), report.lowered);
}

// Gradients of small weights beside so many others that they leave their stage. Pieces follow from
// the number of rows alone, and threads take blocks in the order of rows.
TEST(CpuExecutor, SumsSmallWeightsGradientsInPiecesOfManyRows) {
  std::string text = "symbols T\nx = input() : f32[T,260]\n";
  for (const std::string name : {"a", "b", "c", "d", "e"})
    text += name + " = input() : f32[T,250]\ng" + name + " = linear_weight_gradient(" + name +
            ", x)\noutput g" + name + " <- g" + name + "\n";
  text += "w = state() : f32[250,260]\ndx = linear_input_gradient(a, w)\noutput dx <- dx\n";
  const Graph graph = parse_graph(text);
  const State state = random_state(graph, 4);
  for (const std::int64_t rows : {0, 100, 1023, 1600}) {
    SCOPED_TRACE(rows);
    const Feed feed = random_feed(graph, {{"T", rows}}, 3);
    const auto alone = make_executor(graph, state);
    const Feed expected = alone->run(feed);
    expect_near(expected, make_executor(graph, state, {.device = "reference"})->run(feed),
                1e-6 * static_cast<double>(rows) + 1e-6);
    const std::string& layout = alone->report().steps[0].layout;
    EXPECT_EQ(layout.find("pieces") != std::string::npos, rows >= 1024) << layout;
    for (const int threads : {2, 5, 16}) {
      ThreadPool pool(threads);
      expect_identical(make_executor(graph, state, {.pool = &pool})->run(feed), expected);
    }
  }
}

}  // namespace
}  // namespace lathe::engine
