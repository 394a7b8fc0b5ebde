#include <gtest/gtest.h>

#include "lathe/core/file_memory.h"
#include "lathe/core/graph_text.h"
#include "lathe/engine/executor.h"

namespace lathe::engine {
namespace {

// A layer of 64 x 96 in MXINT8 and a table of 10 rows.
const char* const kLayers = R"(
  symbols T
  ids = input() : i32[T]
  table/codes = state() : u8[10,96]
  table/local = state() : u8[10,3]
  codes = state() : u8[64,96]
  local = state() : u8[64,3]
  bias = state() : f32[64]
  table = decode(table/codes, table/local) {format="mxint:8", columns=96} : f32[10,96]
  weight = decode(codes, local) {format="mxint:8", columns=96} : f32[64,96]
  x = embedding(ids, table) : f32[T,96]
  y = linear(x, weight, bias) : f32[T,64]
  output y <- y
)";

State states_of(const Graph& graph) {
  State state;
  for (const NodeId id : graph.nodes_of("state")) {
    Tensor tensor(graph.types(id)[0].dtype, graph.types(id)[0].dims({}));
    if (tensor.dtype() == DType::U8)
      for (std::uint8_t& byte : tensor.mutable_data<std::uint8_t>()) byte = 120;
    state[graph.name(id)] = std::move(tensor);
  }
  return state;
}

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {tensor.bytes(), static_cast<std::size_t>(tensor.num_bytes())};
}

TEST(WeightMemory, CountsWhatIsLaidOutAndWhatIsReadAsItIsStored) {
  const Graph graph = parse_graph(kLayers);
  const State state = states_of(graph);
  // The test's own memory stands for a file's: it is too small for a page to be let go of.
  for (const auto& [name, tensor] : state) add_file_memory(bytes_of(tensor));
  const auto executor = make_executor(graph, state, {.uses_integers = true});
  // 64 columns are whole panels: a byte a number, and one for each power of two.
  constexpr std::int64_t kLayer = 64 * 96 + 64 * 3, kTable = 10 * 96 + 10 * 3, kBias = 64 * 4;
  EXPECT_EQ(executor->report().weight_bytes, kLayer + kTable + kBias);
  for (const auto& [name, tensor] : state) remove_file_memory(bytes_of(tensor));
  // Codes that no file holds are there beside the layout.
  EXPECT_EQ(executor->report().weight_bytes, 2 * kLayer + kTable + kBias);
}

TEST(WeightMemory, IsThatOfFloatsWhereTheyAreSimulated) {
  const Graph graph = parse_graph(kLayers);
  const auto executor = make_executor(graph, states_of(graph), {});
  EXPECT_GE(executor->report().weight_bytes, 2 * 64 * 96 * 4 + 10 * 96 * 4);
}

}  // namespace
}  // namespace lathe::engine
