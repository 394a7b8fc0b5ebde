#include "lathe/core/pass.h"

namespace lathe {
namespace {

// Erases one node by name, which works only when nobody reads it; otherwise the error names every
// reader, which is how a user finds out what depends on a node.
PassResult erase_node(Graph& graph, PassContext& context) {
  const AttributeReader options(context.options,
                                PassRegistry::instance().find("erase-node")->options);
  graph.erase(graph.at(options.text("name")));
  return 1;
}

const Register erase_node_pass{Pass{
    .name = "erase-node",
    .summary = "erase the node of that name; fails naming its users when it has any",
    .run = erase_node,
    .options = {{"name", std::string(), "the node to erase", true}},
    .is_idempotent = false,
}};

}  // namespace
}  // namespace lathe
