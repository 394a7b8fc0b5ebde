#include "lathe/engine/cuda/cuda_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/format_precision.h"
#include "lathe/engine/lower.h"

// Plans need no GPU: what runs, in how many launches and with which padding is known before.
namespace lathe::engine {
namespace {

CudaPlan plan_of(std::string_view text) {
  return make_cuda_plan(lower(parse_graph(text), find_backend("cuda")));
}

std::vector<std::string> ops_of(const CudaPlan& plan, const CudaLaunch& launch) {
  std::vector<std::string> result;
  for (const std::size_t step : launch.steps)
    result.push_back(plan.graph.op(plan.steps[step].node).name);
  return result;
}

TEST(CudaPlan, RoundsUpSymbolsThatCountRows) {
  const CudaPlan plan = plan_of(R"(
    ids = input() : i32[T]
    offsets = input() : i32[S+1]
    table = state() : f32[10,8]
    x = embedding(ids, table)
    a = attention(x, x, x, none, offsets) {heads=2}
    c = select_in_sequence(a, offsets)
    output y <- c)");
  EXPECT_THAT(plan.rounded_symbols, testing::ElementsAre("S", "T"));
}

TEST(CudaPlan, TakesASymbolExactlyWhereRowsAreMixed) {
  const CudaPlan transposed = plan_of(R"(
    x = input() : f32[T,4]
    y = transpose(x) {axes=[1,0]}
    output y <- y)");
  EXPECT_TRUE(transposed.rounded_symbols.empty());
  const CudaPlan normalized = plan_of(R"(
    x = input() : f32[T,4]
    y = softmax(x) {axis=0}
    output y <- y)");
  EXPECT_TRUE(normalized.rounded_symbols.empty());
  const CudaPlan padded = plan_of(R"(
    x = input() : f32[B,L,4]
    y = relu(x)
    output y <- y)");
  EXPECT_THAT(padded.rounded_symbols, testing::ElementsAre("B"));
}

TEST(CudaPlan, UpdatesAllParametersInOneLaunch) {
  const CudaPlan plan = plan_of(R"(
    x = input() : f32[B,4]
    rate = input() : f32[]
    count = input() : f32[]
    random = input() : i32[3]
    w = state() : f32[4,4]
    b = state() : f32[4]
    mw = state() : f32[4,4]
    vw = state() : f32[4,4]
    mb = state() : f32[4]
    vb = state() : f32[4]
    h = linear(x, w, b)
    dw = linear_weight_gradient(h, x)
    db = sum_rows(h)
    sw = sum_squares(dw)
    sb = sum_squares(db)
    total = add(sw, sb)
    scale = gradient_scale(total, count) {max_norm=1.0}
    uw = adamw(w, dw, mw, vw, rate, scale, random)
    ub = adamw(b, db, mb, vb, rate, scale, random)
    output norm <- scale#1
    state w <- uw
    state mw <- uw#1
    state vw <- uw#2
    state b <- ub
    state mb <- ub#1
    state vb <- ub#2)");
  std::vector<std::vector<std::string>> launches;
  for (const CudaLaunch& launch : plan.launches) launches.push_back(ops_of(plan, launch));
  EXPECT_THAT(launches,
              testing::ElementsAre(testing::ElementsAre("linear"),
                                   testing::ElementsAre("linear_weight_gradient", "sum_rows"),
                                   testing::IsEmpty(),  // adds up the parts of both
                                   testing::ElementsAre("sum_squares", "sum_squares"),
                                   testing::ElementsAre("add", "gradient_scale"),
                                   testing::ElementsAre("adamw", "adamw")));
  EXPECT_EQ(plan.launches[2].group, CudaGroup::Sums);
  EXPECT_EQ(plan.launches[2].partials.size(), 2u);
  EXPECT_TRUE(plan.late_updates.empty()) << "every parameter and moment is updated in place";
}

TEST(CudaPlan, WritesCachesInPlace) {
  const CudaPlan plan = plan_of(R"(
    q = input() : f32[T,8]
    k = input() : f32[T,4]
    offsets = input() : i32[S+1]
    starts = input() : i32[S]
    lengths = input() : i32[S]
    k_cache = state() {role="cache"} : f32[32,4]
    v_cache = state() {role="cache"} : f32[32,4]
    y = cached_attention(q, k, k, k_cache, v_cache, offsets, starts, lengths) {heads=2, kv_heads=1}
    output y <- y
    state k_cache <- y#1
    state v_cache <- y#2)");
  EXPECT_TRUE(plan.late_updates.empty());
  EXPECT_THAT(plan.rounded_symbols, testing::ElementsAre("S", "T"));
}

// The launches of a plan, each as the ops it makes.
std::vector<std::string> launches_of(const CudaPlan& plan) {
  std::vector<std::string> result;
  for (const CudaLaunch& launch : plan.launches)
    result.push_back(fmt::format("{}", fmt::join(ops_of(plan, launch), " ")));
  return result;
}

TEST(CudaPlan, TakesRowsThroughAllStepsThatFollowEachOther) {
  const CudaPlan plan = plan_of(R"(
    x = input() : f32[T,8]
    r = input() : f32[T,8]
    g = state() : f32[8]
    b = state() : f32[8]
    s = sub(x, r)
    n = layer_norm(s, g, b)
    m = mul(n, r)
    output y <- m
    output n <- n)");
  EXPECT_THAT(launches_of(plan), testing::ElementsAre("sub layer_norm mul"));
  EXPECT_FALSE(plan.slots[plan.slot({plan.graph.at("s"), 0})].is_stored) << "needs no memory";
  EXPECT_TRUE(plan.slots[plan.slot({plan.graph.at("n"), 0})].is_stored) << "is an output";
}

TEST(CudaPlan, KeepsRowsOfDifferentWidthsApart) {
  const CudaPlan plan = plan_of(R"(
    x = input() : f32[T,8]
    z = input() : f32[T,12]
    a = relu(x)
    b = relu(z)
    output a <- a
    output b <- b)");
  EXPECT_THAT(launches_of(plan), testing::ElementsAre("relu", "relu"));
}

TEST(CudaPlan, MakesAllProductsThatAreReadyAtOnce) {
  const CudaPlan plan = plan_of(R"(
    x = input() : f32[T,8]
    q = state() : f32[8,8]
    k = state() : f32[8,8]
    v = state() : f32[4,8]
    a = linear(x, q)
    b = linear(x, k)
    c = linear(x, v)
    d = linear(a, k)
    output b <- b
    output c <- c
    output d <- d)");
  EXPECT_THAT(launches_of(plan), testing::ElementsAre("linear linear linear", "linear"));
}

TEST(CudaPlan, LetsAnActivationAndItsGradientFollowTheirProducts) {
  const CudaPlan plan = plan_of(R"(
    x = input() : f32[T,8]
    dy = input() : f32[T,4]
    w = state() : f32[8,8]
    u = state() : f32[4,8]
    h = linear(x, w)
    y = gelu(h)
    dg = linear_input_gradient(dy, u)
    dh = map_gradient(dg, h) {function="gelu"}
    dw = linear_weight_gradient(dh, x)
    db = sum_rows(dh)
    output y <- y
    output dw <- dw
    output db <- db)");
  // The product of dy waits for h, which its follower reads.
  EXPECT_THAT(launches_of(plan),
              testing::ElementsAre("linear gelu linear_input_gradient", "map_gradient sum_rows",
                                   "linear_weight_gradient", ""));
}

TEST(CudaPlan, RoundsAllWeightsInOneLaunchAndActivationsWhereTheyAreMade) {
  const CudaPlan plan = plan_of(R"(
    x = input() : f32[T,8]
    w = state() : f32[8,8]
    u = state() : f32[8,8]
    m = state() : f32[8,8]
    g = state() : f32[8]
    b = state() : f32[8]
    n = layer_norm(x, g, b)
    a = quantize(n) {format="fixed:8,4"}
    p = quantize(w) {format="fixed:8,4"}
    q = quantize(u) {format="mxint:8"}
    h = linear(a, p)
    y = linear(a, q)
    v = add(m, m)
    output h <- h
    output y <- y
    state m <- v)");
  EXPECT_THAT(launches_of(plan), testing::ElementsAre("layer_norm quantize", "quantize quantize",
                                                      "linear linear", "add"));
}

// Scales that are learned: the gradients of all weights' share a launch, those of activations are
// made with the rows that they belong to, and small arrays are worked on together.
TEST(CudaPlan, DifferentiatesLearnedScalesInFewLaunches) {
  const CudaPlan plan = plan_of(R"(
    x = input() : f32[T,8]
    dy = input() : f32[T,8]
    w = state() : f32[8,8]
    u = state() : f32[8,8]
    sw = state() : f32[8]
    su = state() : f32[8]
    sx = state() : f32[]
    half = constant() {values=[0.5]} : f32[]
    qx = quantize(x, sx) {format="int:4"}
    qw = quantize(w, sw) {format="int:4,channel"}
    qu = quantize(u, su) {format="int:4,channel"}
    dqw = linear_weight_gradient(dy, qx)
    dw = learned_step_gradient(dqw, w, qw, sw) {format="int:4,channel"}
    du = learned_step_gradient(dqw, u, qu, su) {format="int:4,channel"}
    dqx = linear_input_gradient(dy, qw)
    dx = learned_step_gradient(dqx, x, qx, sx) {format="int:4"}
    r = sub(dx, x)
    mw = mean(sw) {axes=[0]}
    mu = mean(su) {axes=[0]}
    lw = mul(sw, half)
    lu = mul(su, half)
    output r <- r
    output dsx <- dx#1
    output dw <- dw
    output du <- du
    output dsw <- dw#1
    output mw <- mw
    output mu <- mu
    output lw <- lw
    output lu <- lu)");
  EXPECT_THAT(launches_of(plan),
              testing::UnorderedElementsAre("quantize", "quantize quantize", "mean mean mul mul",
                                            "linear_weight_gradient linear_input_gradient",
                                            "learned_step_gradient sub", "",
                                            "learned_step_gradient learned_step_gradient"));
}

TEST(CudaPlan, GatesTheGradientsOfAllWeightsInOneLaunch) {
  const CudaPlan plan = plan_of(R"(
    dw = state() : f32[8,8]
    db = state() : f32[6]
    w = state() : f32[8,8]
    b = state() : f32[6]
    gw = gate_gradient(dw, w) {minimum=-8.0,maximum=7.9375}
    gb = gate_gradient(db, b) {minimum=-8.0,maximum=7.9375}
    output gw <- gw
    output gb <- gb)");
  EXPECT_THAT(launches_of(plan), testing::ElementsAre("gate_gradient gate_gradient"));
}

TEST(CudaPlan, SortsIdsBesideTheForwardPass) {
  const CudaPlan plan = plan_of(R"(
    ids = input() : i32[T]
    offsets = input() : i32[S+1]
    dy = input() : f32[T,64]
    table = state() : f32[100,64]
    p = packed_positions(offsets) : i32[T]
    x = embedding(ids, table)
    y = relu(x)
    d = embedding_gradient(dy, ids) {rows=100}
    e = embedding_gradient(y, p) {rows=100}
    output d <- d
    output e <- e)");
  std::vector<int> begins;
  for (const CudaLaunch& launch : plan.launches)
    if (launch.group == CudaGroup::Tables) begins.push_back(launch.early);
  EXPECT_THAT(launches_of(plan), testing::ElementsAre("packed_positions", "embedding relu",
                                                      "embedding_gradient embedding_gradient"));
  EXPECT_THAT(begins, testing::ElementsAre(1)) << "behind the positions, which are one's ids";
}

// Nobody waits for the gradients of weights but the update: over sequences, of which there are few,
// they do not hold up what others wait for.
TEST(CudaPlan, LetsGradientsOverSequencesJoinALaunchOverTokens) {
  const CudaPlan plan = plan_of(R"(
    offsets = input() : i32[S+1]
    x = input() : f32[T,8]
    c = input() : f32[S,8]
    dy = input() : f32[S,8]
    w = state() : f32[8,8]
    u = state() : f32[8,8]
    dc = linear_input_gradient(dy, w)
    dw = linear_weight_gradient(dy, c)
    db = sum_rows(dy)
    r = tanh(dc)
    dx = select_in_sequence_gradient(r, offsets) : f32[T,8]
    dz = linear_input_gradient(dx, u)
    du = linear_weight_gradient(dx, x)
    output dz <- dz
    output dw <- dw
    output db <- db
    output du <- du)");
  EXPECT_THAT(launches_of(plan),
              testing::ElementsAre("linear_input_gradient", "tanh", "select_in_sequence_gradient",
                                   "linear_weight_gradient sum_rows linear_input_gradient "
                                   "linear_weight_gradient",
                                   ""));
}

TEST(CudaPlan, SumsGradientsOfTablesAndALossBesideOtherLaunches) {
  const CudaPlan plan = plan_of(R"(
    ids = input() : i32[T]
    labels = input() : i32[S]
    offsets = input() : i32[S+1]
    y = input() : f32[S,8]
    dsum = input() : f32[]
    dx = input() : f32[T,64]
    w = state() : f32[8,8]
    loss = cross_entropy(y, labels)
    dy = cross_entropy_gradient(dsum, y, labels)
    dw = linear_weight_gradient(dy, y)
    dt = embedding_gradient(dx, ids) {rows=100}
    st = sum_squares(dt)
    sw = sum_squares(dw)
    total = add(st, sw)
    scale = gradient_scale(total, loss#1) {max_norm=1.0}
    output loss <- loss
    output scale <- scale)");
  std::vector<std::string> beside;
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const CudaLaunch& launch = plan.launches[i];
    if (launch.joined < 0) continue;
    const auto reader = static_cast<std::size_t>(launch.joined);
    beside.push_back(fmt::format("{} until {}", fmt::join(ops_of(plan, launch), " "),
                                 fmt::join(ops_of(plan, plan.launches[reader]), " ")));
    for (const std::size_t step : launch.steps)
      for (const int slot : plan.steps[step].inputs)
        EXPECT_GE(plan.slots[static_cast<std::size_t>(slot)].last, launch.joined - 1)
            << "memory that it reads is not given out meanwhile";
  }
  EXPECT_THAT(beside,
              testing::UnorderedElementsAre("cross_entropy until add gradient_scale",
                                            "embedding_gradient until sum_squares sum_squares"));
}

CudaPlan bf16_plan_of(std::string_view text) {
  return make_cuda_plan(lower(parse_graph(text), find_backend("cuda")), cuda::Precision::Bf16);
}

// How a value lies in memory.
std::string memory_of(const CudaPlan& plan, const char* name, std::int32_t result = 0) {
  const CudaSlot& slot = plan.slots[plan.slot({plan.graph.at(name), result})];
  const bool is_half = slot.half >= 0 && plan.slots[static_cast<std::size_t>(slot.half)].is_stored;
  if (slot.is_stored) return is_half ? "both" : "float";
  return is_half ? "bfloat16" : "none";
}

TEST(CudaPlan, KeepsWhatOnlyProductsAndAttentionReadAsBfloat16) {
  const CudaPlan plan = bf16_plan_of(R"(
    x = input() : f32[T,8]
    offsets = input() : i32[S+1]
    w = state() : f32[8,8]
    wk = state() : f32[8,8]
    wv = state() : f32[8,8]
    g = state() : f32[8]
    b = state() : f32[8]
    n = layer_norm(x, g, b)
    q = linear(n, w)
    k = linear(n, wk)
    v = linear(n, wv)
    a = attention(q, k, v, none, offsets) {heads=2}
    o = linear(a, w)
    s = sub(o, n)
    m = layer_norm(s, g, b)
    h = linear(m, w, b)
    e = gelu(h)
    y = linear_input_gradient(e, w)
    d = map_gradient(y, h) {function="gelu"}
    output d <- d)");
  EXPECT_EQ(memory_of(plan, "n"), "both") << "a product reads it, and the residual stream";
  for (const char* const name : {"q", "k", "v", "a"}) EXPECT_EQ(memory_of(plan, name), "bfloat16");
  EXPECT_EQ(memory_of(plan, "o"), "bfloat16") << "a product's result: a row program widens it";
  EXPECT_EQ(memory_of(plan, "s"), "none");
  EXPECT_EQ(memory_of(plan, "m"), "bfloat16");
  EXPECT_EQ(memory_of(plan, "h"), "bfloat16");
  EXPECT_EQ(memory_of(plan, "e"), "bfloat16");
  EXPECT_EQ(memory_of(plan, "y"), "none") << "its product goes on with it";
  EXPECT_EQ(memory_of(plan, "d"), "float");
  EXPECT_EQ(memory_of(plan, "w"), "both");
  EXPECT_THAT(
      launches_of(plan),
      testing::ElementsAre("layer_norm", "linear linear linear", "attention", "linear",
                           "sub layer_norm", "linear gelu", "linear_input_gradient map_gradient"))
      << "nothing is copied";
}

TEST(CudaPlan, CopiesAsBfloat16WhatStepsCannotWriteSo) {
  const CudaPlan plan = bf16_plan_of(R"(
    x = input() : f32[T,8]
    w = state() : f32[8,8]
    u = state() : f32[8,8]
    p = softmax(x) {axis=1}
    h = linear(p, w)
    z = linear(x, u)
    s = add(w, w)
    output h <- h
    output z <- z
    state w <- s)");
  EXPECT_THAT(plan.launches.front().halves,
              testing::UnorderedElementsAre(plan.slot({plan.graph.at("x"), 0}),
                                            plan.slot({plan.graph.at("w"), 0})))
      << "the input, and a state that a run changes";
  EXPECT_THAT(plan.resident_halves, testing::ElementsAre(plan.slot({plan.graph.at("u"), 0})));
  std::vector<int> copied;
  for (const CudaLaunch& launch : std::span(plan.launches).subspan(1))
    copied.insert(copied.end(), launch.halves.begin(), launch.halves.end());
  EXPECT_THAT(copied, testing::ElementsAre(plan.slot({plan.graph.at("p"), 0})));
}

TEST(CudaPlan, LetsAnUpdateWriteItsWeightAsBfloat16) {
  const CudaPlan plan = bf16_plan_of(R"(
    x = input() : f32[T,8]
    rate = input() : f32[]
    scale = input() : f32[]
    w = state() : f32[8,8]
    v = state() : f32[8,8]
    h = linear(x, w)
    dw = linear_weight_gradient(h, x)
    u = sgd(w, dw, v, rate, scale)
    output h <- h
    state w <- u
    state v <- u#1)");
  EXPECT_THAT(plan.launches.front().halves,
              testing::ElementsAre(plan.slot({plan.graph.at("x"), 0})));
  EXPECT_THAT(plan.resident_halves, testing::ElementsAre(plan.slot({plan.graph.at("w"), 0})));
}

// cuBLASLt adds to bfloat16 what lies as bfloat16.
TEST(CudaPlan, HasTheBiasOfTheLibrarysProductsAsBfloat16) {
  const CudaPlan plan = bf16_plan_of(R"(
    x = input() : f32[T,512]
    w = state() : f32[512,512]
    b = state() : f32[512]
    r = relu(x)
    h = linear(r, w, b)
    e = relu(h)
    t = tanh(h)
    y = linear(e, w)
    z = sub(y, t)
    output z <- z)");
  EXPECT_THAT(plan.resident_halves,
              testing::UnorderedElementsAre(plan.slot({plan.graph.at("w"), 0}),
                                            plan.slot({plan.graph.at("b"), 0})));
  EXPECT_EQ(memory_of(plan, "h"), "bfloat16");
  EXPECT_EQ(memory_of(plan, "e"), "bfloat16");
  EXPECT_EQ(memory_of(plan, "y"), "bfloat16");
}

TEST(CudaPlan, RefusesFormatsThatBfloat16CannotHold) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[T,8]
    y = quantize(x) {format="fixed:16,8"}
    output y <- y)");
  EXPECT_EQ(error_text([&] { check_formats(graph, Precision::Bf16); }),
            "node \"y\": format fixed:16,8 has 15 significant bits, but precision bf16 keeps 8");
  EXPECT_NO_THROW(check_formats(graph, Precision::Tf32));
  const Graph packed = parse_graph(R"(
    codes = state() : u8[4,16]
    w = decode(codes) {format="fixed:16,8", columns=8}
    output w <- w)");
  EXPECT_EQ(error_text([&] { check_formats(packed, Precision::Bf16); }),
            "node \"w\": format fixed:16,8 has 15 significant bits, but precision bf16 keeps 8");
  EXPECT_EQ(significant_bits(*parse_format("fixed:8,4")), 7);
  EXPECT_EQ(significant_bits(*parse_format("int:9")), 8);
  EXPECT_EQ(significant_bits(*parse_format("binary:learned")), 1);
  EXPECT_EQ(significant_bits(*parse_format("nf4")), 24);
}

TEST(CudaPlan, IsTheOnlyOneWithTf32) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[T,8]
    y = relu(x)
    output y <- y)");
  EXPECT_EQ(error_text(
                [&] { make_executor(graph, {}, {.device = "cpu", .precision = Precision::Tf32}); }),
            "device cpu computes in float32 and bf16: precision tf32 needs device cuda");
}

TEST(CudaPlan, RefusesAnOpWithoutAKernelByName) {
  EXPECT_EQ(error_text([] {
              plan_of(R"(
    x = input() : f32[B,4,6,5]
    step = state() : f32[]
    codes = state() : u8[5,16]
    scales = state() : f32[5]
    y = code_conv2d(x, step, codes, none, scales) {x_format="int:8", format="int:8,channel", columns=16, kernel=[2,2]}
    output y <- y)");
            }),
            "node \"y\": device cuda has no kernel for code_conv2d");
}

TEST(CudaPlan, ComputesConstantsWhenPlanned) {
  const CudaPlan plan = plan_of(R"(
    x = input() : f32[B,2]
    c = constant() {values=[1.0,2.0]} : f32[2]
    y = add(x, c)
    output y <- y)");
  EXPECT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.slots[plan.slot({plan.graph.at("c"), 0})].kind, CudaSlot::Kind::Constant);
}

TEST(BucketOf, AddsAtMostAnEighth) {
  EXPECT_EQ(bucket_of(0), 0);
  EXPECT_EQ(bucket_of(1), 1);
  EXPECT_EQ(bucket_of(3), 4);
  EXPECT_EQ(bucket_of(8), 8);
  EXPECT_EQ(bucket_of(9), 16);
  EXPECT_EQ(bucket_of(4096), 4096);
  EXPECT_EQ(bucket_of(4097), 4608);
  for (std::int64_t size = 64; size < 20000; size += 7) {
    EXPECT_GE(bucket_of(size), size);
    EXPECT_LE(bucket_of(size), size + size / 8);
  }
}

}  // namespace
}  // namespace lathe::engine
