#include <algorithm>
#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/broadcast.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/packing.h"
#include "lathe/ops/whole.h"

// Ops on pairs of elements: y[i] = f(a[i], b[i]), with operands broadcast to a common shape.
namespace lathe::ops::binary_maps {
namespace {

using GradientRule = std::vector<Value> (*)(Graph&, NodeId, Value dy);

struct BinaryMap {
  std::string name;
  std::string summary;
  double (*function)(double, double);
  Whole (*of_integers)(Whole, Whole);
  bool is_commutative;
  GradientRule gradient;  ///< before sums over broadcast axes
};

template <typename Number>
Number sum(Number a, Number b) {
  return a + b;
}
template <typename Number>
Number difference(Number a, Number b) {
  return a - b;
}
template <typename Number>
Number product(Number a, Number b) {
  return a * b;
}

// NaN, which alone is not itself, wins over any number, whichever operand it comes from.
template <typename Number>
Number minimum(Number a, Number b) {
  return a != a || a < b ? a : b;
}
template <typename Number>
Number maximum(Number a, Number b) {
  return a != a || a > b ? a : b;
}

// Toward zero. The least number has no opposite, and wraps around to itself.
Whole quotient(Whole a, Whole b) {
  if (b.value == 0) fail("{} is divided by 0", a.value);
  return b.value == -1 ? Whole{} - a : Whole{a.value / b.value};
}

// A remainder by 0 is 0, as of whole numbers nothing else can be said.
double remainder(double a, double b) {
  return std::fmod(a, b);
}
Whole remainder(Whole a, Whole b) {
  return b.value == 0 || b.value == -1 ? Whole{} : Whole{a.value % b.value};
}
template <typename Number>
Number floored_remainder(Number a, Number b) {
  if (b == Number{}) return Number{};
  const Number rest = remainder(a, b);
  return rest != Number{} && (rest < Number{}) != (b < Number{}) ? rest + b : rest;
}

// By squares. Of a negative exponent what is left of 1 / a^-b without its fraction.
Whole power(Whole a, Whole b) {
  if (b.value < 0) {
    if (a.value == 0) fail("0 is raised to the power {}", b.value);
    if (a.value != 1 && a.value != -1) return {0};
    return {a.value == 1 || b.value % 2 == 0 ? 1 : -1};
  }
  Whole result{1};
  for (std::uint64_t rest = b.bits(); rest > 0; rest >>= 1) {
    if (rest % 2 == 1) result = result * a;
    a = a * a;
  }
  return result;
}

std::vector<Value> add_gradient(Graph&, NodeId, Value dy) {
  return {dy, dy};
}

std::vector<Value> sub_gradient(Graph& graph, NodeId node, Value dy) {
  return {dy, derive(graph, node, "gradient_b", "neg", {dy})};
}

std::vector<Value> mul_gradient(Graph& graph, NodeId node, Value dy) {
  return {derive(graph, node, "gradient_a", "mul", {dy, graph.input(node, 1)}),
          derive(graph, node, "gradient_b", "mul", {dy, graph.input(node, 0)})};
}

// db = -dy * a / b^2 = -da * y.
std::vector<Value> div_gradient(Graph& graph, NodeId node, Value dy) {
  const Value da = derive(graph, node, "gradient_a", "div", {dy, graph.input(node, 1)});
  const Value product = derive(graph, node, "gradient_a_times_y", "mul", {da, Value{node, 0}});
  return {da, derive(graph, node, "gradient_b", "neg", {product})};
}

// a - n * b for a whole number n, which jumps where the derivative has no value.
std::vector<Value> remainder_gradient(Graph& graph, NodeId node, Value dy) {
  const Value whole =
      derive(graph, node, "whole", "div",
             {derive(graph, node, "gone", "sub", {graph.input(node, 0), Value{node, 0}}),
              graph.input(node, 1)});
  const Value product = derive(graph, node, "gradient_times_whole", "mul", {dy, whole});
  return {dy, derive(graph, node, "gradient_b", "neg", {product})};
}

// Of maps whose derivative is no simple op.
std::vector<Value> looked_up_gradient(Graph& graph, NodeId node, Value dy) {
  std::vector<Value> result;
  for (const std::int64_t operand : {0, 1})
    result.push_back(derive(graph, node,
                            gradient_role(graph, node, static_cast<std::size_t>(operand)),
                            "binary_map_gradient", {dy, graph.input(node, 0), graph.input(node, 1)},
                            {{"function", graph.op(node).name}, {"operand", operand}}));
  return result;
}

std::vector<BinaryMap> binary_maps() {
  return {
      {"add", "a + b", sum, sum, true, add_gradient},
      {"div", "a / b, of whole numbers without the fraction",
       [](double a, double b) { return a / b; }, quotient, false, div_gradient},
      {"fmod", "the remainder of a / b, with the sign of a", remainder, remainder, false,
       remainder_gradient},
      {"maximum", "the larger of a and b", maximum, maximum, true, looked_up_gradient},
      {"minimum", "the smaller of a and b", minimum, minimum, true, looked_up_gradient},
      {"mod", "the remainder of a / b, with the sign of b", floored_remainder, floored_remainder,
       false, remainder_gradient},
      {"mul", "a * b", product, product, true, mul_gradient},
      {"pow", "a to the power b", [](double a, double b) { return std::pow(a, b); }, power, false,
       looked_up_gradient},
      {"sub", "a - b", difference, difference, false, sub_gradient},
  };
}

std::vector<Type> infer(const BinaryMap& map, const OpCall& call) {
  const Type& a = call.input(0);
  const Type& b = call.input(1);
  require_same_dtype(map.name, a, b);
  return {{.dtype = a.dtype, .shape = broadcast_shapes(map.name, a, b)}};
}

template <typename Number>
void map_pairs(const KernelCall& call, Number (*function)(Number, Number)) {
  const std::vector<Number> a = read_numbers<Number>(call.input(0));
  const std::vector<Number> b = read_numbers<Number>(call.input(1));
  const auto a_index = broadcast_indices(call.input(0).dims(), call.outputs[0].dims());
  const auto b_index = broadcast_indices(call.input(1).dims(), call.outputs[0].dims());
  std::vector<Number> y(a_index.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] =
        function(a[static_cast<std::size_t>(a_index[i])], b[static_cast<std::size_t>(b_index[i])]);
  write_numbers(call.outputs[0], y);
}

void reference(const BinaryMap& map, const KernelCall& call) {
  if (is_floating(call.outputs[0].dtype()))
    map_pairs(call, map.function);
  else
    map_pairs(call, map.of_integers);
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
      .gradient =
          [map](Graph& graph, NodeId node, std::span<const Value> gradients) {
            std::vector<Value> result = map.gradient(graph, node, gradients[0]);
            for (std::size_t i = 0; i < 2; ++i)
              result[i] = sum_to_operand(graph, node, i, result[i]);
            return result;
          },
      .is_commutative = map.is_commutative,
      .is_elementwise = true,
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
}  // namespace lathe::ops::binary_maps
