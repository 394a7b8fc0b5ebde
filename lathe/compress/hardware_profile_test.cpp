#include "lathe/compress/hardware_profile.h"

#include <gtest/gtest.h>

#include "lathe/compress/insert_quantizers.h"
#include "lathe/core/graph_text.h"

namespace lathe::compress {
namespace {

// Every float that passes from one op to another is rounded, once for each format that it is wanted
// in, and what is given out too.
TEST(HardwareProfile, PutsQuantizersEverywhere) {
  Graph graph = parse_graph(R"(
    symbols B
    x = input() : f32[B,4]
    w = state() : f32[4,4]
    g = state() : f32[4]
    b = state() : f32[4]
    layer = linear(x, w) : f32[B,4]
    sum = add(layer, x) : f32[B,4]
    norm = layer_norm(sum, g, b) : f32[B,4]
    act = gelu(norm) : f32[B,4]
    last = linear(act, w) : f32[B,4]
    output y <- last
  )");
  State state;
  insert_quantizers(
      graph, state,
      hardware_rules(
          graph, {.weights = "fixed:4,2", .activations = "fixed:8,4", .residuals = "fixed:16,8"}));
  EXPECT_EQ(print(graph), R"(lathe-ir 2
symbols B
x = input() : f32[B,4]
w = state() : f32[4,4]
g = state() : f32[4]
b = state() : f32[4]
x/quantized = quantize(x) {format="fixed:8,4"} : f32[B,4]
w/quantized = quantize(w) {format="fixed:4,2"} : f32[4,4]
layer = linear(x/quantized, w/quantized) : f32[B,4]
layer/quantized = quantize(layer) {format="fixed:16,8"} : f32[B,4]
x/quantized_2 = quantize(x) {format="fixed:16,8"} : f32[B,4]
sum = add(layer/quantized, x/quantized_2) : f32[B,4]
sum/quantized = quantize(sum) {format="fixed:16,8"} : f32[B,4]
norm = layer_norm(sum/quantized, g, b) : f32[B,4]
norm/quantized = quantize(norm) {format="fixed:16,8"} : f32[B,4]
norm/quantized/quantized = quantize(norm/quantized) {format="fixed:8,4"} : f32[B,4]
act = gelu(norm/quantized/quantized) : f32[B,4]
act/quantized = quantize(act) {format="fixed:8,4"} : f32[B,4]
last = linear(act/quantized, w/quantized) : f32[B,4]
last/quantized = quantize(last) {format="fixed:16,8"} : f32[B,4]
output y <- last/quantized
)");
}

// What the host gives is rounded before anything else is done to it.
TEST(HardwareProfile, RoundsInputsInFrontOfPoolingAndReshapes) {
  Graph graph = parse_graph(R"(
    symbols B
    x = input() : f32[B,1,4,4]
    z = input() : f32[B,2,2]
    w = state() : f32[3,4]
    pool = max_pool2d(x) {kernel=[2,2]} : f32[B,1,2,2]
    flat = reshape(z) : f32[B,4]
    layer = linear(flat, w) : f32[B,3]
    output a <- pool
    output b <- layer
  )");
  State state;
  insert_quantizers(graph, state,
                    hardware_rules(graph, {.weights = "fixed:4,2", .activations = "fixed:8,4"}));
  EXPECT_EQ(print(graph, "pool"), "pool = max_pool2d(x/quantized) {kernel=[2,2]} : f32[B,1,2,2]");
  EXPECT_EQ(print(graph, "flat"), "flat = reshape(z/quantized) : f32[B,4]");
}

}  // namespace
}  // namespace lathe::compress
