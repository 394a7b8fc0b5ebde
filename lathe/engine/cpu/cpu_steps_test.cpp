// Steps that move, broadcast and multiply arrays, on shapes beyond the examples of their ops.

#include "lathe/engine/testing/cpu_steps.h"

namespace lathe::engine {
namespace {

struct Case {
  const char* name;
  const char* text;
};

// Products here have at most 130 terms below 1: their roundings add up to less than
// 130 * 130 * 2^-24.
constexpr double kTolerance = 1.1e-3;

constexpr Case kCases[] = {
    {"MatmulOfActivations", R"(
      a = input() : f32[B,2,L,9]
      b = input() : f32[B,2,9,L]
      y = matmul(a, b)
      output y <- y)"},
    {"MatmulTransposed", R"(
      a = input() : f32[B,9,L]
      b = input() : f32[B,L,9]
      both = matmul(a, b) {transpose_a=true, transpose_b=true}
      c = input() : f32[B,9,130]
      left = matmul(a, c) {transpose_a=true}
      d = input() : f32[B,130,9]
      right = matmul(c, d) {transpose_b=true, transpose_a=true}
      output both <- both
      output left <- left
      output right <- right)"},
    {"MatmulOfOneMatrixForAll", R"(
      a = input() : f32[B,L,9]
      b = input() : f32[9,40]
      y = matmul(a, b)
      c = input() : f32[1,40,3]
      z = matmul(y, c)
      w = matmul(b, a) {transpose_a=true, transpose_b=true}
      output y <- y
      output z <- z
      output w <- w)"},
    {"MatmulBroadcastBothWays", R"(
      a = input() : f32[2,1,L,9]
      b = input() : f32[5,9,L]
      y = matmul(a, b)
      output y <- y)"},
    {"MatmulByAState", R"(
      a = input() : f32[B,L,9]
      w = state() : f32[9,40]
      y = matmul(a, w)
      back = matmul(y, w) {transpose_b=true}
      batches = state() : f32[2,9,6]
      s = input() : f32[2,L,9]
      z = matmul(s, batches)
      output back <- back
      output z <- z)"},
    {"PartsOfTheLastAxis", R"(
      x = input() : f32[T,10]
      p = split(x) {axis=-1, sizes=[3,5,2]}
      s = slice(x) {axis=1, begin=-4, end=-1}
      e = select(x) {axis=1, index=-3}
      c = concat(p#2, s, p#0) {axis=1}
      g = slice_gradient(s) {axis=1, begin=6, end=9} : f32[T,10]
      h = select_gradient(e) {axis=-1, index=7} : f32[T,10]
      k = concat_gradient(c, p#2, s, p#0) {axis=-1}
      output e <- e
      output c <- c
      output g <- g
      output h <- h
      output k <- k#1)"},
    {"PartsOfAnotherAxis", R"(
      x = input() : f32[B,L,4]
      s = slice(x) {axis=1, begin=1}
      e = select(x) {axis=1, index=-1}
      c = concat(x, s) {axis=1}
      g = slice_gradient(s) {axis=1, begin=1} : f32[B,L,4]
      h = select_gradient(e) {axis=1, index=0} : f32[B,L,4]
      k = concat_gradient(c, x, s) {axis=1}
      f = select(x) {axis=0, index=1}
      output c <- c
      output e <- e
      output g <- g
      output h <- h
      output k <- k#1
      output f <- f)"},
    {"PartsOfIds", R"(
      x = input() : i32[B,L]
      y = input() : i64[B,6]
      s = slice(x) {axis=1, begin=0, end=-1}
      t = split(y) {axis=1, sizes=[2,4]}
      e = select(y) {axis=1, index=0}
      c = concat(x, s) {axis=1}
      z = transpose(y) {axes=[1,0]}
      output s <- s
      output t <- t#1
      output e <- e
      output c <- c
      output z <- z)"},
    {"EveryPermutation", R"(
      x = input() : f32[B,L,2,3]
      a = transpose(x) {axes=[0,2,1,3]}
      b = transpose(x) {axes=[0,2,3,1]}
      c = transpose(x) {axes=[3,2,1,0]}
      d = transpose(b) {axes=[0,3,1,2]}
      output a <- a
      output b <- b
      output c <- c
      output d <- d)"},
    {"BroadcastMaps", R"(
      x = input() : f32[B,L,6]
      row = input() : f32[6]
      lead = input() : f32[1,1,6]
      one = input() : f32[]
      column = input() : f32[B,L,1]
      middle = input() : f32[B,1,6]
      scores = input() : f32[B,2,L,L]
      mask = input() : f32[B,1,1,L]
      flat = input() : f32[B,L]
      a = add(x, row)
      b = mul(lead, a)
      c = sub(one, b)
      d = div(c, column)
      e = mul(middle, d)
      f = add(scores, mask)
      g = mul(flat, one)
      h = add(g, flat)
      i = add(one, one)
      j = exp(h)
      output e <- e
      output f <- f
      output i <- i
      output j <- j)"},
    {"SumsToOperands", R"(
      x = input() : f32[B,L,6]
      a = sum_to(x) : f32[6]
      b = sum_to(x) : f32[B,1,6]
      c = sum_to(x) : f32[B,L,1]
      d = sum_to(x) : f32[]
      e = sum_to(x) : f32[L,6]
      f = broadcast_to(c) : f32[B,L,6]
      g = broadcast_to(a) : f32[B,L,6]
      output b <- b
      output d <- d
      output e <- e
      output f <- f
      output g <- g)"},
    {"SoftmaxOverKeys", R"(
      x = input() : f32[B,2,L,L]
      dy = input() : f32[B,2,L,L]
      y = softmax(x)
      z = log_softmax(x)
      dx = softmax_gradient(dy, y)
      dz = log_softmax_gradient(dy, z)
      output dx <- dx
      output dz <- dz)"},
    {"Filled", R"(
      x = input() : f32[B,L]
      a = full_like(x) {value=2.5}
      b = constant() {values=[1.0,-2.0,0.5]} : f32[3]
      c = constant() {values=[7]} : i32[B,L]
      output a <- a
      output b <- b
      output c <- c)"},
};

class CpuSteps : public testing::TestWithParam<Case> {};

TEST_P(CpuSteps, AgreeWithTheReference) {
  const Graph graph = parse_graph(GetParam().text);
  for (const std::int64_t length : {1, 2, 37, 130}) {
    SCOPED_TRACE(length);
    Feed feed = random_feed(graph, {{"B", 2}, {"L", length}, {"T", 3 * length}}, 1);
    expect_own_steps(graph, random_state(graph, 2), feed, kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(, CpuSteps, testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.name; });

// Positions beyond the tables of the step, and negative ones, are turned by their own angles; a
// result is two products of numbers below 1 with cosines rounded to float.
TEST(RopeStep, TurnsByAnyPosition) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[T,16]
    positions = input() : i32[T]
    wide = input() : i64[T]
    y = rope(x, positions) {heads=2}
    z = rope(x, wide) {heads=1, interleaved=true, theta=500000.0}
    back = rope_gradient(z, wide) {heads=1, interleaved=true, theta=500000.0}
    output y <- y
    output z <- z
    output back <- back)");
  const std::vector<std::int32_t> positions{0, 1, 63, 64, 65, 4095, 4096, 131071, -3};
  Feed feed = random_feed(graph, {{"T", 9}}, 1);
  feed["positions"] = Tensor::from<std::int32_t>({9}, std::span<const std::int32_t>(positions));
  feed["wide"] = feed["positions"].converted(DType::I64);
  expect_own_steps(graph, {}, feed, 8 * kUnit);
}

// One row of a table takes all sums, some, or each its own; sums of 700 numbers below 1.
TEST(EmbeddingGradientStep, SharesRowsAndColumnsOfAnyTable) {
  const Graph graph = parse_graph(R"(
    dy = input() : f32[T,131]
    narrow = input() : f32[T,5]
    types = input() : i32[T]
    words = input() : i32[T]
    a = embedding_gradient(dy, types) {rows=2}
    b = embedding_gradient(dy, words) {rows=900}
    c = embedding_gradient(narrow, types) {rows=2}
    output a <- a
    output b <- b
    output c <- c)");
  for (const std::int64_t tokens : {0, 1, 700}) {
    SCOPED_TRACE(tokens);
    Feed feed = random_feed(graph, {{"T", tokens}}, 1);
    std::vector<std::int32_t> types, words;
    for (std::int32_t i = 0; i < tokens; ++i) {
      types.push_back(i % 100 == 7 ? 1 : 0);
      words.push_back(i % 3 == 0 ? 5 : i * 7 % 900);
    }
    feed["types"] = Tensor::from<std::int32_t>({tokens}, std::span<const std::int32_t>(types));
    feed["words"] = Tensor::from<std::int32_t>({tokens}, std::span<const std::int32_t>(words));
    expect_own_steps(graph, {}, feed, 700 * 700 * kUnit);
  }
}

TEST(SelectInSequenceStep, LeavesZerosInALargeGradient) {
  const Graph graph = parse_graph(R"(
    dy = input() : f32[S,96]
    offsets = input() : i32[S+1]
    x = input() : f32[T,96]
    dx = select_in_sequence_gradient(dy, offsets) : f32[T,96]
    y = add(dx, x)
    output dx <- dx
    output y <- y)");
  Feed feed = random_feed(graph, {{"S", 3}, {"T", 1500}}, 1);
  feed["offsets"] = Tensor::from<std::int32_t>({4}, {0, 1, 700, 1500});
  expect_own_steps(graph, {}, feed, 0);
}

TEST(OptimizerSteps, ShareTheElementsOfAParameter) {
  const Graph graph = parse_graph(R"(
    g = input() : f32[601,131]
    rate = input() : f32[]
    scale = input() : f32[]
    random = input() : i32[3]
    p = state() : f32[601,131]
    m = state() : f32[601,131]
    v = state() : f32[601,131]
    squares = sum_squares(g)
    n = adamw(p, g, m, v, rate, scale, random)
    output squares <- squares
    output n <- n)");
  Feed feed = random_feed(graph, {}, 1);
  feed["random"] = Tensor::from<std::int32_t>({3}, {1, 0, 3});
  feed["rate"] = Tensor::from<float>({}, {1e-3f});
  feed["scale"] = Tensor::from<float>({}, {0.5f});
  State state = random_state(graph, 2);
  for (float& moment : state.find("v")->second.mutable_data<float>()) moment = std::abs(moment);
  expect_own_steps(graph, state, feed, 1e-2);
}

TEST(RunningAverageStep, MovesUnlessTheUpdateIsSkipped) {
  const Graph graph = parse_graph(R"(
    kept = state() : f32[131]
    seen = input() : f32[131]
    scale = input() : f32[]
    next = running_average(kept, seen, scale) {momentum=0.3}
    output next <- next)");
  Feed feed = random_feed(graph, {}, 1);
  for (const float scale : {0.5f, std::numeric_limits<float>::quiet_NaN()}) {
    feed["scale"] = Tensor::from<float>({}, {scale});
    expect_own_steps(graph, random_state(graph, 2), feed, 0);
  }
}

TEST(AxisPartsStep, RefusesAnIndexThatTheBatchDoesNotHave) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,L,4]
    y = select(x) {axis=1, index=5}
    output y <- y)");
  const auto executor = make_executor(graph, {});
  EXPECT_THROW(executor->run(random_feed(graph, {{"B", 2}, {"L", 3}}, 1)), UserError);
}

}  // namespace
}  // namespace lathe::engine
