#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"

// What other programs write out becomes one op, whatever the order of its factors; what is only
// alike stays.
namespace lathe::ops {
namespace {

// What the output of a graph is, after a pass.
std::string after(const char* pass, std::string_view text, int changes = 1) {
  Graph graph = parse_graph(text);
  verify(graph);
  EXPECT_EQ(run_pass(pass, graph), changes);
  const NodeId y = graph.output("y")->node;
  return to_text(graph.attributes(y)).empty()
             ? graph.op(y).name
             : graph.op(y).name + " " + to_text(graph.attributes(y));
}

TEST(RecognizeActivations, FindsGeluByErf) {
  EXPECT_EQ(after("recognize-activations", R"(
    x = input() : f32[B,4]
    root = constant() {values=[1.4142135381698608]} : f32[]
    one = constant() {values=[1.0]} : f32[]
    half = constant() {values=[0.5]} : f32[]
    a = div(x, root) : f32[B,4]
    b = erf(a) : f32[B,4]
    c = add(b, one) : f32[B,4]
    d = mul(x, c) : f32[B,4]
    e = mul(d, half) : f32[B,4]
    output y <- e
  )"),
            "gelu");
}

TEST(RecognizeActivations, FindsGeluByTanh) {
  EXPECT_EQ(after("recognize-activations", R"(
    x = input() : f32[B,4]
    half = constant() {values=[0.5]} : f32[]
    three = constant() {values=[3.0]} : f32[]
    k = constant() {values=[0.044714998453855515]} : f32[]
    s = constant() {values=[0.7978845834732056]} : f32[]
    one = constant() {values=[1.0]} : f32[]
    a = mul(half, x) : f32[B,4]
    b = pow(x, three) : f32[B,4]
    c = mul(b, k) : f32[B,4]
    d = add(x, c) : f32[B,4]
    e = mul(d, s) : f32[B,4]
    f = tanh(e) : f32[B,4]
    g = add(f, one) : f32[B,4]
    h = mul(a, g) : f32[B,4]
    output y <- h
  )"),
            "gelu {approximate=\"tanh\"}");
}

TEST(RecognizeActivations, FindsSiluAndLeavesOtherProducts) {
  EXPECT_EQ(after("recognize-activations", R"(
    x = input() : f32[B,4]
    s = sigmoid(x) : f32[B,4]
    p = mul(s, x) : f32[B,4]
    output y <- p
  )"),
            "silu");
  EXPECT_EQ(after("recognize-activations", R"(
    x = input() : f32[B,4]
    z = input() : f32[B,4]
    s = sigmoid(z) : f32[B,4]
    p = mul(s, x) : f32[B,4]
    output y <- p
  )",
                  0),
            "mul");
}

TEST(RecognizeNorms, FindsLayerNorm) {
  EXPECT_EQ(after("recognize-norms", R"(
    x = input() : f32[B,4]
    w = state() : f32[4]
    b = state() : f32[4]
    eps = constant() {values=[0.001]} : f32[]
    m = mean(x) {axes=[-1], keep=true} : f32[B,1]
    c = sub(x, m) : f32[B,4]
    q = mul(c, c) : f32[B,4]
    v = mean(q) {axes=[-1], keep=true} : f32[B,1]
    e = add(v, eps) : f32[B,1]
    r = sqrt(e) : f32[B,1]
    n = div(c, r) : f32[B,4]
    s = mul(n, w) : f32[B,4]
    t = add(s, b) : f32[B,4]
    output y <- t
  )"),
            "layer_norm {eps=0.001}");
}

TEST(RecognizeNorms, FindsRootMeanSquareNorm) {
  EXPECT_EQ(after("recognize-norms", R"(
    x = input() : f32[B,4]
    w = state() : f32[4]
    eps = constant() {values=[0.001]} : f32[]
    q = mul(x, x) : f32[B,4]
    v = mean(q) {axes=[-1], keep=true} : f32[B,1]
    e = add(v, eps) : f32[B,1]
    r = sqrt(e) : f32[B,1]
    i = reciprocal(r) : f32[B,1]
    n = mul(x, i) : f32[B,4]
    s = mul(w, n) : f32[B,4]
    output y <- s
  )"),
            "rms_norm {eps=0.001}");
}

// Two heads of two, keys masked and later ones hidden.
constexpr const char* kAttention = R"(
    q = input() : f32[B,L,4]
    k = input() : f32[B,L,4]
    v = input() : f32[B,L,4]
    mask = input() : i64[B,L]
    qs = reshape(q) : f32[B,L,2,2]
    ks = reshape(k) : f32[B,L,2,2]
    vs = reshape(v) : f32[B,L,2,2]
    qh = transpose(qs) {axes=[0,2,1,3]} : f32[B,2,L,2]
    kh = transpose(ks) {axes=[0,2,3,1]} : f32[B,2,2,L]
    vh = transpose(vs) {axes=[0,2,1,3]} : f32[B,2,L,2]
    scale = constant() {values=[0.25]} : f32[]
    scaled = mul(qh, scale) : f32[B,2,L,2]
    scores = matmul(scaled, kh) : f32[B,2,L,L]
    places = range() : i64[L]
    columns = reshape(places) : i64[1,1,1,L]
    rows = reshape(places) : i64[1,1,L,1]
    earlier = less_equal(columns, rows) : bool[1,1,L,L]
    wide = reshape(mask) : i64[B,1,1,L]
    there = cast(wide) : bool[B,1,1,L]
    seen = logical_and(earlier, there) : bool[B,1,L,L]
    zero = constant() {values=[0.0]} : f32[]
    low = constant() {values=[LOW]} : f32[]
    bias = where(seen, zero, low) : f32[B,1,L,L]
    biased = add(scores, bias) : f32[B,2,L,L]
    weights = softmax(biased) : f32[B,2,L,L]
    mixed = matmul(weights, vh) : f32[B,2,L,2]
    back = transpose(mixed) {axes=[0,2,1,3]} : f32[B,L,2,2]
    out = reshape(back) : f32[B,L,4]
    output y <- out
)";

