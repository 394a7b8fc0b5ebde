#include "lathe/compress/low_rank/factor_nodes.h"

#include <algorithm>
#include <optional>
#include <set>

#include "lathe/compress/layers.h"
#include "lathe/compress/lora.h"
#include "lathe/compress/rounded_parameter.h"
#include "lathe/compress/trained_parameters.h"
#include "lathe/core/role.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/weight_layout.h"

namespace lathe::compress {
namespace {

constexpr std::string_view kFactor = "low_rank";

// A matrix [n, m] in the layout of a weight of that axis.
Tensor in_layout(const Tensor& matrix, std::int64_t axis) {
  std::vector<std::int64_t> dims = matrix.dims();
  if (axis > 0) std::swap(dims[0], dims[1]);
  return ops::from_matrix(matrix, dims, axis);
}

Type type_of(const Tensor& tensor) {
  Type type{.dtype = tensor.dtype(), .shape = {}};
  for (const std::int64_t size : tensor.dims()) type.shape.emplace_back(size);
  return type;
}

bool is_plain_parameter(const Graph& graph, Value value) {
  return !value.is_none() && graph.is(value.node, "state") &&
         state_role(graph, value.node) == StateRole::Parameter &&
         graph.type(value).dtype == DType::F32 && graph.type(value).rank() == 2;
}

class FactorFinder {
 public:
  explicit FactorFinder(const Graph& graph) : graph_(graph) {
    for (const NodeId id : adaptable_linears(graph)) layers_.insert(id);
  }

  std::vector<FactorNodes> run() const {
    std::vector<FactorNodes> found;
    for (const NodeId state : states_of(graph_, StateRole::Parameter))
      if (std::optional<FactorNodes> factors = factors_of(state))
        found.push_back(std::move(*factors));
    return found;
  }

 private:
  std::optional<FactorNodes> factors_of(NodeId state) const {
    if (!is_plain_parameter(graph_, {state, 0}) || graph_.uses(state).empty()) return std::nullopt;
    FactorNodes factors{.target = {.state = state, .readers = {}}, .factor = {}, .nodes = {}};
    for (const Use& use : graph_.uses(state)) {
      const NodeId reader = use.user;
      if (use.kind != Use::Kind::Operand || !reads_as_weight(reader, use.operand))
        return std::nullopt;
      const std::optional<NodeId> node =
          is_lookup(graph_, reader) ? node_behind(reader) : node_before(reader);
      if (!node) return std::nullopt;
      const Value weight = graph_.input(*node, weight_operand(graph_, *node));
      if (!is_plain_parameter(graph_, weight) ||
          (!factors.nodes.empty() && weight.node != factors.factor))
        return std::nullopt;
      factors.factor = weight.node;
      factors.nodes.push_back(*node);
      factors.target.readers.push_back(reader);
      factors.target.axis = rows_axis(graph_, reader);
      factors.target.is_table = factors.target.is_table || is_lookup(graph_, reader);
    }
    if (graph_.uses(factors.factor).size() != factors.nodes.size()) return std::nullopt;
    return factors;
  }

  bool reads_as_weight(NodeId reader, std::int32_t operand) const {
    return (is_lookup(graph_, reader) || layers_.contains(reader)) &&
           static_cast<std::size_t>(operand) == weight_operand(graph_, reader);
  }

  bool is_factor_node(NodeId id) const {
    return layers_.contains(id) && !find_operand(graph_, id, OperandRole::Bias);
  }

  // The layer that alone reads what was looked up.
  std::optional<NodeId> node_behind(NodeId lookup) const {
    if (!is_read_once(graph_, lookup)) return std::nullopt;
    const Use& use = graph_.uses(lookup).front();
    const bool is_input =
        operand_role(graph_, use.user, static_cast<std::size_t>(use.operand)) == OperandRole::Input;
    return is_input && is_factor_node(use.user) ? std::optional(use.user) : std::nullopt;
  }

  // The layer whose result this one alone reads.
  std::optional<NodeId> node_before(NodeId layer) const {
    const NodeId node = graph_.input(layer, operand_index(graph_, layer, OperandRole::Input)).node;
    return is_factor_node(node) && is_read_once(graph_, node) ? std::optional(node) : std::nullopt;
  }

