#include "lathe/compress/shrinking/shrink.h"

#include <gtest/gtest.h>

#include <random>

#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/engine/executor.h"

namespace lathe::compress {
namespace {

// Every state random, masks all ones.
State random_state(const Graph& graph) {
  std::mt19937 random(5);
  State state;
  for (const NodeId id : graph.nodes_of("state")) {
    Tensor tensor(DType::F32, graph.types(id)[0].dims({}));
    const bool is_mask = graph.name(id).ends_with("mask");
    for (float& value : tensor.mutable_data<float>())
      value = is_mask ? 1 : static_cast<float>(random() % 2000) / 1000 - 1;
    state[graph.name(id)] = tensor;
  }
  return state;
}

void mask_row(State& state, const std::string& name, std::int64_t row) {
  Tensor& mask = state.at(name);
  for (std::int64_t i = 0; i < mask.dim(1); ++i)
    mask.mutable_data<float>()[static_cast<std::size_t>(row * mask.dim(1) + i)] = 0;
}
void mask_column(State& state, const std::string& name, std::int64_t column) {
  Tensor& mask = state.at(name);
  for (std::int64_t i = 0; i < mask.dim(0); ++i)
    mask.mutable_data<float>()[static_cast<std::size_t>(i * mask.dim(1) + column)] = 0;
}

Tensor answer(const Graph& graph, const State& state) {
  std::mt19937 random(9);
  Tensor x(DType::F32, graph.types(graph.at("x"))[0].dims({{"B", 3}, {"L", 5}}));
  for (float& value : x.mutable_data<float>())
    value = static_cast<float>(random() % 2000) / 1000 - 1;
  return engine::make_executor(graph, state, {.device = "reference"})->run({{"x", x}}).at("y");
}

// What is taken away adds 0 to sums of doubles, which changes none of them: no tolerance.
void expect_same_numbers(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dims(), b.dims());
  for (std::int64_t i = 0; i < a.num_elements(); ++i) EXPECT_EQ(a.at(i), b.at(i)) << i;
}

// Two layers with a function between them, both weights masked.
Graph feed_forward(const std::string& function) {
  return parse_graph(fmt::format(R"(
    x = input() : f32[B,4]
    w = state() : f32[5,4]
    w.mask = state() {{role="mask"}} : f32[5,4]
    wm = mul(w, w.mask)
    b = state() : f32[5]
    h = linear(x, wm, b)
    a = {}(h)
    v = state() : f32[3,5]
    v.mask = state() {{role="mask"}} : f32[3,5]
    vm = mul(v, v.mask)
    c = state() : f32[3]
    y = linear(a, vm, c)
    output y <- y
  )",
                                 function));
}

TEST(Shrink, TakesNeuronsAwayThatNobodyReads) {
  Graph graph = feed_forward("sigmoid");
  State state = random_state(graph);
  mask_column(state, "v.mask", 1);
  mask_column(state, "v.mask", 4);
  state.at("w.mask").mutable_data<float>()[0] = 0;
  const Tensor before = answer(graph, state), bias = state.at("b");
  const ShrinkReport report = shrink(graph, state);
  EXPECT_EQ(print(graph), print(parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[3,4]
    w.mask = state() {role="mask"} : f32[3,4]
    wm = mul(w, w.mask)
    b = state() : f32[3]
    h = linear(x, wm, b)
    a = sigmoid(h)
    v = state() : f32[3,3]
    c = state() : f32[3]
    y = linear(a, v, c)
    output y <- y
  )")));
  EXPECT_FALSE(state.contains("v.mask"));
  EXPECT_EQ(state.at("b").at(1), bias.at(2));
  EXPECT_EQ(state.at("w.mask").at(0), 0);
  expect_same_numbers(answer(graph, state), before);
  ASSERT_EQ(report.parts.size(), 1u);
  EXPECT_EQ(report.parts[0].name, "h");
  EXPECT_EQ(report.parts[0].before, 5);
  EXPECT_EQ(report.parts[0].after, 3);
  EXPECT_EQ(report.parameters_before, 5 * 4 + 5 + 3 * 5 + 3);
  EXPECT_EQ(report.parameters_after, 3 * 4 + 3 + 3 * 3 + 3);
  EXPECT_TRUE(report.notes.empty());
}

// How many of five neurons stay when the rows of 0 and 1 are masked and only 0 has no bias.
std::int64_t neurons_after_masked_rows(const std::string& function) {
  Graph graph = feed_forward(function);
  State state = random_state(graph);
  mask_row(state, "w.mask", 0);
  mask_row(state, "w.mask", 1);
  state.at("b").mutable_data<float>()[0] = 0;
  state.at("b").mutable_data<float>()[1] = 0.5f;
  const Tensor before = answer(graph, state);
  const ShrinkReport report = shrink(graph, state);
  expect_same_numbers(answer(graph, state), before);
  const std::int64_t left = graph.type({graph.at("h"), 0}).axis(-1).constant();
  EXPECT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0],
            fmt::format("\"h\": {} neurons stay: their rows are masked, but their bias or function "
                        "leaves them other than zero",
                        left - 3));
  return left;
}

