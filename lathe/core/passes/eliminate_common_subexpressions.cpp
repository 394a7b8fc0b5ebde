#include <map>
#include <tuple>

#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"

namespace lathe {
namespace {

// Nodes are pure, so two with the same op, operands and attributes hold the same values. Dropout is
// no exception: its site is an attribute, so equal sites drop the same elements. In topological
// order operands are already merged when their readers are compared.
int eliminate_common_subexpressions(Graph& graph) {
  using Key = std::tuple<std::string, std::vector<Value>, std::string, std::string>;
  std::map<Key, NodeId> seen;
  int removed = 0;
  for (const NodeId id : graph.topological_order()) {
    if (graph.op(id).is_source) continue;
    std::string types;
    for (const Type& type : graph.types(id)) types += to_text(type) + ';';
    const Key key{graph.op(id).name, graph.inputs(id), to_text(graph.attributes(id)), types};
    const auto [first, is_new] = seen.emplace(key, id);
    if (is_new) continue;
    for (std::size_t i = 0; i < graph.types(id).size(); ++i) {
      const auto index = static_cast<std::int32_t>(i);
      graph.replace_all_uses({id, index}, {first->second, index});
    }
    graph.erase(id);
    ++removed;
  }
  return removed;
}

const Register eliminate_common_subexpressions_pass{Pass{
    .name = "eliminate-common-subexpressions",
    .summary = "compute equal expressions once",
    .run = eliminate_common_subexpressions,
    .keeps = {"origin", "profile", "statistics"},
}};

}  // namespace
}  // namespace lathe
