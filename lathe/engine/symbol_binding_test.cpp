#include "lathe/engine/symbol_binding.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"

namespace lathe::engine {
namespace {

Feed zeros(std::initializer_list<std::pair<const char*, const char*>> types) {
  Feed feed;
  for (const auto& [name, text] : types) {
    const Type type = parse_type(text);
    feed[name] = Tensor(type.dtype, type.dims({}));
  }
  return feed;
}

const char* const kGraph = R"(
  ids = input() : i32[T]
  offsets = input() : i32[S+1]
)";

TEST(BindSymbols, SolvesSizesThatAreSumsAndMultiples) {
  const SymbolValues packed =
      bind_symbols(parse_graph(kGraph), zeros({{"ids", "i32[7]"}, {"offsets", "i32[3]"}}));
  EXPECT_EQ(packed, (SymbolValues{{"S", 2}, {"T", 7}}));
  const Graph doubled = parse_graph("x = input() : f32[2*B+1]");
  EXPECT_EQ(bind_symbols(doubled, zeros({{"x", "f32[9]"}})), (SymbolValues{{"B", 4}}));
}

TEST(BindSymbols, UsesAnInputThatComesLater) {
  const Graph graph = parse_graph("flat = input() : f32[B*L]\nrows = input() : f32[B]");
  EXPECT_EQ(bind_symbols(graph, zeros({{"flat", "f32[6]"}, {"rows", "f32[2]"}})),
            (SymbolValues{{"B", 2}, {"L", 3}}));
}

TEST(BindSymbols, SaysWhatIsMissingOrDoesNotFit) {
  const auto refusal = [](const char* graph, const Feed& feed) {
    return error_text([&] { bind_symbols(parse_graph(graph), feed); });
  };
  EXPECT_EQ(refusal(kGraph, zeros({{"ids", "i32[7]"}})),
            "input \"offsets\" is missing: expected i32[S+1]");
  EXPECT_EQ(refusal(kGraph, zeros({{"ids", "i64[7]"}, {"offsets", "i32[3]"}})),
            "input \"ids\" is i64[7], but i32[T] is expected");
  EXPECT_EQ(refusal(kGraph, zeros({{"ids", "i32[7,1]"}, {"offsets", "i32[3]"}})),
            "input \"ids\" is i32[7,1], but i32[T] is expected");
  EXPECT_EQ(refusal(kGraph, zeros({{"ids", "i32[7]"}, {"offsets", "i32[0]"}})),
            "input \"offsets\" of shape [0]: size S+1: symbol S has no value");
  EXPECT_EQ(refusal("x = input() : f32[B,4]\ny = input() : f32[B,4]",
                    zeros({{"x", "f32[2,4]"}, {"y", "f32[3,4]"}})),
            "input \"y\" has shape [3,4], but [B,4] is [2,4] here");
  EXPECT_EQ(refusal("x = input() : f32[2*B]", zeros({{"x", "f32[5]"}})),
            "input \"x\" of shape [5]: size 2*B: symbol B has no value");
}

TEST(CheckState, NamesTheTensorThatIsMissingOrDoesNotFit) {
  const Graph graph = parse_graph("w = state() : f32[2,3]");
  const auto refusal = [&](const State& state) {
    return error_text([&] { check_state(graph, state); });
  };
  EXPECT_EQ(refusal({}), "tensor \"w\" is missing: expected f32[2,3]");
  EXPECT_EQ(refusal({{"w", Tensor(DType::F32, {3, 2})}}),
            "tensor \"w\" is f32[3,2], but f32[2,3] is expected");
  EXPECT_EQ(refusal({{"w", Tensor(DType::F16, {2, 3})}}),
            "tensor \"w\" is f16[2,3], but f32[2,3] is expected");
  EXPECT_EQ(refusal({{"w", Tensor(DType::F32, {2, 3})}, {"more", Tensor()}}), "no error");
}

}  // namespace
}  // namespace lathe::engine