TEST(Shrink, TakesNeuronsAwayThatAreZero) {
  EXPECT_EQ(neurons_after_masked_rows("relu"), 4);
  EXPECT_EQ(neurons_after_masked_rows("gelu"), 4);
  EXPECT_EQ(neurons_after_masked_rows("tanh"), 4);
}
TEST(Shrink, KeepsNeuronsThatAreConstant) {
  EXPECT_EQ(neurons_after_masked_rows("sigmoid"), 5);
}

TEST(Shrink, LeavesWeightsThatHappenToBeZero) {
  Graph graph = feed_forward("relu");
  State state = random_state(graph);
  for (std::size_t i = 0; i < 15; i += 5) state.at("v").mutable_data<float>()[i] = 0;
  EXPECT_TRUE(shrink(graph, state).parts.empty());
  EXPECT_EQ(graph.types(graph.at("w"))[0].axis(0), Size(5));
}

TEST(Shrink, KeepsOneNeuronOfNone) {
  Graph graph = feed_forward("relu");
  State state = random_state(graph);
  for (std::int64_t i = 0; i < 5; ++i) mask_column(state, "v.mask", i);
  const Tensor before = answer(graph, state);
  EXPECT_EQ(shrink(graph, state).parts.at(0).after, 1);
  expect_same_numbers(answer(graph, state), before);
}

TEST(Shrink, TakesBothLayersOfAGateAlong) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    g = state() : f32[5,4]
    g.mask = state() {role="mask"} : f32[5,4]
    gm = mul(g, g.mask)
    gate = linear(x, gm)
    active = silu(gate)
    u = state() : f32[5,4]
    content = linear(x, u)
    h = mul(active, content)
    v = state() : f32[3,5]
    y = linear(h, v)
    output y <- y
  )");
  State state = random_state(graph);
  mask_row(state, "g.mask", 2);
  const Tensor before = answer(graph, state);
  EXPECT_EQ(shrink(graph, state).parts.size(), 1u);
  EXPECT_EQ(state.at("u").dims(), (std::vector<std::int64_t>{4, 4}));
  EXPECT_EQ(state.at("v").dims(), (std::vector<std::int64_t>{3, 4}));
  expect_same_numbers(answer(graph, state), before);
}

// Queries of six heads, keys and contents of three, so that two share one; heads of two features.
// Queries and keys are turned by position.
Graph shared_heads() {
  return parse_graph(R"(
    x = input() : f32[B,L,4]
    ids = slice(x) {axis=2, begin=0, end=1}
    places = reshape(ids) : f32[B,L]
    places.i = cast(places) : i32[B,L]
    wq = state() : f32[12,4]
    q = linear(x, wq)
    q.turned = rope(q, places.i) {heads=6}
    wk = state() : f32[6,4]
    k = linear(x, wk)
    k.turned = rope(k, places.i) {heads=3}
    wv = state() : f32[6,4]
    bv = state() : f32[6]
    c = linear(x, wv, bv)
    a = attention(q.turned, k.turned, c) {heads=6, kv_heads=3}
    o = state() : f32[3,12]
    o.mask = state() {role="mask"} : f32[3,12]
    om = mul(o, o.mask)
    y = linear(a, om)
    output y <- y
  )");
}

void mask_head(State& state, std::int64_t head) {
  mask_column(state, "o.mask", 2 * head);
  mask_column(state, "o.mask", 2 * head + 1);
}

