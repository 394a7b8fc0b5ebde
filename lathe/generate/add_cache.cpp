#include "lathe/generate/add_cache.h"

#include "lathe/core/pass.h"
#include "lathe/core/role.h"
#include "lathe/ops/cache_rows.h"

namespace lathe::generate {
namespace {

constexpr std::string_view kFormatNames[] = {"float32", "bf16", "int:8"};

DType dtype_of(CacheFormat format) {
  constexpr DType kDTypes[] = {DType::F32, DType::BF16, DType::I8};
  return kDTypes[static_cast<std::size_t>(format)];
}

class CacheAdder {
 public:
  CacheAdder(Graph& graph, std::int64_t rows, CacheFormat format)
      : graph_(graph), rows_(rows), dtype_(dtype_of(format)) {
    offsets_ = {graph.at("offsets"), 0};
    const Shape sequences{Size::symbol("S")};
    positions_ = input(kPositions, {Size::symbol("T")});
    starts_ = input(kStarts, sequences);
    lengths_ = input(kLengths, sequences);
  }

  void replace_positions() {
    for (const NodeId id : graph_.nodes_of("packed_positions")) {
      if (graph_.attribute(id).integer("first") != 0)
        fail("node \"{}\" counts positions from {}: expected 0", graph_.name(id),
             graph_.attribute(id).integer("first"));
      graph_.replace_all_uses({id, 0}, positions_);
      graph_.erase(id);
    }
  }

  void replace_attention(NodeId id) {
    const AttributeReader attributes = graph_.attribute(id);
    if (!attributes.flag("causal"))
      fail("node \"{}\" looks ahead: expected attention that is causal", graph_.name(id));
    if (!attributes.text("weight_format").empty())
      fail(
          "node \"{}\" rounds the weights of whole sequences to {}: expected none that are rounded",
          graph_.name(id), attributes.text("weight_format"));
    const std::int64_t kv_heads = attributes.integer("kv_heads") == 0
                                      ? attributes.integer("heads")
                                      : attributes.integer("kv_heads");
    const std::int64_t width = graph_.type(graph_.input(id, 1)).axis(-1).constant();
    const ops::CacheLayout layout{dtype_, kv_heads, width / kv_heads};
    const Value k_cache = cache(id, "k_cache", layout), v_cache = cache(id, "v_cache", layout);
    const Attributes kept{{"heads", attributes.integer("heads")},
                          {"kv_heads", attributes.integer("kv_heads")},
                          {"scale", attributes.real("scale")}};
    const NodeId cached = graph_.insert_before(
        id, {.name = graph_.name(id) + "/cached",
             .op = "cached_attention",
             .inputs = {graph_.input(id, 0), graph_.input(id, 1), graph_.input(id, 2), k_cache,
                        v_cache, offsets_, starts_, lengths_},
             .attributes = kept});
    graph_.bind_state(k_cache.node, {cached, 1});
    graph_.bind_state(v_cache.node, {cached, 2});
    graph_.replace_all_uses({id, 0}, {cached, 0});
    const std::string name = graph_.name(id);
    graph_.erase(id);
    graph_.rename(cached, name);
  }

  // What else reads whole sequences, which are not there any more.
  void check_readers() const {
    for (const NodeId user : graph_.users(offsets_.node))
      if (!graph_.is(user, "cached_attention"))
        fail("{} reads whole sequences, and cannot go on with one", described(graph_, user));
  }

  void choose_last_tokens() {
    const std::optional<Value> logits = graph_.output("logits");
    if (!logits) fail("the graph gives no logits");
    const NodeId last = graph_.add({.name = "last_token",
                                    .op = "select_in_sequence",
                                    .inputs = {*logits, offsets_},
                                    .attributes = {{"index", std::int64_t{-1}}}});
    graph_.set_output("logits", {last, 0});
  }

 private:
  Value input(const char* name, Shape shape) {
    return {
        graph_.insert_after(
            offsets_.node,
            {.name = name, .op = "input", .inputs = {}, .types = {{DType::I32, std::move(shape)}}}),
        0};
  }

  Value cache(NodeId attention, const char* what, const ops::CacheLayout& layout) {
    return {graph_.insert_before(attention,
                                 {.name = fmt::format("{}/{}", graph_.name(attention), what),
                                  .op = "state",
                                  .inputs = {},
                                  .attributes = {{"role", std::string(name(StateRole::Cache))}},
                                  .types = {{dtype_, {Size(rows_), Size(layout.width())}}}}),
            0};
  }

  Graph& graph_;
  std::int64_t rows_;
  DType dtype_;
  Value offsets_, positions_, starts_, lengths_;
};

}  // namespace

std::string_view name(CacheFormat format) {
  return kFormatNames[static_cast<std::size_t>(format)];
}

CacheFormat parse_cache_format(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kFormatNames); ++i)
    if (kFormatNames[i] == text) return static_cast<CacheFormat>(i);
  fail("cache {}: expected float32, bf16 or int:8", text);
}

Graph with_cache(const Graph& graph, std::int64_t rows, CacheFormat format) {
  Graph result = graph;
  run_pass("remove-dropout", result);
  run_pass("pack-sequences", result);
  CacheAdder adder(result, rows, format);
  adder.replace_positions();
  for (const NodeId id : result.nodes_of("attention")) adder.replace_attention(id);
  adder.check_readers();
  adder.choose_last_tokens();
  verify(result);
  return result;
}

void choose_likeliest(Graph& graph) {
  const std::optional<Value> logits = graph.output("logits");
  check(logits.has_value(), "a graph that gives logits");
  const NodeId chosen = graph.add({.name = kLikeliest, .op = "argmax", .inputs = {*logits}});
  graph.remove_output("logits");
  graph.set_output(kLikeliest, {chosen, 0});
  verify(graph);
}

State empty_caches(const Graph& graph) {
  State caches;
  for (const NodeId id : states_of(graph, StateRole::Cache))
    caches.emplace(graph.name(id), Tensor(graph.types(id)[0].dtype, graph.types(id)[0].dims({})));
  return caches;
}

}  // namespace lathe::generate