Graph attention_graph(const std::string& low) {
  std::string text = kAttention;
  text.replace(text.find("LOW"), 3, low);
  Graph graph = parse_graph(text);
  verify(graph);
  return graph;
}

TEST(RecognizeAttention, ReadsScaleAndMasks) {
  Graph graph = attention_graph("-inf");
  EXPECT_EQ(run_pass("recognize-attention", graph), 1);
  run_pass("merge-reshapes", graph);
  EXPECT_EQ(print(graph, "mixed/attention"),
            "mixed/attention = attention(q, k, v, mask) {causal=true, heads=2, scale=0.25} : "
            "f32[B,L,4]");
  EXPECT_EQ(graph.output("y")->node, graph.at("mixed/attention"));
}

TEST(RecognizeAttention, LeavesWhatHidesLaterOnesOfMoreKeysThanQueries) {
  Graph graph = parse_graph(R"(
    q = input() : f32[B,2,3,4]
    k = input() : f32[B,2,5,4]
    v = input() : f32[B,2,5,4]
    scores = matmul(q, k) {transpose_b=true} : f32[B,2,3,5]
    keys = range() : i64[5]
    columns = reshape(keys) : i64[1,1,1,5]
    queries = range() : i64[3]
    rows = reshape(queries) : i64[1,1,3,1]
    earlier = less_equal(columns, rows) : bool[1,1,3,5]
    zero = constant() {values=[0.0]} : f32[]
    low = constant() {values=[-inf]} : f32[]
    bias = where(earlier, zero, low) : f32[1,1,3,5]
    biased = add(scores, bias) : f32[B,2,3,5]
    weights = softmax(biased) : f32[B,2,3,5]
    mixed = matmul(weights, v) : f32[B,2,3,4]
    output y <- mixed
)");
  EXPECT_EQ(run_pass("recognize-attention", graph), 0);
}

// A mask that only lowers scores a little is none.
TEST(RecognizeAttention, LeavesBiasesThatHideNothing) {
  Graph graph = attention_graph("-2.0");
  EXPECT_EQ(run_pass("recognize-attention", graph), 0);
}

TEST(RecognizePositions, CountsTheIds) {
  Graph graph = parse_graph(R"(
    ids = input() : i64[B,L]
    words = state() : f32[9,4]
    places = state() : f32[8,4]
    w = embedding(ids, words) : f32[B,L,4]
    r = range() : i64[L]
    one = reshape(r) : i64[1,L]
    p = embedding(one, places) : f32[1,L,4]
    s = add(w, p) : f32[B,L,4]
    output y <- s
  )");
  EXPECT_EQ(run_pass("recognize-positions", graph), 1);
  EXPECT_EQ(print(graph, "p"), "p = embedding(p/positions, places) : f32[B,L,4]");
  EXPECT_EQ(print(graph, "p/positions"), "p/positions = positions(ids) : i64[B,L]");
}

