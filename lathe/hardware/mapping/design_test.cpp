#include "lathe/hardware/mapping/design.h"

#include <gtest/gtest.h>

#include <random>

#include "lathe/compress/integer/lower_to_integer.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/engine/reference_executor.h"
#include "lathe/hardware/rtl_library.h"
#include "lathe/hardware/simulation/simulate.h"
#include "lathe/hardware/testing/needs_tool.h"
#include "lathe/ops/elements.h"

namespace lathe::hardware {
namespace {

struct Example {
  Graph graph;
  State state;
};

// A quantized graph with weights drawn from a seed, as integers.
Example integer_example(const std::string& text) {
  Example result{.graph = parse_graph(text), .state = {}};
  std::mt19937_64 random(7);
  for (const NodeId node : result.graph.nodes_of("state")) {
    const std::vector<std::int64_t> dims = result.graph.types(node)[0].dims({});
    Tensor tensor(DType::F32, dims);
    for (float& value : tensor.mutable_data<float>())
      value = static_cast<float>(static_cast<int>(random() % 257) - 128) / 64.0f;
    result.state[result.graph.name(node)] = tensor;
  }
  compress::lower_to_integer(result.graph, result.state);
  return result;
}

constexpr const char* kLab = R"(
  symbols B
  x = input() : f32[B,4]
  fc.weight = state() : f32[8,4]
  fc.bias = state() : f32[8]
  x/quantized = quantize(x) {format="fixed:8,3"} : f32[B,4]
  fc.weight/quantized = quantize(fc.weight) {format="fixed:8,3"} : f32[8,4]
  fc = linear(x/quantized, fc.weight/quantized, fc.bias) : f32[B,8]
  act = relu(fc) : f32[B,8]
  act/quantized = quantize(act) {format="fixed:8,3"} : f32[B,8]
  output logits <- act/quantized
)";

// Two layers around which the input goes to be added, and a function by a table.
constexpr const char* kResidual = R"(
  symbols B
  x = input() : f32[B,6]
  a.weight = state() : f32[10,6]
  b.weight = state() : f32[6,10]
  b.bias = state() : f32[6]
  x/quantized = quantize(x) {format="fixed:6,3"} : f32[B,6]
  a.weight/quantized = quantize(a.weight) {format="fixed:5,3"} : f32[10,6]
  a = linear(x/quantized, a.weight/quantized) : f32[B,10]
  a/quantized = quantize(a) {format="fixed:8,3"} : f32[B,10]
  tanh = tanh(a/quantized) : f32[B,10]
  tanh/quantized = quantize(tanh) {format="fixed:8,6"} : f32[B,10]
  b.weight/quantized = quantize(b.weight) {format="fixed:6,3"} : f32[6,10]
  b = linear(tanh/quantized, b.weight/quantized, b.bias) : f32[B,6]
  b/quantized = quantize(b) {format="fixed:8,4"} : f32[B,6]
  sum = add(b/quantized, x/quantized) : f32[B,6]
  sum/quantized = quantize(sum) {format="fixed:8,3"} : f32[B,6]
  output y <- sum/quantized
)";

// Simulates examples and expects what the integer graph gives.
void expect_equal_to_graph(const Example& example, const Design& design, double stall) {
  constexpr std::int64_t kExamples = 5;
  std::mt19937_64 random(11);
  Tensor x(DType::F32, {kExamples, design.inputs[0].dims[0]});
  for (float& value : x.mutable_data<float>())
    value = static_cast<float>(static_cast<int>(random() % 301) - 150) / 9.0f;
  std::map<std::string, std::vector<std::int64_t>> seen;
  engine::run_reference(example.graph, example.state, {{"x", x}},
                        [&](Value value, const Tensor& tensor) {
                          if (!is_floating(tensor.dtype()))
                            seen[example.graph.name(value)] = ops::read_integers(tensor);
                        });
  const Simulator simulator(design.netlist);
  const Simulation simulation =
      simulator.run({seen.at(design.inputs[0].node)}, {.stall = stall, .seed = 3});
  EXPECT_TRUE(simulation.is_exact()) << simulation.text(design.netlist);
  EXPECT_EQ(simulation.outputs[0], seen.at(design.outputs[0].node));
}

TEST(DesignHardware, MapsTheLabsNetworkToTwoBlocks) {
  const Example lab = integer_example(kLab);
  const Design design =
      design_hardware(lab.graph, lab.state, {.parallelism = {{"fc", {.in = 4, .out = 4}}}});
  ASSERT_EQ(design.netlist.instances().size(), 2U);
  EXPECT_EQ(design.netlist.instances()[0].block, "matrix_vector");
  EXPECT_EQ(design.netlist.instances()[1].block, "relu");
  EXPECT_EQ(design.netlist.type(design.netlist.outputs()[0]).text(),
            "1 x 8 s8 (fixed:8,3), 4 a beat");
  EXPECT_EQ(design.frame_interval, 2);
  EXPECT_LE(design.latency, 12);
}

