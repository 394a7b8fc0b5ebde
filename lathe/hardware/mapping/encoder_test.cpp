// The pieces of a transformer encoder, from the integer graph to what Verilator computes.
#include <gtest/gtest.h>

#include <random>

#include "lathe/core/graph_text.h"
#include "lathe/engine/reference_executor.h"
#include "lathe/hardware/mapping/design.h"
#include "lathe/hardware/simulation/simulate.h"
#include "lathe/hardware/testing/needs_tool.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"

namespace lathe::hardware {
namespace {

constexpr std::int64_t kTokens = 5, kExamples = 3;

constexpr const char* kEncoder = R"(
  symbols B, L
  ids = input() : i64[B,L]
  mask = input() : i64[B,L]
  table = state() : i8[10,8]
  norm.weight = state() : i16[8]
  norm.bias = state() : i16[8]
  query.weight = state() : i8[8,8]
  key.weight = state() : i8[8,8]
  value.weight = state() : i8[8,8]
  out.weight = state() : i8[6,8]
  words = embedding(ids, table) : i8[B,L,8]
  norm = integer_layer_norm(words, norm.weight, norm.bias) {epsilon=37, shift=13, width=8, scale=[0.1]} : i8[B,L,8]
  query = integer_linear(norm, query.weight) {width=20} : i32[B,L,8]
  query/requant = requant(query) {shift=9, width=8} : i8[B,L,8]
  key = integer_linear(norm, key.weight) {width=20} : i32[B,L,8]
  key/requant = requant(key) {shift=9, width=8} : i8[B,L,8]
  value = integer_linear(norm, value.weight) {width=20} : i32[B,L,8]
  value/requant = requant(value) {shift=9, width=8} : i8[B,L,8]
  attention = integer_attention(query/requant, key/requant, value/requant, mask) {heads=2, exponent_multiplier=100000, exponent_shift=18, multiplier=3, shift=1, width=8} : i8[B,L,8]
  sum = integer_add(attention, words) {width=9} : i16[B,L,8]
  sum/requant = requant(sum) {shift=1, width=8} : i8[B,L,8]
  first = select(sum/requant) {axis=1, index=0} : i8[B,8]
  out = integer_linear(first, out.weight) {width=20} : i32[B,6]
  out/float = from_integer(out) {scale=[1.0]} : f32[B,6]
  output logits <- out/float
)";

State drawn_state(const Graph& graph) {
  std::mt19937_64 random(5);
  State state;
  for (const NodeId node : graph.nodes_of("state")) {
    const Type& type = graph.types(node)[0];
    Tensor tensor(type.dtype, type.dims({}));
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i)
      values.push_back(static_cast<std::int64_t>(random() % 255) - 127);
    ops::write_integers(tensor, values);
    state[graph.name(node)] = tensor;
  }
  return state;
}

TEST(EncoderHardware, ComputesWhatTheIntegerGraphComputes) {
  LATHE_NEEDS(verilator);
  const Graph graph = parse_graph(kEncoder);
  const State state = drawn_state(graph);
  const Design design = design_hardware(
      graph, state,
      {.parallelism = {{"query", {.in = 2, .out = 2}}, {"attention", {.in = 2, .out = 2}}},
       .symbols = {{"L", kTokens}}});
  ASSERT_EQ(design.inputs.size(), 2U);

  std::vector<std::int64_t> ids, mask;
  for (std::int64_t example = 0; example < kExamples; ++example)
    for (std::int64_t i = 0; i < kTokens; ++i) {
      ids.push_back((example * 3 + i * 7) % 10);
      mask.push_back(i < kTokens - 2 * example ? 1 : 0);
    }
  const auto tensor = [](const std::vector<std::int64_t>& values) {
    return Tensor::from<std::int64_t>({kExamples, kTokens}, std::span<const std::int64_t>(values));
  };
  std::map<std::string, std::vector<std::int64_t>> seen;
  engine::run_reference(graph, state, {{"ids", tensor(ids)}, {"mask", tensor(mask)}},
                        [&](Value value, const Tensor& seen_tensor) {
                          if (!is_floating(seen_tensor.dtype()))
                            seen[graph.name(value)] = ops::read_integers(seen_tensor);
                        });
  std::vector<Values> frames;
  for (const DesignPort& port : design.inputs) {
    Values& stream = frames.emplace_back();
    const std::vector<std::int64_t>& all = seen.at(port.node);
    const auto size = std::ssize(all) / kExamples;
    for (std::int64_t example = 0; example < kExamples; ++example) {
      const auto begin = all.begin() + example * size;
      const Values frame = to_frame(port, {begin, begin + size});
      stream.insert(stream.end(), frame.begin(), frame.end());
    }
  }
  const Simulator simulator(design.netlist);
  for (const double stall : {0.0, 0.25}) {
    const Simulation simulation = simulator.run(frames, {.stall = stall, .seed = 2});
    EXPECT_TRUE(simulation.is_exact()) << simulation.text(design.netlist);
    EXPECT_EQ(simulation.outputs[0], seen.at(design.outputs[0].node));
  }
}

// A head of five elements has no three lanes, and a norm needs more than one to divide in time.
TEST(EncoderHardware, ChoosesOnlyLanesThatLayersCanHave) {
  const Graph graph = parse_graph(R"(
    symbols B, L
    ids = input() : i64[B,L]
    mask = input() : i64[B,L]
    table = state() : i8[10,10]
    norm.weight = state() : i16[10]
    norm.bias = state() : i16[10]
    words = embedding(ids, table) : i8[B,L,10]
    norm = integer_layer_norm(words, norm.weight, norm.bias) {epsilon=37, shift=13, width=8, scale=[0.1]} : i8[B,L,10]
    attention = integer_attention(norm, norm, norm, mask) {heads=2, exponent_multiplier=100000, exponent_shift=18, multiplier=3, shift=1, width=8} : i8[B,L,10]
    output y <- attention
  )");
  const State state = drawn_state(graph);
  const auto design = [&](std::int64_t cycles) {
    return design_hardware(graph, state, {.goal = {.cycles = cycles}, .symbols = {{"L", kTokens}}});
  };
  const Design slow = design(2000), fast = design(400);
  EXPECT_LE(slow.frame_interval, 2000);
  EXPECT_LE(fast.frame_interval, 400);
  EXPECT_EQ(slow.parallelism.at("norm"), (Lanes{.in = 1, .out = 1}));
  EXPECT_GT(fast.parallelism.at("norm").in, 1);
  EXPECT_EQ(5 % fast.parallelism.at("attention").in, 0);
  EXPECT_THROW(design(10), UserError);
}

TEST(EncoderHardware, TakesOnlyMasksOfALength) {
  const DesignPort port{.name = "mask", .node = "mask", .dims = {4}, .is_length = true};
  EXPECT_EQ(to_frame(port, {1, 1, 0, 0}), Values{2});
  EXPECT_EQ(to_frame(port, {1, 1, 1, 1}), Values{4});
  EXPECT_THROW(to_frame(port, {1, 0, 1, 0}), UserError);
  EXPECT_THROW(to_frame(port, {0, 0, 0, 0}), UserError);
}

}  // namespace
}  // namespace lathe::hardware
