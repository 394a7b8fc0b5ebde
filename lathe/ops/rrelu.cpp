#include "lathe/numerics/integer/slope_register.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// rrelu(x) {lower, upper, site, lanes, first, taps}: x where it is positive, a * x elsewhere. In
// training a is drawn for each element, evenly from `lower` to `upper`; in inference, which is what
// this reference computes, it is their mean. In integers a follows a register that steps once for
// each beat of `lanes` elements, from `first` on (integer_rrelu).
namespace lathe::ops::rrelu {
namespace {

double mean(const AttributeReader& attributes) {
  return (attributes.real("lower") + attributes.real("upper")) / 2;
}

std::vector<Type> infer(const OpCall& call) {
  require_floating("rrelu", call, 0);
  const AttributeReader attributes = call.attributes();
  const double lower = attributes.real("lower"), upper = attributes.real("upper");
  if (!(lower >= 0 && lower <= upper && upper <= 1))
    fail("rrelu: slopes from {} to {}: expected 0 <= lower <= upper <= 1", lower, upper);
  return {{.dtype = call.input(0).dtype, .shape = call.input(0).shape}};
}

void reference(const KernelCall& call) {
  std::vector<double> values = read_elements(call.input(0));
  const double slope = mean(call.attributes);
  for (double& value : values)
    if (value < 0) value *= slope;
  write_elements(call.outputs[0], values);
}

// Of what it computes: a graph to be trained has random_rrelu in its place.
std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {
      derive(graph, node, "gradient_x", "map_gradient", {gradients[0], graph.input(node, 0)},
             {{"function", std::string("leaky_relu")}, {"slope", mean(graph.attribute(node))}})};
}

const Register registration{Op{
    .name = "rrelu",
    .summary = "x where it is positive, elsewhere x times a slope that is drawn in training",
    .operands = {{.name = "x"}},
    .attributes = {{.name = "lower", .default_value = 1.0 / 8, .summary = "the least slope"},
                   {.name = "upper", .default_value = 1.0 / 3, .summary = "the largest slope"},
                   {.name = "site",
                    .default_value = 0,
                    .summary = "which stream of random numbers it draws from"},
                   {.name = "lanes",
                    .default_value = 4,
                    .summary = "in integers: elements of a beat, which share a slope"},
                   {.name = "first",
                    .default_value = numerics::SlopeRegister::kFirst,
                    .summary = "in integers: where the register starts, 1 to 255"},
                   {.name = "taps",
                    .default_value = numerics::SlopeRegister::kTaps,
                    .summary = "in integers: the bits of the register whose parity is shifted in"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = reference,
    .gradient = gradient,
    .is_elementwise = true,
    .is_per_token = true,
    .examples = {"rrelu(f32[T,4])", "rrelu(f32[2,3]) {lower=0.1, upper=0.2, site=3}"},
}};

}  // namespace
}  // namespace lathe::ops::rrelu