  const Graph& graph_;
  std::set<NodeId> layers_;
};

}  // namespace

Tensor multiply_matrices(const Tensor& left, const Tensor& right) {
  const std::int64_t n = left.dim(0), r = left.dim(1), m = right.dim(1);
  Tensor result(DType::F32, {n, m});
  const std::span<const float> l = left.data<float>(), x = right.data<float>();
  const std::span<float> y = result.mutable_data<float>();
  std::vector<double> row(static_cast<std::size_t>(m));
  for (std::int64_t i = 0; i < n; ++i) {
    std::ranges::fill(row, 0.0);
    for (std::int64_t p = 0; p < r; ++p) {
      const double factor = l[static_cast<std::size_t>(i * r + p)];
      const float* const from = x.data() + p * m;
      for (std::size_t j = 0; j < row.size(); ++j) row[j] += factor * static_cast<double>(from[j]);
    }
    for (std::size_t j = 0; j < row.size(); ++j)
      y[static_cast<std::size_t>(i * m) + j] = static_cast<float>(row[j]);
  }
  return result;
}

// Behind a lookup stands a linear, whose weight is R transposed; a layer that shares the table
// reads it the other way round.
std::string insert_factors(Graph& graph, State& state, const LowRankTarget& target,
                           const Tensor& left, const Tensor& right) {
  const std::string name = graph.name(target.state);
  const Tensor factor = target.is_table ? in_layout(right, 1) : in_layout(right, target.axis);
  const NodeId held = graph.insert_after(
      target.state,
      {.name = graph.unique_name(fmt::format("{}.{}.weight", module_of(name), kFactor)),
       .op = "state",
       .inputs = {},
       .attributes = graph.attributes(target.state),
       .types = {type_of(factor)}});
  state[graph.name(held)] = factor;
  state[name] = in_layout(left, target.axis);
  graph.set_types(target.state, {type_of(state.at(name))});
  for (const NodeId reader : target.readers) {
    const std::string label = graph.unique_name(fmt::format("{}/{}", graph.name(reader), kFactor));
    if (is_lookup(graph, reader)) {
      graph.set_types(reader, infer_types(graph, reader));
      const Value wide{
          graph.insert_after(reader,
                             {.name = label, .op = "linear", .inputs = {{reader, 0}, {held, 0}}}),
          0};
      graph.replace_all_uses({reader, 0}, wide);
      graph.set_input(wide.node, 0, {reader, 0});
      continue;
    }
    const std::size_t input = operand_index(graph, reader, OperandRole::Input);
    NodeSpec narrow{.name = label,
                    .op = target.is_table ? "matmul" : graph.op(reader).name,
                    .inputs = {graph.input(reader, input), {held, 0}}};
    if (!target.is_table) narrow.attributes = graph.attributes(reader);
    graph.set_input(reader, input, {graph.insert_before(reader, std::move(narrow)), 0});
  }
  return graph.name(held);
}

std::vector<FactorNodes> find_factors(const Graph& graph) {
  return FactorFinder(graph).run();
}

void remove_factors(Graph& graph, State& state, const FactorNodes& factors) {
  const LowRankTarget& target = factors.target;
  const std::string& name = graph.name(target.state);
  const NodeId first = factors.nodes.front();
  // The weight of a node in front of a layer is R, that of one behind a lookup R transposed.
  const bool is_behind = is_lookup(graph, target.readers.front());
  const Tensor& held = state.at(graph.name(factors.factor));
  const Tensor outputs = ops::to_matrix(held, rows_axis(graph, first));
  const Tensor right = is_behind ? ops::to_matrix(outputs, 1) : outputs;
  const Tensor left = ops::to_matrix(state.at(name), target.axis);
  state[name] = in_layout(multiply_matrices(left, right), target.axis);
  graph.set_types(target.state, {type_of(state.at(name))});
  for (std::size_t i = 0; i < factors.nodes.size(); ++i) {
    const NodeId reader = target.readers[i], node = factors.nodes[i];
    if (is_lookup(graph, reader)) {
      graph.set_types(reader, infer_types(graph, reader));
      graph.replace_all_uses({node, 0}, {reader, 0});
    } else {
      graph.set_input(reader, operand_index(graph, reader, OperandRole::Input),
                      graph.input(node, operand_index(graph, node, OperandRole::Input)));
    }
    graph.erase(node);
  }
  state.erase(graph.name(factors.factor));
  graph.erase(factors.factor);
}

}  // namespace lathe::compress
