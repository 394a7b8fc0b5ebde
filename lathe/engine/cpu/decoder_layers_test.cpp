// One layer each of the decoders we name, forward and through differentiate, packed and padded: all
// of it runs on the CPU's own steps and agrees with the reference.

#include "lathe/core/differentiate.h"
#include "lathe/core/role.h"
#include "lathe/engine/testing/cpu_steps.h"

namespace lathe::engine {
namespace {

// A joint projection of queries, keys and values, causal attention, the tanh approximation of gelu,
// an output layer tied to the embedding over all tokens, and a score of the last token.
std::string gpt2_layer(bool packed) {
  const std::string head = packed ? R"(
    ids = input() : i32[T]
    labels = input() : i32[T]
    offsets = input() : i32[S+1]
    kinds = input() : i32[S]
    positions = packed_positions(offsets) : i32[T])"
                                  : R"(
    ids = input() : i32[B,L]
    labels = input() : i32[B,L]
    mask = input() : i32[B,L]
    kinds = input() : i32[B]
    positions = positions(ids))";
  return head + R"(
    wte = state() : f32[50,16]
    wpe = state() : f32[64,16]
    ln_1.weight = state() : f32[16]
    ln_1.bias = state() : f32[16]
    c_attn.weight = state() : f32[48,16]
    c_attn.bias = state() : f32[48]
    c_proj.weight = state() : f32[16,16]
    c_proj.bias = state() : f32[16]
    ln_2.weight = state() : f32[16]
    ln_2.bias = state() : f32[16]
    c_fc.weight = state() : f32[64,16]
    c_fc.bias = state() : f32[64]
    down.weight = state() : f32[16,64]
    down.bias = state() : f32[16]
    ln_f.weight = state() : f32[16]
    ln_f.bias = state() : f32[16]
    score.weight = state() : f32[2,16]
    tokens = embedding(ids, wte)
    places = embedding(positions, wpe)
    x = add(tokens, places)
    n1 = layer_norm(x, ln_1.weight, ln_1.bias)
    qkv = linear(n1, c_attn.weight, c_attn.bias)
    parts = split(qkv) {axis=-1, sizes=[16,16,16]})" +
         (packed ? R"(
    attended = attention(parts#0, parts#1, parts#2, none, offsets) {heads=4, causal=true})"
                 : R"(
    attended = attention(parts#0, parts#1, parts#2, mask) {heads=4, causal=true})") +
         R"(
    projected = linear(attended, c_proj.weight, c_proj.bias)
    h = add(x, projected)
    n2 = layer_norm(h, ln_2.weight, ln_2.bias)
    up = linear(n2, c_fc.weight, c_fc.bias)
    active = gelu(up) {approximate="tanh"}
    down = linear(active, down.weight, down.bias)
    y = add(h, down)
    final = layer_norm(y, ln_f.weight, ln_f.bias)
    logits = linear(final, wte, none)
    words = cross_entropy(logits, labels))" +
         (packed ? R"(
    last = select_in_sequence(final, offsets) {index=-1})"
                 : R"(
    last = last_token(final, mask))") +
         R"(
    scores = linear(last, score.weight, none)
    kind = cross_entropy(scores, kinds)
    loss = add(words#0, kind#0)
    output scores <- scores
    output loss <- loss)";
}

// RMS norms, rotary positions, query heads that share keys, and a gated linear unit.
std::string llama_layer(bool packed) {
  const std::string head = packed ? R"(
    ids = input() : i32[T]
    labels = input() : i32[T]
    offsets = input() : i32[S+1]
    positions = packed_positions(offsets) : i32[T])"
                                  : R"(
    ids = input() : i32[B,L]
    labels = input() : i32[B,L]
    mask = input() : i32[B,L]
    positions = positions(ids))";
  return head + R"(
    table = state() : f32[50,16]
    norm_1 = state() : f32[16]
    q.weight = state() : f32[16,16]
    k.weight = state() : f32[8,16]
    v.weight = state() : f32[8,16]
    o.weight = state() : f32[16,16]
    norm_2 = state() : f32[16]
    gate.weight = state() : f32[40,16]
    up.weight = state() : f32[40,16]
    down.weight = state() : f32[16,40]
    norm_f = state() : f32[16]
    head.weight = state() : f32[50,16]
    x = embedding(ids, table)
    n1 = rms_norm(x, norm_1)
    q = linear(n1, q.weight, none)
    k = linear(n1, k.weight, none)
    v = linear(n1, v.weight, none)
    qr = rope(q, positions) {heads=4}
    kr = rope(k, positions) {heads=2})" +
         (packed ? R"(
    attended = attention(qr, kr, v, none, offsets) {heads=4, kv_heads=2, causal=true})"
                 : R"(
    attended = attention(qr, kr, v, mask) {heads=4, kv_heads=2, causal=true})") +
         R"(
    o = linear(attended, o.weight, none)
    h = add(x, o)
    n2 = rms_norm(h, norm_2)
    gate = linear(n2, gate.weight, none)
    active = silu(gate)
    up = linear(n2, up.weight, none)
    gated = mul(active, up)
    down = linear(gated, down.weight, none)
    y = add(h, down)
    final = rms_norm(y, norm_f)
    logits = linear(final, head.weight, none)
    words = cross_entropy(logits, labels)
    one = constant() {values=[1.0]} : f32[]
    loss = mul(words#0, one)
    output logits <- logits
    output loss <- loss)";
}

