#include "lathe/compress/low_rank/low_rank_targets.h"

#include <re2/re2.h>

#include <algorithm>
#include <set>

#include "lathe/compress/lora.h"
#include "lathe/core/parameters.h"
#include "lathe/core/role.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/weight_layout.h"

namespace lathe::compress {
namespace {

// Lookups in parameters, and layers that multiply rows with a matrix, but for those of paths.
std::vector<NodeId> factorisable_nodes(const Graph& graph) {
  const std::vector<NodeId> linears = adaptable_linears(graph);
  const Parameters parameters(graph);
  std::vector<NodeId> nodes;
  for (const NodeId id : graph.topological_order())
    if (std::ranges::find(linears, id) != linears.end() ||
        (is_lookup(graph, id) && parameters.contains(graph.input(id, weight_operand(graph, id)))))
      nodes.push_back(id);
  return nodes;
}

std::vector<NodeId> matching_nodes(const Graph& graph, const std::vector<std::string>& targets) {
  const std::vector<NodeId> nodes = factorisable_nodes(graph);
  std::set<NodeId> chosen;
  for (const std::string& text : targets) {
    const RE2 pattern(text, RE2::Quiet);
    if (!pattern.ok()) fail("targets \"{}\": {}", text, pattern.error());
    bool any = false;
    for (const NodeId id : nodes)
      if (RE2::PartialMatch(graph.name(id), pattern)) {
        chosen.insert(id);
        any = true;
      }
    if (any) continue;
    throw UserError(
        fmt::format("targets \"{}\": no layer or lookup of the model matches it", text),
        nodes.empty() ? "" : fmt::format("they have names such as \"{}\"", graph.name(nodes[0])));
  }
  std::vector<NodeId> result;
  for (const NodeId id : nodes)
    if (chosen.contains(id)) result.push_back(id);
  return result;
}

// The weight of a node with all its readers; fails where it is more than a state that layers and
// lookups read as it is.
LowRankTarget target_of(const Graph& graph, NodeId node) {
  const Value weight = graph.input(node, weight_operand(graph, node));
  if (!graph.is(weight.node, "state"))
    fail("its weight is computed by {}", described(graph, weight.node));
  if (graph.is(node, "matmul") && graph.attribute(node).flag("transpose_a"))
    fail("it multiplies columns of what it reads");
  if (graph.type(weight).dtype != DType::F32 || graph.type(weight).rank() != 2)
    fail("its weight is {}", to_text(graph.type(weight)));
  LowRankTarget target{.state = weight.node, .readers = {}};
  for (const LoraPath& path : find_lora(graph))
    if (graph.input(path.linear, weight_operand(graph, path.linear)) == weight)
      fail("\"{}\" has a LoRA path beside it, which is to be fused first", path.name);
  const std::vector<NodeId> nodes = factorisable_nodes(graph);
  for (const Use& use : graph.uses(weight.node)) {
    const bool is_weight = use.kind == Use::Kind::Operand &&
                           std::ranges::find(nodes, use.user) != nodes.end() &&
                           static_cast<std::size_t>(use.operand) == weight_operand(graph, use.user);
    if (!is_weight)
      fail("its weight \"{}\" is also read by {}", graph.name(weight.node),
           use.kind == Use::Kind::Operand ? described(graph, use.user) : "others");
    target.is_table = target.is_table || is_lookup(graph, use.user);
    if (!target.readers.empty() && rows_axis(graph, use.user) != target.axis)
      fail("its weight \"{}\" is read by rows and by columns", graph.name(weight.node));
    target.axis = rows_axis(graph, use.user);
    target.readers.push_back(use.user);
  }
  return target;
}

}  // namespace

std::size_t weight_operand(const Graph& graph, NodeId reader) {
  const std::optional<std::size_t> table = find_operand(graph, reader, OperandRole::Table);
  return table ? *table : operand_index(graph, reader, OperandRole::Weight);
}
bool is_lookup(const Graph& graph, NodeId reader) {
  return find_operand(graph, reader, OperandRole::Table).has_value();
}
std::int64_t rows_axis(const Graph& graph, NodeId reader) {
  return is_lookup(graph, reader) ? -1 : ops::simplified_axis(2, ops::weight_axis(graph, reader));
}

LowRankTargets find_low_rank_targets(const Graph& graph, const std::vector<std::string>& patterns) {
  LowRankTargets targets;
  for (const NodeId id : matching_nodes(graph, patterns)) {
    try {
      LowRankTarget target = target_of(graph, id);
      if (std::ranges::find(targets.found, target.state, &LowRankTarget::state) ==
          targets.found.end())
        targets.found.push_back(std::move(target));
    } catch (const UserError& error) {
      targets.notes.push_back(
          fmt::format("\"{}\" is not factorised: {}", graph.name(id), error.message()));
    }
  }
  return targets;
}

}  // namespace lathe::compress
