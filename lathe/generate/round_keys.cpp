#include "lathe/generate/round_keys.h"

#include "lathe/core/pass.h"

namespace lathe::generate {
namespace {

constexpr std::size_t kKey = 1, kValue = 2;

// A row of a cache has a scale for each head: a format with a scale for so many features.
Value rounded(Graph& graph, NodeId attention, Value value, const std::string& name,
              CacheFormat format) {
  const AttributeReader attributes = graph.attribute(attention);
  if (format == CacheFormat::Int8) {
    const std::int64_t size =
        graph.type(graph.input(attention, 0)).axis(-1).constant() / attributes.integer("heads");
    return {
        graph.insert_before(
            attention, {.name = name,
                        .op = "quantize",
                        .inputs = {value},
                        .attributes = {{"format", fmt::format("int:8,group={},dynamic", size)}}}),
        0};
  }
  const Type whole = graph.type(value);
  const NodeId narrow = graph.insert_before(attention, {.name = name + "/narrow",
                                                        .op = "cast",
                                                        .inputs = {value},
                                                        .types = {{DType::BF16, whole.shape}}});
  return {graph.insert_before(
              attention, {.name = name, .op = "cast", .inputs = {{narrow, 0}}, .types = {whole}}),
          0};
}

}  // namespace

void round_keys(Graph& graph, CacheFormat format) {
  std::size_t num_causal = 0;
  for (const NodeId id : graph.nodes_of("attention")) {
    if (!graph.attribute(id).flag("causal")) continue;
    ++num_causal;
    if (format == CacheFormat::Float32) continue;
    for (const std::size_t operand : {kKey, kValue}) {
      const char* const what = operand == kKey ? "kept_key" : "kept_value";
      const Value kept = rounded(graph, id, graph.input(id, operand),
                                 fmt::format("{}/{}", graph.name(id), what), format);
      graph.set_input(id, operand, kept);
    }
  }
  if (num_causal == 0)
    fail("cache {}: the model keeps no keys; expected a causal language model", name(format));
  verify(graph);
}

}  // namespace lathe::generate
