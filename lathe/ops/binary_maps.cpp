#include <algorithm>
#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/broadcast.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/packing.h"

// Ops on pairs of elements: y[i] = f(a[i], b[i]), with operands broadcast to a common shape.
namespace lathe::ops {
namespace {

struct BinaryMap {
  std::string name;
  std::string summary;
  double (*function)(double, double);
  bool is_commutative;
  bool takes_integers;
};

// NaN wins over any number, whichever operand it comes from.
double minimum(double a, double b) {
  return std::isnan(a) || a < b ? a : b;
}
double maximum(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

std::vector<BinaryMap> binary_maps() {
  return {
      {"add", "a + b", [](double a, double b) { return a + b; }, true, true},
      {"div", "a / b", [](double a, double b) { return a / b; }, false, false},
      {"maximum", "the larger of a and b", maximum, true, true},
      {"minimum", "the smaller of a and b", minimum, true, true},
      {"mul", "a * b", [](double a, double b) { return a * b; }, true, true},
      {"pow", "a to the power b", [](double a, double b) { return std::pow(a, b); }, false, false},
      {"sub", "a - b", [](double a, double b) { return a - b; }, false, true},
  };
}

std::vector<Type> infer(const BinaryMap& map, const OpCall& call) {
  if (!map.takes_integers) require_floating(map.name, call, 0);
  const Type& a = call.input(0);
  const Type& b = call.input(1);
  require_same_dtype(map.name, a, b);
  return {{.dtype = a.dtype, .shape = broadcast_shapes(map.name, a, b)}};
}

void reference(const BinaryMap& map, const KernelCall& call) {
  const std::vector<double> a = read_elements(call.input(0));
  const std::vector<double> b = read_elements(call.input(1));
  const auto a_index = broadcast_indices(call.input(0).dims(), call.outputs[0].dims());
  const auto b_index = broadcast_indices(call.input(1).dims(), call.outputs[0].dims());
  std::vector<double> y(a_index.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = map.function(a[static_cast<std::size_t>(a_index[i])],
                        b[static_cast<std::size_t>(b_index[i])]);
  write_elements(call.outputs[0], y);
}

// An operand that held no tokens but as many axes as the padded one: [1,1,n] loses an axis with it.
// Anything else in its first two axes told rows or positions apart, which packing cannot keep.
Value without_row_axis(Graph& graph, NodeId node, Value operand, std::size_t padded_rank) {
  Type type = graph.type(operand);
  if (type.rank() < padded_rank) return operand;
  if (type.rank() > padded_rank || type.shape[0] != Size(1) || type.shape[1] != Size(1))
    refuse_to_pack(
        graph, node,
        fmt::format("{} is broadcast over rows or positions", to_text(graph.type(operand))));
  type.shape.erase(type.shape.begin());
  return {graph.insert_before(node, {.name = graph.name(node) + "/flat",
                                     .op = "reshape",
                                     .inputs = {operand},
                                     .types = {type}}),
          0};
}

Value pack(Graph& graph, NodeId node, const PackedSequences& sequences) {
  Value a = graph.input(node, 0);
  Value b = graph.input(node, 1);
  const bool a_packed = is_packed(graph.type(a), sequences);
  const bool b_packed = is_packed(graph.type(b), sequences);
  if (a_packed && !b_packed) b = without_row_axis(graph, node, b, graph.type(a).rank() + 1);
  if (b_packed && !a_packed) a = without_row_axis(graph, node, a, graph.type(b).rank() + 1);
  if (a == graph.input(node, 0) && b == graph.input(node, 1)) return repeat_packed(graph, node, {});
  return add_packed(graph, node, {.name = {}, .op = graph.op(node).name, .inputs = {a, b}});
}

Op binary_op(const BinaryMap& map) {
  return {
      .name = map.name,
      .summary = map.summary + ", element by element with broadcasting",
      .operands = {{.name = "a"}, {.name = "b"}},
      .infer = [map](const OpCall& call) { return infer(map, call); },
      .flops = [map](const OpCall& call) { return infer(map, call)[0].num_elements(); },
      .reference = [map](const KernelCall& call) { reference(map, call); },
      .is_commutative = map.is_commutative,
      .pack = pack,
      .examples = {map.name + "(f32[T,4], f32[T,4])", map.name + "(f32[B,L,4], f32[4])",
                   map.name + "(f32[3,1], f32[1,4])", map.name + "(f32[], f32[])"},
  };
}

const std::vector<Register> registrations = [] {
  std::vector<Register> result;
  for (const BinaryMap& map : binary_maps()) result.emplace_back(binary_op(map));
  return result;
}();

}  // namespace
}  // namespace lathe::ops
