#include "lathe/engine/sparse_gradients.h"

#include <array>

#include "lathe/engine/cpu/step.h"
#include "lathe/engine/fusion.h"

namespace lathe::engine {
namespace {

const Type kCount{DType::I32, {}};

const Register embedding_gradient_rows{Op{
    .name = "embedding_gradient_rows",
    .summary = "the rows of embedding_gradient that are not zero, in the table's order; for each "
               "row of the table where it is among them, or -1; and how many there are",
    .operands = {{"dy"}, {"ids"}},
    .attributes = {{"rows", 0, "number of rows of the table", true}},
    .num_results = 3,
    .infer =
        [](const OpCall& call) {
          const Type& dy = call.input(0);
          const Size rows(call.attributes().integer("rows"));
          return std::vector<Type>{
              {dy.dtype, {call.input(1).num_elements(), dy.axis(-1)}},
              {DType::I32, {rows}},
              kCount,
          };
        },
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .is_differentiable = false,
}};

const Register sum_squares_of_rows{Op{
    .name = "sum_squares_of_rows",
    .summary = "sum_squares of the first `used` rows",
    .operands = {{"rows"}, {"used"}},
    .infer =
        [](const OpCall&) {
          return std::vector<Type>{{DType::F32, {}}};
        },
    .is_differentiable = false,
}};

const Register adamw_of_rows{Op{
    .name = "adamw_of_rows",
    .summary = "adamw with a gradient of embedding_gradient_rows",
    .operands =
        {{"param"}, {"rows"}, {"m"}, {"v"}, {"learning_rate"}, {"scale"}, {"random"}, {"places"}},
    .attributes = {{"beta1", 0.9, "how slowly m forgets"},
                   {"beta2", 0.999, "how slowly v forgets"},
                   {"eps", 1e-8, "added to the denominator"},
                   {"weight_decay", 0.0, "share of the parameter a step of rate 1 takes away"}},
    .num_results = 3,
    .infer =
        [](const OpCall& call) {
          return std::vector<Type>{call.input(0), call.input(2), call.input(3)};
        },
    .flops = [](const OpCall& call) { return Size(14) * call.input(0).num_elements(); },
    .is_differentiable = false,
}};

const Register sgd_of_rows{Op{
    .name = "sgd_of_rows",
    .summary = "sgd with a gradient of embedding_gradient_rows",
    .operands = {{"param"}, {"rows"}, {"velocity"}, {"learning_rate"}, {"scale"}, {"places"}},
    .attributes = {{"momentum", 0.0, "share of the velocity that a step keeps"},
                   {"weight_decay", 0.0, "share of the parameter added to its gradient"}},
    .num_results = 2,
    .infer =
        [](const OpCall& call) {
          return std::vector<Type>{call.input(0), call.input(2)};
        },
    .flops = [](const OpCall& call) { return Size(7) * call.input(0).num_elements(); },
    .is_differentiable = false,
}};

const Register add_embedding_gradient{Op{
    .name = "add_embedding_gradient",
    .summary = "base + embedding_gradient(dy, ids)",
    .operands = {{"dy"}, {"ids"}, {"base"}},
    .infer = [](const OpCall& call) { return std::vector<Type>{call.input(2)}; },
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .is_differentiable = false,
}};

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

bool has_kernel(const Graph& graph, NodeId id) {
  const CpuKernel* kernel = Registry<CpuKernel>::instance().find(graph.op(id).name);
  return kernel != nullptr && kernel->make(graph, id) != nullptr;
}

bool can_be_rows(const Graph& graph, NodeId id) {
  if (!has_kernel(graph, id)) return false;
  for (const Use& use : graph.uses(id)) {
    if (use.kind != Use::Kind::Operand || !has_kernel(graph, use.user)) return false;
    const RowsReader* reader = find_reader(graph, use.user);
    if (reader == nullptr || use.operand != reader->gradient) return false;
  }
  return true;
}

void replace(Graph& graph, NodeId from, NodeId to) {
  graph.annotation<Origin>(to).nodes = {graph.name(from)};
  for (std::size_t i = 0; i < graph.types(from).size(); ++i)
    graph.replace_all_uses({from, static_cast<std::int32_t>(i)},
                           {to, static_cast<std::int32_t>(i)});
  graph.erase(from);
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
    replace(graph, user,
            graph.insert_before(user, {.name = graph.name(user) + "/rows",
                                       .op = std::string(reader.of_rows),
                                       .inputs = std::move(inputs),
                                       .attributes = graph.attributes(user)}));
  }
  graph.erase(id);
}

// The one reader of a gradient, if that is an addition to something of the same shape.
std::optional<NodeId> sum_with(const Graph& graph, NodeId id) {
  if (graph.uses(id).size() != 1 || !has_kernel(graph, id)) return std::nullopt;
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
  replace(graph, sum, added);
  graph.annotation<Origin>(added).nodes = origins;
  graph.erase(id);
}

}  // namespace

int make_embedding_gradients_sparse(Graph& graph) {
  int changed = 0;
  for (const NodeId id : graph.nodes_of("embedding_gradient")) {
    if (graph.attribute(id).integer("rows") < kFewestRows) continue;
    if (can_be_rows(graph, id))
      make_rows(graph, id);
    else if (const std::optional<NodeId> sum = sum_with(graph, id))
      add_rows(graph, id, *sum);
    else
      continue;
    ++changed;
  }
  return changed;
}

}  // namespace lathe::engine