TEST(Shrink, TakesAGroupOfHeadsAway) {
  Graph graph = shared_heads();
  State state = random_state(graph);
  mask_head(state, 2);
  mask_head(state, 3);
  const Tensor before = answer(graph, state), keys = state.at("wk");
  const ShrinkReport report = shrink(graph, state);
  EXPECT_EQ(print(graph, "a"),
            "a = attention(q.turned, k.turned, c) {heads=4, kv_heads=2} : "
            "f32[B,L,8]");
  EXPECT_EQ(graph.attribute(graph.at("q.turned")).integer("heads"), 4);
  EXPECT_EQ(graph.attribute(graph.at("k.turned")).integer("heads"), 2);
  EXPECT_EQ(state.at("wk").dims(), (std::vector<std::int64_t>{4, 4}));
  EXPECT_EQ(state.at("wk").at(2 * 4), keys.at(4 * 4));
  expect_same_numbers(answer(graph, state), before);
  EXPECT_TRUE(report.parts.at(0).is_attention);
  EXPECT_EQ(report.parts[0].before, 6);
  EXPECT_EQ(report.parts[0].after, 4);
}

// Head 1 and heads 4 and 5 do nothing: the last group goes, and the second one, which works as a
// whole, leaves no room for the first to be smaller.
TEST(Shrink, GivesGroupsThatStayAsManyHeads) {
  Graph graph = shared_heads();
  State state = random_state(graph);
  mask_head(state, 1);
  mask_head(state, 4);
  mask_head(state, 5);
  const Tensor before = answer(graph, state);
  shrink(graph, state);
  EXPECT_EQ(graph.attribute(graph.at("a")).integer("heads"), 4);
  EXPECT_EQ(graph.attribute(graph.at("a")).integer("kv_heads"), 2);
  expect_same_numbers(answer(graph, state), before);
}

// One head of each group does nothing.
TEST(Shrink, TakesHeadsOutOfEveryGroup) {
  Graph graph = shared_heads();
  State state = random_state(graph);
  mask_head(state, 1);
  mask_head(state, 2);
  mask_head(state, 5);
  const Tensor before = answer(graph, state), queries = state.at("wq");
  shrink(graph, state);
  EXPECT_EQ(graph.attribute(graph.at("a")).integer("heads"), 3);
  EXPECT_EQ(graph.attribute(graph.at("a")).integer("kv_heads"), 3);
  EXPECT_EQ(state.at("wq").at(2 * 4), queries.at(6 * 4));  // the first row of head 3
  expect_same_numbers(answer(graph, state), before);
}

TEST(Shrink, TakesAHeadAwayWhoseContentsAreZero) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,L,4]
    wq = state() : f32[4,4]
    q = linear(x, wq)
    wk = state() : f32[4,4]
    k = linear(x, wk)
    wv = state() : f32[4,4]
    wv.mask = state() {role="mask"} : f32[4,4]
    wvm = mul(wv, wv.mask)
    c = linear(x, wvm)
    a = attention(q, k, c) {heads=2}
    o = state() : f32[3,4]
    y = linear(a, o)
    output y <- y
  )");
  State state = random_state(graph);
  mask_row(state, "wv.mask", 2);
  mask_row(state, "wv.mask", 3);
  const Tensor before = answer(graph, state);
  shrink(graph, state);
  EXPECT_EQ(print(graph, "a"), "a = attention(q, k, c) {heads=1} : f32[B,L,2]");
  expect_same_numbers(answer(graph, state), before);
}

TEST(Shrink, SaysWhoElseReadsAWeight) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[4,4]
    h = linear(x, w)
    a = relu(h)
    v = state() : f32[4,4]
    v.mask = state() {role="mask"} : f32[4,4]
    vm = mul(v, v.mask)
    y1 = linear(a, vm)
    y2 = linear(y1, w)
    y = relu(y2)
    output y <- y
  )");
  State state = random_state(graph);
  mask_column(state, "v.mask", 1);
  const std::string text = print(graph);
  const ShrinkReport report = shrink(graph, state);
  EXPECT_TRUE(report.parts.empty());
  EXPECT_EQ(report.notes, std::vector<std::string>{
                              "\"h\": 1 of 4 neurons stay although they are masked: \"w\" is also "
                              "read by \"y2\" (linear)"});
  EXPECT_EQ(print(graph), text);
}

