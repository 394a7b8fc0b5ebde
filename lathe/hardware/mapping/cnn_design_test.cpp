#include <gtest/gtest.h>

#include "lathe/core/error.h"
#include "lathe/core/graph_text.h"
#include "lathe/hardware/mapping/design.h"

namespace lathe::hardware {
namespace {

Tensor numbers(std::vector<std::int64_t> dims) {
  Tensor tensor(DType::I8, std::move(dims));
  std::int8_t next = -3;
  for (std::int8_t& value : tensor.mutable_data<std::int8_t>())
    value = next = static_cast<std::int8_t>(next == 3 ? -3 : next + 1);
  return tensor;
}

constexpr const char* kImages = R"(
  symbols B
  x = input() : f32[B,2,4,4]
  w = state() : i8[3,2,3,3]
  x/integer = to_integer(x) {scale=[0.125], width=8} : i8[B,2,4,4]
  conv = integer_conv2d(x/integer, w) {width=16, pads=[1,1,1,1], scale=[1.0]} : i16[B,3,4,4]
  small = requant(conv) {shift=3, width=8, scale=[1.0]} : i8[B,3,4,4]
  pool = max_pool2d(small) {kernel=[2,2]} : i8[B,3,2,2]
  y = from_integer(pool) {scale=[1.0]} : f32[B,3,2,2]
  output y <- y
)";

TEST(CnnDesign, IsWindowsProductsAndPooling) {
  const Design design = design_hardware(parse_graph(kImages), {{"w", numbers({3, 2, 3, 3})}},
                                        {.parallelism = {{"conv", {.in = 2, .out = 3}}}});
  std::vector<std::string> blocks;
  for (const Instance& instance : design.netlist.instances())
    if (instance.block != "stream_fifo") blocks.push_back(instance.block);
  EXPECT_EQ(blocks, (std::vector<std::string>{"sliding_window", "matrix_vector", "sliding_window",
                                              "window_reduce"}));
  // Pixel by pixel, channels within.
  EXPECT_EQ(design.outputs[0].order[1], 4);
  EXPECT_EQ(design.netlist.type(design.netlist.outputs()[0]).text(),
            "4 x 3 s8 (fixed:8,0), 3 a beat");
  // 16 pixels of nine products each.
  EXPECT_EQ(design.layers.at("conv").cycles, 16 * 9);
  EXPECT_EQ(design.frame_interval, 16 * 9);
}

TEST(CnnDesign, RefusesWindowsWithHoles) {
  std::string text = kImages;
  text.replace(text.find("pads=[1,1,1,1]"), 14, "pads=[2,2,2,2], dilations=[2,2]");
  try {
    design_hardware(parse_graph(text), {{"w", numbers({3, 2, 3, 3})}}, {});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.message(),
              "no hardware for \"conv\" (integer_conv2d): a window of dilation 2x2, and expected "
              "1x1");
  }
}

TEST(CnnDesign, LetsAnInputThatIsRoundedTwiceEnterTwice) {
  const Graph graph = parse_graph(R"(
    symbols B
    x = input() : f32[B,2]
    a = to_integer(x) {scale=[0.5], width=8} : i8[B,2]
    b = to_integer(x) {scale=[0.25], width=8} : i8[B,2]
    sum = integer_add(a, b) {multiplier_a=2, width=10, scale=[0.25]} : i16[B,2]
    y = from_integer(sum) {scale=[0.25]} : f32[B,2]
    output y <- y
  )");
  const Design design = design_hardware(graph, {}, {});
  ASSERT_EQ(design.inputs.size(), 2U);
  EXPECT_EQ(design.inputs[0].name, "x");
  EXPECT_EQ(design.inputs[1].name, "x");
  EXPECT_NE(design.netlist.stream_name(design.netlist.inputs()[0]),
            design.netlist.stream_name(design.netlist.inputs()[1]));
}

}  // namespace
}  // namespace lathe::hardware
