#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/unary_maps.h"

// map_gradient(dy, x) {function, approximate, slope}: dy * f'(x) for the unary map f of that name.
// One op for all of them: backends have one loop to write, and fuse it as they fuse the maps.
namespace lathe::ops::map_gradient {
namespace {

const UnaryMap& map_of(const AttributeReader& attributes) {
  const std::string& name = attributes.text("function");
  std::vector<std::string> known;
  for (const UnaryMap& map : unary_maps()) {
    if (map.name == name) return map;
    known.push_back(map.name);
  }
  throw unknown_name("function", name, known);
}

std::vector<Type> infer(const OpCall& call) {
  require_floating("map_gradient", call, 0);
  const Type& dy = call.input(0);
  const Type& x = call.input(1);
  require_same_dtype("multiply", dy, x);
  if (dy.shape != x.shape)
    fail("map_gradient: dy {} and x {} differ in shape", to_text(dy), to_text(x));
  const UnaryMap& map = map_of(call.attributes());
  if (map.check_attributes != nullptr) map.check_attributes(call.attributes());
  return {{.dtype = x.dtype, .shape = x.shape}};
}

void reference(const KernelCall& call) {
  std::vector<double> dx = read_elements(call.input(0));
  const std::vector<double> x = read_elements(call.input(1));
  const UnaryMap& map = map_of(call.attributes);
  for (std::size_t i = 0; i < x.size(); ++i) dx[i] *= map.derivative(x[i], call.attributes);
  write_elements(call.outputs[0], dx);
}

const Register registration{Op{
    .name = "map_gradient",
    .summary = "dy times the derivative of a unary map at x",
    .operands = {{.name = "dy"}, {.name = "x"}},
    .attributes = {{.name = "function",
                    .default_value = std::string("gelu"),
                    .summary = "the name of the map",
                    .required = true},
                   {.name = "approximate",
                    .default_value = std::string("none"),
                    .summary = "of gelu: \"none\" by erf, or \"tanh\" by its approximation"},
                   {.name = "slope",
                    .default_value = 0.01,
                    .summary = "of leaky_relu: the slope below zero"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(2) * call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .is_per_token = true,
    .examples = {"map_gradient(f32[T,4], f32[T,4]) {function=\"gelu\"}",
                 "map_gradient(f32[2,3], f32[2,3]) {function=\"gelu\", approximate=\"tanh\"}",
                 "map_gradient(f32[B,L,4], f32[B,L,4]) {function=\"leaky_relu\", slope=0.1}"},
}};

}  // namespace
}  // namespace lathe::ops::map_gradient