TEST(Shrink, SaysWhichReaderHasNoMask) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[4,4]
    h = linear(x, w)
    v = state() : f32[4,4]
    v.mask = state() {role="mask"} : f32[4,4]
    vm = mul(v, v.mask)
    y1 = linear(h, vm)
    u = state() : f32[4,4]
    y2 = linear(h, u)
    y = mul(y1, y2)
    output y <- y
  )");
  State state = random_state(graph);
  mask_column(state, "v.mask", 1);
  EXPECT_EQ(shrink(graph, state).notes,
            std::vector<std::string>{
                "\"h\": 1 neurons stay: their columns are masked, but not in \"y2\""});
}

TEST(Shrink, NamesAnAttentionThatCannotLoseHeads) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,L,4]
    wk = state() : f32[4,4]
    k = linear(x, wk)
    a = attention(x, k, k) {heads=2}
    o = state() : f32[3,4]
    o.mask = state() {role="mask"} : f32[3,4]
    om = mul(o, o.mask)
    y = linear(a, om)
    output y <- y
  )");
  State state = random_state(graph);
  mask_column(state, "o.mask", 0);
  mask_column(state, "o.mask", 1);
  EXPECT_EQ(shrink(graph, state).notes,
            std::vector<std::string>{"attention \"a\": its query comes from \"x\" (input), not "
                                     "from layers alone"});
}

// Scales of rows go with their rows; blocks of four features that go together stay whole.
Graph rounded(const std::string& weights, const std::string& activations, bool has_scale) {
  return parse_graph(fmt::format(R"(
    x = input() : f32[B,4]
    w = state() : f32[8,4]
    w.scale = state() {{role="scale"}} : f32[8]
    wr = quantize(w, w.scale) {{format="int:4,channel"}}
    b = state() : f32[8]
    h = linear(x, wr, b)
    a = relu(h)
    s = state() {{role="scale"}} : f32[]
    ar = quantize(a{}) {{format="{}"}}
    v = state() : f32[3,8]
    v.mask = state() {{role="mask"}} : f32[3,8]
    vm = mul(v, v.mask)
    vr = quantize(vm) {{format="{}"}}
    y = linear(ar, vr)
    output y <- y
  )",
                                 has_scale ? ", s" : "", activations, weights));
}

std::vector<std::string> notes_of_rounded(const std::string& weights,
                                          const std::string& activations, bool has_scale,
                                          std::initializer_list<int> columns) {
  Graph graph = rounded(weights, activations, has_scale);
  if (!has_scale) run_pass("remove-dead-nodes", graph);
  State state = random_state(graph);
  for (const auto& [name, scale] : {std::pair("w.scale", 0.1f), std::pair("s", 0.05f)})
    if (state.contains(name))
      for (float& value : state.at(name).mutable_data<float>()) value = scale * (1 + value * value);
  for (const int column : columns) mask_column(state, "v.mask", column);
  const Tensor before = answer(graph, state);
  const ShrinkReport report = shrink(graph, state);
  expect_same_numbers(answer(graph, state), before);
  EXPECT_EQ(report.parts.size() + report.notes.size(), 1u);
  return report.notes;
}

TEST(Shrink, CutsScalesWithTheirRows) {
  EXPECT_TRUE(notes_of_rounded("minifloat:e4m3", "int:8", true, {0, 3}).empty());
}
TEST(Shrink, LeavesBlocksWhole) {
  EXPECT_TRUE(notes_of_rounded("bfp:8,block=4", "bfp:8,block=4", false, {0, 1, 2, 3}).empty());
  EXPECT_EQ(notes_of_rounded("bfp:8,block=4", "bfp:8,block=4", false, {0, 1, 3}),
            std::vector<std::string>{"\"h\": 3 of 8 neurons stay although they are masked: \"ar\" "
                                     "rounds to bfp:8,block=4, by scales that neighbours share"});
  EXPECT_EQ(notes_of_rounded("bfp:4,block=4", "int:8", true, {1, 2, 7}),
            std::vector<std::string>{"\"h\": 3 of 8 neurons stay although they are masked: \"vr\" "
                                     "would be rounded otherwise with fewer elements"});
}

TEST(Shrink, IsAPass) {
  Graph graph = feed_forward("relu");
  State state = random_state(graph);
  mask_column(state, "v.mask", 1);
  PassContext context{.options = {{"neurons", false}}, .state = &state};
  EXPECT_EQ(run_pass("shrink", graph, context).changed, 0);
  context.options = {};
  EXPECT_EQ(run_pass("shrink", graph, context).report, "h: 4 neurons instead of 5\n");
}

}  // namespace
}  // namespace lathe::compress