TEST(DesignHardware, ComputesWhatTheIntegerGraphComputes) {
  LATHE_NEEDS(verilator);
  const Example lab = integer_example(kLab);
  expect_equal_to_graph(
      lab, design_hardware(lab.graph, lab.state, {.parallelism = {{"fc", {.in = 4, .out = 4}}}}),
      0);
}

TEST(DesignHardware, JoinsBranchesOfUnequalLengthAndLanesThatDoNotDivide) {
  LATHE_NEEDS(verilator);
  const Example example = integer_example(kResidual);
  for (const double stall : {0.0, 0.5})
    expect_equal_to_graph(
        example,
        design_hardware(example.graph, example.state,
                        {.parallelism = {{"a", {.in = 4, .out = 3}}, {"b", {.in = 4, .out = 4}}}}),
        stall);
}

// The lab's randomised leaky ReLU in the user's own hand: the text is the library's, under another
// name.
ExternalLayer random_leaky_relu() {
  std::string source(rtl_source("random_leaky_relu"));
  source.replace(source.find("module random_leaky_relu"), 24, "module my_rrelu");
  return {.layer = "act",
          .module = "my_rrelu",
          .source = source,
          .result = "x < 0 ? (x * (8 + ((lfsr & 15) * 13 >> 4))) >> 6 : x",
          .registers = {{"lfsr", 1}},
          .next = {{"lfsr", "(lfsr << 1 & 255) | parity(lfsr & 0xB8)"}}};
}

TEST(DesignHardware, UsesAndChecksTheUsersOwnModule) {
  LATHE_NEEDS(verilator);
  const Example lab = integer_example(kLab);
  DesignOptions options{.parallelism = {{"fc", {.in = 4, .out = 4}}},
                        .external = {random_leaky_relu()}};
  const Design design = design_hardware(lab.graph, lab.state, options);
  EXPECT_EQ(design.netlist.instances().size(), 2U);
  EXPECT_EQ(design.layers.at("act/quantized").toolchain, "external");
  const Values x = {-5, 17, 100, -90, 33, -128, 127, 8, -1, -77, 20, 4};
  const Simulation right = Simulator(design.netlist).run({x});
  EXPECT_TRUE(right.is_exact()) << right.text(design.netlist);

  options.external[0].result = "x < 0 ? 0 : x";
  const Design other = design_hardware(lab.graph, lab.state, options);
  EXPECT_GT(Simulator(other.netlist).run({x}).num_differences, 0);
}

TEST(DesignHardware, NamesEveryNodeThatHasNoHardware) {
  Graph graph = parse_graph(R"(
    symbols B
    x = input() : f32[B,4]
    x/integer = to_integer(x) {scale=[0.125], width=8} : i8[B,4]
    a = neg(x/integer) : i8[B,4]
    b = abs(x/integer) : i8[B,4]
    c = neg(b) : i8[B,4]
    a/float = from_integer(a) {scale=[1.0]} : f32[B,4]
    c/float = from_integer(c) {scale=[1.0]} : f32[B,4]
    output a <- a/float
    output c <- c/float
  )");
  try {
    design_hardware(graph, {}, {});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.message(), "no hardware for \"a\" (neg); \"b\" (abs); \"c\" (neg)");
  }
}

TEST(DesignHardware, AnnotatesNodesWithWhatTheyBecame) {
  Example lab = integer_example(kLab);
  PassContext context{.options = {{"parallelism", std::string("fc=4x4")}}, .state = &lab.state};
  run_pass("map-to-hardware", lab.graph, context);
  const auto* metadata = lab.graph.find_annotation<HardwareMetadata>(lab.graph.at("fc"));
  ASSERT_NE(metadata, nullptr);
  EXPECT_EQ(to_text(*metadata),
            "matrix_vector (internal, rtl/matrix_vector.sv rtl/product_lane.sv rtl/ram.sv "
            "rtl/requant.sv rtl/rom.sv), in 1 x 4 s8 (fixed:8,3), 4 a beat, out 1 x 8 s8 "
            "(fixed:8,3), 4 a beat, 2 cycles, parameters in "
            "LUTs (2 x 80 bits), LUTs (2 x 56 bits), not transposed, valid/ready streams");
}

}  // namespace
}  // namespace lathe::hardware