// Attention written out, as files of other frameworks hold it: heads moved in front, scores, an
// added mask, softmax, and a rotation by halves.
constexpr const char* kWrittenOut = R"(
    x = input() : f32[B,L,16]
    bias = input() : f32[B,1,1,L]
    cosines = input() : f32[L,4]
    sines = input() : f32[L,4]
    labels = input() : i32[B,L]
    q.weight = state() : f32[16,16]
    k.weight = state() : f32[16,16]
    v.weight = state() : f32[16,16]
    out.weight = state() : f32[16,16]
    q = matmul(x, q.weight)
    k = linear(x, k.weight, none)
    v = linear(x, v.weight, none)
    qh = reshape(q) : f32[B,L,4,4]
    kh = reshape(k) : f32[B,L,4,4]
    vh = reshape(v) : f32[B,L,4,4]
    qt = transpose(qh) {axes=[0,2,1,3]}
    kt = transpose(kh) {axes=[0,2,3,1]}
    vt = transpose(vh) {axes=[0,2,1,3]}
    low = slice(qt) {axis=-1, begin=0, end=2}
    high = slice(qt) {axis=-1, begin=2}
    minus = neg(high)
    turned = concat(minus, low) {axis=-1}
    qc = mul(qt, cosines)
    qs = mul(turned, sines)
    qr = add(qc, qs)
    raw = matmul(qr, kt)
    half = constant() {values=[0.5]} : f32[]
    scaled = mul(raw, half)
    masked = add(scaled, bias)
    weights = softmax(masked)
    heads = matmul(weights, vt)
    together = transpose(heads) {axes=[0,2,1,3]}
    rows = reshape(together) : f32[B,L,16]
    y = matmul(rows, out.weight) {transpose_b=true}
    logs = log_softmax(y)
    words = cross_entropy(logs, labels)
    loss = mul(words#0, half)
    output loss <- loss
    output y <- y)";

struct Layer {
  const char* name;
  std::string text;
};

class DecoderLayer : public testing::TestWithParam<Layer> {
 protected:
  // Sequences of 3, 1 and 30 tokens; rows of 12 with masks of zeros and ones.
  static Feed make_feed(const Graph& graph) {
    Feed feed = random_feed(graph, {{"T", 34}, {"S", 3}, {"B", 3}, {"L", 12}}, 5);
    if (feed.contains("offsets")) feed["offsets"] = Tensor::from<std::int32_t>({4}, {0, 3, 4, 34});
    return feed;
  }
};

// A loss of tens and gradients of its size, each from some hundred roundings of numbers that large:
// 100 * 2^-24 of one plus the size, and ten times that for what layers amplify.
constexpr double kTolerance = 6e-5;

TEST_P(DecoderLayer, RunsOnItsOwnSteps) {
  const Graph graph = parse_graph(GetParam().text);
  expect_own_steps(graph, random_state(graph, 4), make_feed(graph), kTolerance);
}

// With an output for each parameter's gradient.
Graph with_gradients(Graph graph) {
  std::vector<Value> parameters;
  for (const NodeId id : graph.nodes_of("state")) parameters.push_back({id, 0});
  const std::vector<Value> gradients = differentiate(graph, {graph.at("loss"), 0}, parameters);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_FALSE(gradients[i].is_none()) << graph.name(parameters[i].node);
    graph.set_output("gradient of " + graph.name(parameters[i].node), gradients[i]);
  }
  return graph;
}

TEST_P(DecoderLayer, TrainsOnItsOwnSteps) {
  const Graph graph = with_gradients(parse_graph(GetParam().text));
  expect_own_steps(graph, random_state(graph, 4), make_feed(graph), kTolerance);
}

TEST_P(DecoderLayer, HasTheBitsOfWideValues) {
  const Graph graph = parse_graph(GetParam().text);
  for (const Graph& each : {graph, with_gradients(graph)})
    expect_bits_of_wide_values(each, random_state(each, 4), make_feed(each));
}

INSTANTIATE_TEST_SUITE_P(, DecoderLayer,
                         testing::Values(Layer{"Gpt2Packed", gpt2_layer(true)},
                                         Layer{"Gpt2Padded", gpt2_layer(false)},
                                         Layer{"LlamaPacked", llama_layer(true)},
                                         Layer{"LlamaPadded", llama_layer(false)},
                                         Layer{"WrittenOut", kWrittenOut}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lathe::engine
