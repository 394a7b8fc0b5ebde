#include "lathe/engine/cuda/cuda_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/cuda/planned_launches.h"
#include "lathe/engine/format_precision.h"
#include "lathe/engine/lower.h"

// Plans need no GPU: what runs, how values lie and with which padding is known before.
namespace lathe::engine {
namespace {

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

TEST(CudaPlan, RefusesAStateThatBecomesOneThatIsUpdated) {
  EXPECT_EQ(error_text([] {
              (void)plan_of(R"(
    x = input() : f32[4]
    a = state() : f32[4]
    b = state() : f32[4]
    n = add(b, x)
    state a <- b
    state b <- n)");
            }),
            "state \"a\" becomes state \"b\", which is updated too: expected it to be computed");
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
