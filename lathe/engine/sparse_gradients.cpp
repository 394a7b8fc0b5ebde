#include "lathe/engine/sparse_gradients.h"

#include <array>

#include "lathe/engine/lowered_node.h"
#include "lathe/engine/origin.h"

namespace lathe::engine {
namespace {

// A table that a batch is likely to fill is as well off whole.
constexpr std::int64_t kFewestRows = 1024;

struct RowsReader {
  std::string_view dense, of_rows;
  std::int32_t gradient;  // the operand
};
constexpr std::array<RowsReader, 3> kReaders{{{"sum_squares", "sum_squares_of_rows", 0},
                                              {"adamw", "adamw_of_rows", 1},
                                              {"sgd", "sgd_of_rows", 1}}};

const RowsReader* find_reader(const Graph& graph, NodeId id) {
  for (const RowsReader& reader : kReaders)
    if (graph.is(id, reader.dense)) return &reader;
  return nullptr;
}

bool can_be_rows(const Graph& graph, NodeId id, const Backend& backend) {
  if (!backend.can_run(graph, id)) return false;
  for (const Use& use : graph.uses(id)) {
    if (use.kind != Use::Kind::Operand || !backend.can_run(graph, use.user)) return false;
    const RowsReader* reader = find_reader(graph, use.user);
    if (reader == nullptr || use.operand != reader->gradient) return false;
  }
  return true;
}

void make_rows(Graph& graph, NodeId id) {
  const NodeId rows = graph.insert_before(id, {.name = graph.name(id) + "/rows",
                                               .op = "embedding_gradient_rows",
                                               .inputs = graph.inputs(id),
                                               .attributes = graph.attributes(id)});
  graph.annotation<Origin>(rows).nodes = {graph.name(id)};
  for (const NodeId user : graph.users(id)) {
    const RowsReader& reader = *find_reader(graph, user);
    std::vector<Value> inputs = graph.inputs(user);
    inputs[static_cast<std::size_t>(reader.gradient)] = {rows, 0};
    inputs.push_back({rows, reader.dense == "sum_squares" ? 2 : 1});
    replace_by_lowered(graph, user,
                       graph.insert_before(user, {.name = graph.name(user) + "/rows",
                                                  .op = std::string(reader.of_rows),
                                                  .inputs = std::move(inputs),
                                                  .attributes = graph.attributes(user)}));
  }
  graph.erase(id);
}

// The one reader of a gradient, if that is an addition to something of the same shape.
std::optional<NodeId> sum_with(const Graph& graph, NodeId id, const Backend& backend) {
  if (graph.uses(id).size() != 1 || !backend.can_run(graph, id)) return std::nullopt;
  const Use& use = graph.uses(id).front();
  if (use.kind != Use::Kind::Operand || !graph.is(use.user, "add")) return std::nullopt;
  if (graph.type(graph.input(use.user, 0)) != graph.type(graph.input(use.user, 1)))
    return std::nullopt;
  return use.user;
}

void add_rows(Graph& graph, NodeId id, NodeId sum) {
  const std::size_t term = graph.input(sum, 0).node == id ? 0 : 1;
  const std::vector<std::string> origins{graph.name(id), graph.name(sum)};
  const NodeId added = graph.insert_before(
      sum, {.name = graph.name(sum) + "/fused",
            .op = "add_embedding_gradient",
            .inputs = {graph.input(id, 0), graph.input(id, 1), graph.input(sum, 1 - term)}});
  replace_by_lowered(graph, sum, added);
  graph.annotation<Origin>(added).nodes = origins;
  graph.erase(id);
}

}  // namespace

int make_embedding_gradients_sparse(Graph& graph, const Backend& backend) {
  int changed = 0;
  for (const NodeId id : graph.nodes_of("embedding_gradient")) {
    if (graph.attribute(id).integer("rows") < kFewestRows) continue;
    if (can_be_rows(graph, id, backend))
      make_rows(graph, id);
    else if (const std::optional<NodeId> sum = sum_with(graph, id, backend))
      add_rows(graph, id, *sum);
    else
      continue;
    ++changed;
  }
  return changed;
}

}  // namespace lathe::engine
