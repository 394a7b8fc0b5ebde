#include <cstring>

#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// pad(x) {pads, mode, value}: x with more elements around it: pads[a] before and pads[a + rank]
// after those of axis a, or fewer where they are negative. They are the value, the nearest element
// ("edge"), or x mirrored without its edge ("reflect") or again from its other end ("wrap").
namespace lathe::ops::pad {
namespace {

const std::vector<std::int64_t>& read_pads(const AttributeReader& attributes, std::size_t rank) {
  const std::vector<std::int64_t>& pads = attributes.integers("pads");
  if (pads.size() != 2 * rank)
    fail("pad: {} pads are no two for each of {} axes", pads.size(), rank);
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  for (const std::int64_t pad : pads)
    if (pad < -kMost || pad > kMost) fail("pad: {} is too much", pad);
  return pads;
}

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  const std::vector<std::int64_t>& pads = read_pads(call.attributes(), x.rank());
  const std::string& mode = call.attributes().text("mode");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    throw unknown_name("mode of padding", mode, {"constant", "edge", "reflect", "wrap"});
  Type result{.dtype = x.dtype, .shape = x.shape};
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    result.shape[axis] += Size(pads[axis]) + Size(pads[axis + x.rank()]);
    if (result.shape[axis].is_constant() && result.shape[axis].constant() < 0)
      fail("pad: axis {} of {} has not so many elements to take away", axis, to_text(x));
  }
  return {result};
}

// Where an index outside takes its element from; nullopt: from nowhere.
std::optional<std::int64_t> source(std::int64_t index, std::int64_t size, std::string_view mode) {
  if (index >= 0 && index < size) return index;
  if (mode == "constant" || size == 0) return std::nullopt;
  if (mode == "edge") return index < 0 ? 0 : size - 1;
  if (mode == "wrap") return ((index % size) + size) % size;
  if (size == 1) return 0;
  const std::int64_t period = 2 * (size - 1);
  const std::int64_t folded = ((index % period) + period) % period;
  return folded < size ? folded : period - folded;
}

// For each element of the result its element of x, or -1.
std::vector<std::int64_t> sources(std::span<const std::int64_t> from,
                                  std::span<const std::int64_t> to,
                                  const AttributeReader& attributes) {
  const std::vector<std::int64_t>& pads = read_pads(attributes, from.size());
  const std::string& mode = attributes.text("mode");
  std::vector<std::int64_t> result(static_cast<std::size_t>(num_elements(to)), 0);
  std::int64_t inner = num_elements(to);
  const std::vector<std::int64_t> strides = row_major_strides(from);
  for (std::size_t axis = 0; axis < from.size() && inner > 0; ++axis) {
    inner /= to[axis];
    for (std::size_t i = 0; i < result.size(); ++i) {
      const std::int64_t index = static_cast<std::int64_t>(i) / inner % to[axis] - pads[axis];
      const std::optional<std::int64_t> place = source(index, from[axis], mode);
      if (!place) result[i] = -1;
      if (result[i] >= 0) result[i] += *place * strides[axis];
    }
  }
  return result;
}

void reference(const KernelCall& call) {
  const Tensor& x = call.input(0);
  Tensor& y = call.outputs[0];
  const auto places = sources(x.dims(), y.dims(), call.attributes);
  // Filled first, then what is there is copied, so that its bits stay as they are.
  write_elements(y, std::vector<double>(places.size(), call.attributes.real("value")));
  const auto size = static_cast<std::size_t>(size_of(y.dtype()));
  std::byte* target = y.mutable_bytes();
  for (const std::int64_t place : places) {
    if (place >= 0) std::memcpy(target, x.bytes() + place * size_of(y.dtype()), size);
    target += size;
  }
}

void gradient_reference(const KernelCall& call) {
  const std::vector<double> dy = read_elements(call.input(0));
  const auto places = sources(call.outputs[0].dims(), call.input(0).dims(), call.attributes);
  std::vector<double> dx(static_cast<std::size_t>(call.outputs[0].num_elements()), 0.0);
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i] >= 0) dx[static_cast<std::size_t>(places[i])] += dy[i];
  write_elements(call.outputs[0], dx);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {derive(graph, node, "gradient_x", "pad_gradient", {gradients[0]}, graph.attributes(node),
                 {operand_type(graph, node, 0)})};
}

std::vector<AttributeSpec> attributes() {
  return {{.name = "pads",
           .default_value = std::vector<std::int64_t>{},
           .summary = "elements before each axis, then those after each",
           .required = true},
          {.name = "mode",
           .default_value = std::string("constant"),
           .summary = "what they are: constant, edge, reflect or wrap"},
          {.name = "value", .default_value = 0.0, .summary = "the constant"}};
}

const Register forward{Op{
    .name = "pad",
    .summary = "x with more elements around it, or fewer",
    .operands = {{.name = "x"}},
    .attributes = attributes(),
    .infer = infer,
    .flops = [](const OpCall&) { return Size(0); },
    .reference = reference,
    .gradient = gradient,
    .examples = {"pad(f32[2,3]) {pads=[0,1,1,2], value=0.5}",
                 "pad(f32[B,4]) {pads=[0,2,0,-1], mode=\"reflect\"}",
                 "pad(i64[3]) {pads=[1,1], mode=\"edge\"}"},
}};

const Register backward{Op{
    .name = "pad_gradient",
    .summary = "the gradient of pad: what lies inside, and what was copied outside added to it",
    .operands = {{.name = "dy"}},
    .attributes = attributes(),
    .infer = [](const OpCall& call) -> std::vector<Type> {
      const Type& type = declared_type("pad_gradient", call);
      read_pads(call.attributes(), type.rank());
      require_rank("pad_gradient", "dy", call.input(0), type.rank());
      return {type};
    },
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = gradient_reference,
    .is_differentiable = false,
    .examples = {"pad_gradient(f32[3,6]) {pads=[0,1,1,2], mode=\"edge\"} : f32[2,3]"},
}};

}  // namespace
}  // namespace lathe::ops::pad
