#include "lathe/core/passes/profile.h"

#include <set>

#include "lathe/core/pass.h"
#include "lathe/core/role.h"

namespace lathe {

std::string to_text(const Profile& profile) {
  return fmt::format("flops {} bytes {} parameters {}", profile.flops.text(), profile.bytes.text(),
                     profile.parameters);
}

Profile profile(Graph& graph) {
  Profile total;
  std::set<NodeId> counted;
  for (const NodeId id : graph.topological_order()) {
    if (graph.op(id).is_source) continue;
    Profile cost;
    if (graph.op(id).flops) cost.flops = graph.op(id).flops(graph.call(id));
    for (const Type& type : graph.types(id)) cost.bytes += type.num_bytes();
    for (const Value& value : graph.inputs(id)) {
      if (value.is_none()) continue;
      cost.bytes += graph.type(value).num_bytes();
      if (!graph.is(value.node, "state") || !graph.type(value).num_elements().is_constant())
        continue;
      const std::int64_t elements = graph.type(value).num_elements().constant();
      cost.parameters += elements;
      if (counted.insert(value.node).second) total.parameters += elements;
    }
    total.flops += cost.flops;
    total.bytes += cost.bytes;
    graph.annotation<Profile>(id) = std::move(cost);
  }
  return total;
}

std::int64_t num_parameters(const Graph& graph) {
  std::int64_t count = num_elements(graph, StateRole::Parameter);
  for (const NodeId id : states_of(graph, StateRole::Codes)) {
    Type numbers = graph.types(id)[0];
    for (const NodeId user : graph.users(id))
      if (graph.is(user, "decode")) numbers = graph.types(user)[0];
    count += numbers.num_elements().constant();
  }
  return count;
}

namespace {

// With sizes given (`profile{B=8, L=128}`) the report has numbers, without them polynomials.
PassResult report_profile(Graph& graph, PassContext& context) {
  SymbolValues sizes;
  for (const auto& [name, value] : context.options)
    if (const std::int64_t size = std::get<std::int64_t>(value); size > 0) sizes[name] = size;
  const Profile total = profile(graph);
  const auto shown = [&](const Size& size) {
    for (const std::string& symbol : size.symbols())
      if (!sizes.contains(symbol)) return size.text();
    return fmt::format("{}", size.evaluate(sizes));
  };
  return {0, fmt::format("flops {}\nbytes {}\nparameters {}", shown(total.flops),
                         shown(total.bytes), total.parameters)};
}

const Register profile_pass{Pass{
    .name = "profile",
    .summary = "count floating-point operations, bytes and parameters of every node",
    .run = report_profile,
    .options = {{"B", std::int64_t{0}, "rows of a padded batch"},
                {"L", std::int64_t{0}, "padded length, or the longest packed sequence"},
                {"T", std::int64_t{0}, "tokens of a packed batch"},
                {"S", std::int64_t{0}, "sequences of a packed batch"}},
}};

}  // namespace
}  // namespace lathe
