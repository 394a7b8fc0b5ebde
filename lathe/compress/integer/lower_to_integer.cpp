#include "lathe/compress/integer/lower_to_integer.h"

#include "lathe/compress/integer/integer_lowering.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/core/pass.h"
#include "lathe/core/select_outputs.h"
#include "lathe/engine/integer_products.h"

namespace lathe::compress {
namespace {

// All outputs but single numbers: those are losses, and integers are not trained.
std::vector<std::string> kept_outputs(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& [name, value] : graph.outputs())
    if (graph.type(value).rank() > 0) names.push_back(name);
  return names;
}

// Weights become codes first, which the products read.
int use_products(Graph& graph, State& state) {
  pack_weights(graph, state);
  const int changed = engine::use_integer_products(graph);
  run_pass("remove-dead-nodes", graph);
  return changed;
}

PassResult lower_to_integer_pass(Graph& graph, PassContext& context) {
  const std::string dialect = std::get<std::string>(
      context.options.contains("dialect") ? context.options.at("dialect") : std::string("full"));
  if (dialect == "products") return use_products(graph, *context.state);
  if (dialect != "full") throw unknown_name("dialect", dialect, {"full", "products"});
  if (is_integer(graph)) return 0;
  lower_to_integer(graph, *context.state);
  return static_cast<int>(graph.num_nodes());
}

const Register registration{Pass{
    .name = "lower-to-integer",
    .summary = "make a quantized graph one of integers",
    .run = lower_to_integer_pass,
    .options = {{.name = "dialect",
                 .default_value = std::string("full"),
                 .summary = "\"full\": everything between inputs and outputs; \"products\": "
                            "linears and attention of rounded numbers, the rest stays float"}},
    .needs_state = true,
}};

}  // namespace

bool is_integer(const Graph& graph) {
  return !graph.nodes_of("from_integer").empty();
}

void lower_to_integer(Graph& graph, State& state) {
  Graph quantized = select_outputs(graph, kept_outputs(graph));
  State values = state;
  run_pass("remove-dropout", quantized);
  unpack_weights(quantized, values);
  run_pass("remove-dead-nodes", quantized);
  IntegerLowering lowering(quantized, values);
  lowering.run();
  Graph integer = lowering.take_graph();
  run_pass("remove-dead-nodes", integer);
  verify(integer);
  State integers = lowering.take_state();
  std::erase_if(integers, [&](const auto& item) { return !integer.find(item.first); });
  graph = std::move(integer);
  state = std::move(integers);
}

}  // namespace lathe::compress
