#include "lathe/engine/cpu/narrow_values.h"

#include "lathe/core/differentiate.h"
#include "lathe/engine/cpu/cpu_executor.h"
#include "lathe/engine/testing/cpu_steps.h"

namespace lathe::engine {
namespace {

// A layer of BERT and a score for each token.
std::string bert_layer(int width, bool packed) {
  return fmt::format(R"(
    x = input() : f32[{2},{0}]
    {3}
    w = state() : f32[{0},{0}]
    m = state() : f32[{0},{0}]
    b = state() : f32[{0}]
    up.weight = state() : f32[{1},{0}]
    up.bias = state() : f32[{1}]
    down.weight = state() : f32[{0},{1}]
    score.weight = state() : f32[1,{0}]
    q = linear(x, w, b)
    k = linear(x, w)
    v = linear(x, m, b)
    t = attention(q, k, v, {4}) {{heads=4}}
    o = linear(t, w, b)
    r = add(o, x)
    n = layer_norm(r, b, b)
    u = linear(n, up.weight, up.bias)
    g = gelu(u)
    d = linear(g, down.weight, b)
    s = add(d, n)
    e = layer_norm(s, b, b)
    y = linear(e, score.weight)
    loss = sum_to(y) : f32[]
    output y <- y
    output loss <- loss)",
                     width, 4 * width, packed ? "T" : "B,L",
                     packed ? "offsets = input() : i32[S+1]" : "mask = input() : i32[B,L]",
                     packed ? "none, offsets" : "mask");
}

Feed feed_of(const Graph& graph) {
  Feed feed = random_feed(graph, {{"T", 34}, {"S", 3}, {"B", 3}, {"L", 12}}, 5);
  if (feed.contains("offsets")) feed["offsets"] = Tensor::from<std::int32_t>({4}, {0, 3, 4, 34});
  return feed;
}

CpuPlan plan_of(const std::string& text, Precision precision) {
  return make_cpu_plan(lower(parse_graph(text), find_backend("cpu")), precision);
}

std::string narrow_of(const CpuPlan& plan) {
  std::vector<std::string> names;
  for (const NodeId id : plan.graph.topological_order())
    if (plan.slots[plan.slot({id, 0})].type.dtype == DType::BF16)
      names.push_back(plan.graph.name(id));
  return fmt::format("{}", fmt::join(names, " "));
}

// Sums with a residual and norms are floats. What attention makes are bfloat16 numbers, and the
// next layer rounds what gelu makes.
TEST(NarrowValues, AreThoseOfProductsAndWhatProductsAloneRead) {
  const std::string layer = bert_layer(64, false);
  EXPECT_EQ(narrow_of(plan_of(layer, Precision::Bf16)), "q k v t g/fused");
  EXPECT_EQ(narrow_of(plan_of(layer, Precision::Float32)), "");
}

TEST(NarrowValues, AreNoOutputsAndNoUpdates) {
  EXPECT_EQ(narrow_of(plan_of(R"(
    x = input() : f32[8,16]
    w = state() : f32[16,16]
    kept = state() : f32[8,16]
    a = linear(x, w)
    b = linear(a, w)
    c = linear(b, w)
    d = linear(c, w)
    output a <- a
    output d <- d
    state kept <- b)",
                              Precision::Bf16)),
            "c");
}

// A step that reads floats keeps them for all.
TEST(NarrowValues, AreNotReadByStepsThatCannot) {
  EXPECT_EQ(narrow_of(plan_of(R"(
    x = input() : f32[B,16]
    w = state() : f32[16,16]
    a = linear(x, w)
    b = linear(a, w)
    m = softmax(a)
    output b <- b
    output m <- m)",
                              Precision::Bf16)),
            "");
}

