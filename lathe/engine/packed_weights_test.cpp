#include "lathe/engine/packed_weights.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/parameter_graph.h"

namespace lathe::engine {
namespace {

// As a GPU would run it: decodes that can stay packed are not split off.
std::string lowered_text(const std::string& text) {
  const Backend& backend = find_backend("cuda");
  const Graph graph = parse_graph(text);
  const SplitGraph split = split_parameters(graph, find_packed_weights(graph, backend));
  return print(lower(split.main, backend));
}

TEST(PackedWeights, AreReadByTheLinearItself) {
  const std::string lowered = lowered_text(R"(
    x = input() : f32[T,64]
    codes = state() : u8[32,64]
    local = state() : u8[32,2]
    bias = state() : f32[32]
    w = decode(codes, local) {format="mxint:8", columns=64}
    h = linear(x, w, bias)
    y = gelu(h)
    output y <- y
  )");
  EXPECT_NE(
      lowered.find("packed_linear(x, codes, local, none, none, bias, none) {activation=\"gelu\", "
                   "columns=64, format=\"mxint:8\"} : f32[T,32]"),
      std::string::npos)
      << lowered;
  EXPECT_EQ(lowered.find("decode"), std::string::npos) << lowered;
}

TEST(PackedWeights, AreLookedUpByRows) {
  const std::string lowered = lowered_text(R"(
    ids = input() : i32[T]
    codes = state() : u8[100,32]
    scale = state() : f32[100,2]
    table = decode(codes, none, scale) {format="int:4,group=32", columns=64}
    y = embedding(ids, table)
    output y <- y
  )");
  EXPECT_NE(lowered.find("packed_embedding(ids, codes, none, scale, none) {columns=64, "
                         "format=\"int:4,group=32\"} : f32[T,64]"),
            std::string::npos)
      << lowered;
}

TEST(PackedWeights, MultiplyWholeNumbersWhereBothSidesAreMxint8) {
  const std::string lowered = lowered_text(R"(
    x = input() : f32[T,64]
    codes = state() : u8[32,64]
    local = state() : u8[32,4]
    w = decode(codes, local) {format="mxint:8,block=16", columns=64}
    rounded = quantize(x) {format="mxint:8,block=16"}
    y = linear(rounded, w)
    output y <- y
  )");
  EXPECT_NE(lowered.find("packed_linear(x, codes, local"), std::string::npos) << lowered;
  EXPECT_NE(lowered.find("encodes=true"), std::string::npos) << lowered;
  EXPECT_EQ(lowered.find("quantize"), std::string::npos) << lowered;
}

TEST(PackedWeights, AreDecodedOnceWhereSomebodyElseReadsThem) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[T,64]
    codes = state() : u8[32,64]
    local = state() : u8[32,2]
    mask = state() : f32[32,64]
    w = decode(codes, local) {format="mxint:8", columns=64}
    masked = mul(w, mask)
    y = linear(x, masked)
    output y <- y
  )");
  EXPECT_TRUE(find_packed_weights(graph, find_backend("cuda")).empty());
}

}  // namespace
}  // namespace lathe::engine