TEST(RecognizePositions, CountsTheIdsOverWhoseRowsARangeIsStretched) {
  const auto graph_of = [](const char* range, const char* rows) {
    return parse_graph(fmt::format(R"(
    ids = input() : i64[B,L]
    other = input() : i64[C,M]
    places = state() : f32[8,4]
    r = range() {{{}}} : i64[L]
    one = reshape(r) : i64[1,L]
    all = broadcast_to(one) : i64[{},L]
    p = embedding(all, places)
    output y <- p
  )",
                                   range, rows));
  };
  Graph graph = graph_of("first=2.0", "B");
  EXPECT_EQ(run_pass("recognize-positions", graph), 1);
  EXPECT_EQ(print(graph, "p"), "p = embedding(all, places) : f32[B,L,4]");
  EXPECT_EQ(print(graph, "all"), "all = positions(ids) {first=2} : i64[B,L]");
  for (Graph& left : std::vector{graph_of("step=2.0", "B"), graph_of("first=0.5", "B"),
                                 graph_of("first=0.0", "C")})
    EXPECT_EQ(run_pass("recognize-positions", left), 0);
}

TEST(RecognizePositions, LeavesARangeThatDoesNotCountARow) {
  for (const char* count :
       {"r = range() : i64[8]\n    one = reshape(r) : i64[8,1]", "one = range() : i64[1]"}) {
    Graph graph = parse_graph(fmt::format(R"(
    ids = input() : i64[8,8]
    places = state() : f32[8,4]
    {}
    all = broadcast_to(one) : i64[8,8]
    p = embedding(all, places)
    output y <- p
  )",
                                          count));
    EXPECT_EQ(run_pass("recognize-positions", graph), 0) << count;
  }
}

TEST(JoinBiases, MakesAnAdditionTheBias) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[3,4]
    b = state() : f32[3]
    p = linear(x, w) : f32[B,3]
    s = add(b, p) : f32[B,3]
    output y <- s
  )");
  EXPECT_EQ(run_pass("join-biases", graph), 1);
  EXPECT_EQ(print(graph, "p"), "p = linear(x, w, b) : f32[B,3]");
}

TEST(FoldBatchNorm, MakesANormPartOfAConvolution) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,3,4,4]
    w = state() : f32[2,3,3,3]
    g = state() : f32[2]
    s = state() : f32[2]
    m = state() {role="buffer"} : f32[2]
    v = state() {role="buffer"} : f32[2]
    c = conv2d(x, w) {pads=[1,1,1,1]} : f32[B,2,4,4]
    n = batch_norm(c, g, s, m, v) {eps=0.5} : f32[B,2,4,4]
    r = relu(n) : f32[B,2,4,4]
    output y <- r
  )");
  EXPECT_EQ(run_pass("fold-batch-norm", graph), 1);
  EXPECT_EQ(run_pass("fold-batch-norm", graph), 0);
  EXPECT_EQ(print(graph, "c/folded_weight"),
            "c/folded_weight = folded_weight(w, g, v) {eps=0.5} : f32[2,3,3,3]");
  EXPECT_EQ(print(graph, "c/folded_bias"),
            "c/folded_bias = folded_bias(g, s, m, v, none) {eps=0.5} : f32[2]");
  EXPECT_EQ(print(graph, "c"),
            "c = conv2d(x, c/folded_weight, c/folded_bias) {pads=[1,1,1,1]} : f32[B,2,4,4]");
  EXPECT_EQ(print(graph, "r"), "r = relu(c) : f32[B,2,4,4]");
}

TEST(FoldBatchNorm, LeavesWhatSomebodyElseReadsOrARoundedWeight) {
  for (const char* text : {R"(
    x = input() : f32[B,3]
    w = state() : f32[2,3]
    g = state() : f32[2]
    m = state() {role="buffer"} : f32[2]
    c = linear(x, w) : f32[B,2]
    n = batch_norm(c, g, g, m, m) : f32[B,2]
    output y <- n
    output z <- c
  )",
                           R"(
    x = input() : f32[B,3]
    w = state() : f32[2,3]
    g = state() : f32[2]
    m = state() {role="buffer"} : f32[2]
    q = quantize(w) {format="mxint:8"} : f32[2,3]
    c = linear(x, q) : f32[B,2]
    n = batch_norm(c, g, g, m, m) : f32[B,2]
    output y <- n
  )"}) {
    Graph graph = parse_graph(text);
    EXPECT_EQ(run_pass("fold-batch-norm", graph), 0);
  }
}

TEST(MergeReshapes, LeavesAChainItsLastShape) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,L,4]
    w = state() : f32[6,4]
    f = reshape(x) : f32[B*L,4]
    p = linear(f, w) : f32[B*L,6]
    r = reshape(p) : f32[B,L,6]
    output y <- r
  )");
  EXPECT_GT(run_pass("merge-reshapes", graph), 0);
  EXPECT_EQ(graph.op(graph.output("y")->node).name, "linear");
  EXPECT_EQ(print(graph, "p"), "p = linear(x, w) : f32[B,L,6]");
}

}  // namespace
}  // namespace lathe::ops