TEST(NarrowValues, TakeHalfTheRoom) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,600]
    w = state() : f32[600,600]
    a = linear(x, w)
    b = linear(a, w)
    output b <- b)");
  const Feed feed = random_feed(graph, {{"B", 64}}, 5);
  const State state = random_state(graph, 4);
  const auto report = [&](bool narrows) {
    CpuExecutor executor(graph, state, {.precision = Precision::Bf16}, {.narrows_values = narrows});
    executor.run(feed);
    return executor.report();
  };
  EXPECT_EQ(report(true).arena_bytes_unshared + 64 * 600 * 2, report(false).arena_bytes_unshared);
  EXPECT_TRUE(report(true).steps[0].layout.ends_with(", bf16")) << report(true).steps[0].layout;
}

// Two residual blocks behind a convolution of three channels.
std::string residual_network(int channels) {
  std::string text = fmt::format(R"(
    x = input() : f32[B,3,9,9]
    m = input() : f32[B,{0},9,9]
    w0 = state() : f32[{0},3,3,3]
    g = state() : f32[{0}]
    h = state() : f32[{0}]
    c0 = conv2d(x, w0) {{pads=[1,1,1,1]}}
    n0 = normalize_batch(c0, g, h)
    a0 = relu(n0))",
                                 channels);
  for (int i = 1; i < 5; ++i)
    text += fmt::format(R"(
    w{1} = state() : f32[{0},{0},3,3]
    c{1} = conv2d(a{2}, w{1}) {{pads=[1,1,1,1]}}
    n{1} = normalize_batch(c{1}, g, h){3}
    a{1} = relu({4}{1}))",
                        channels, i, i - 1,
                        i % 2 == 0 ? fmt::format("\n    r{0} = add(n{0}, a{1})", i, i - 2) : "",
                        i % 2 == 0 ? "r" : "n");
  return text + R"(
    weighted = mul(a4, m)
    loss = sum_to(weighted) : f32[]
    output loss <- loss)";
}

// The second time relu makes numbers that are too large for tiles, the third time filters are.
TEST(NarrowValues, ChangeNoBitOfConvolutions) {
  for (const int channels : {16, 32})
    for (const char* const large : {"", "images", "filters"}) {
      SCOPED_TRACE(testing::Message() << channels << " channels, large: " << large);
      Graph graph = parse_graph(residual_network(channels));
      State state = random_state(graph, 4);
      Feed feed = random_feed(graph, {{"B", 5}}, 5);
      const auto scale = [](Tensor& tensor, float factor) {
        for (float& value : tensor.mutable_data<float>()) value *= factor;
      };
      if (large == std::string_view("filters"))
        for (const char* const weight : {"w1", "w3"}) scale(state.at(weight), 0x1p21f);
      // Small weights keep squares and products within the range of floats.
      if (large == std::string_view("images")) {
        scale(state.at("g"), 0x1p91f);
        scale(feed.at("m"), 0x1p-60f);
        for (const char* const weight : {"w1", "w2", "w3", "w4"}) scale(state.at(weight), 0x1p-60f);
      }
      std::vector<Value> parameters;
      for (const NodeId id : graph.nodes_of("state")) parameters.push_back({id, 0});
      const std::vector<Value> gradients = differentiate(graph, {graph.at("loss"), 0}, parameters);
      for (std::size_t i = 0; i < gradients.size(); ++i)
        graph.set_output("gradient of " + graph.name(parameters[i].node), gradients[i]);
      expect_bits_of_wide_values(graph, state, feed);
    }
}

TEST(NarrowValues, ChangeNoBitOfBert) {
  for (const int width : {64, 320})
    for (const bool packed : {false, true}) {
      SCOPED_TRACE(testing::Message() << width << (packed ? " packed" : " padded"));
      Graph graph = parse_graph(bert_layer(width, packed));
      const State state = random_state(graph, 4);
      expect_bits_of_wide_values(graph, state, feed_of(graph));
      std::vector<Value> parameters;
      for (const NodeId id : graph.nodes_of("state")) parameters.push_back({id, 0});
      const std::vector<Value> gradients = differentiate(graph, {graph.at("loss"), 0}, parameters);
      for (std::size_t i = 0; i < gradients.size(); ++i)
        graph.set_output("gradient of " + graph.name(parameters[i].node), gradients[i]);
      expect_bits_of_wide_values(graph, state, feed_of(graph));
    }
}

}  // namespace
}  // namespace lathe::engine
