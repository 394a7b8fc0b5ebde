#include <cmath>

#include "lathe/core/graph.h"
#include "lathe/core/number_format.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/quantized_operands.h"

// quantize(x, scale?, zero?, mask?) {format, axis}: every element becomes the nearest number of the
// format. Values stay floats; what they cost as codes is `decode`'s and the file's matter. A tensor
// is a matrix (channel_matrix.h): scales belong to it all, to its rows, or to runs of them. What
// the mask has a 0 for has no part in scales that the format makes itself: `binary:scaled` has no
// zero, so that a masked weight is masked behind it, and would count as one.
namespace lathe::ops::quantize {
namespace {

constexpr std::size_t kMask = 3;

std::vector<Type> infer(const OpCall& call) {
  const Type& x = call.input(0);
  check_quantized_operands("quantize", call, x, 1);
  const FormatFacts facts = format_of(call.attributes())->facts();
  if (call.has(kMask)) {
    const Type& mask = call.input(kMask);
    if (!facts.takes_mask)
      fail("quantize: {} takes no mask: it makes no scales, or has a zero", facts.text);
    if (mask.dtype != x.dtype || mask.shape != x.shape)
      fail("quantize: mask {} and x {} differ", to_text(mask), to_text(x));
  }
  // Rows of a symbolic number are those of a batch, and each must come out as if it were alone.
  if (!facts.is_row_local && !x.num_elements().is_constant())
    fail("quantize: {} has a scale for several rows, but those of {} are a batch's", facts.text,
         to_text(x));
  return {{.dtype = x.dtype, .shape = x.shape}};
}

void reference(const KernelCall& call) {
  QuantizedMatrix matrix = quantized_matrix(call, call.input(0), 1);
  Tensor mask;
  if (call.has(kMask)) {
    mask = to_matrix(call.input(kMask), call.attributes.integer("axis"));
    matrix.args.mask = mask.data<float>().data();
  }
  // The definition, not the fast way to the same bits.
  const EncodedMatrix encoded = matrix.format->encode(matrix.args);
  Tensor rounded(DType::F32, matrix.x.dims());
  matrix.format->decode(encoded, matrix.args.scales, matrix.args.zeros,
                        rounded.mutable_data<float>().data());
  // What has no code: a format keeps it where it rounds.
  const std::span<float> y = rounded.mutable_data<float>();
  for (std::size_t i = 0; i < y.size(); ++i)
    if (std::isnan(matrix.args.x[i])) y[i] = matrix.args.x[i];
  call.outputs[0] = from_matrix(rounded, call.outputs[0].dims(), call.attributes.integer("axis"));
}

// Straight-through: the staircase counts as its diagonal wherever it does not clip. A scale that is
// a state learns as well (LSQ).
std::vector<Value> gradient(Graph& graph, NodeId id, std::span<const Value> result_gradients) {
  std::vector<Value> gradients = no_gradients(graph, id);
  const std::string text = graph.attribute(id).text("format");
  const FormatFacts facts = parse_format(text)->facts();  // a copy: the format goes
  const Value dy = result_gradients[0];
  if (facts.scale_source == ScaleSource::Given) {
    std::vector<Value> inputs{dy, graph.input(id, 0), {id, 0}};
    for (std::size_t i = 1; i < graph.inputs(id).size(); ++i) inputs.push_back(graph.input(id, i));
    const Value dx = derive(graph, id, "gradient", "learned_step_gradient", std::move(inputs),
                            graph.attributes(id));
    gradients[0] = dx;
    gradients[1] = {dx.node, 1};
  } else if (std::isinf(facts.pass_minimum) && std::isinf(facts.pass_maximum)) {
    gradients[0] = dy;
  } else {
    gradients[0] = derive(graph, id, "gradient_x", "gate_gradient", {dy, graph.input(id, 0)},
                          {{"minimum", facts.pass_minimum}, {"maximum", facts.pass_maximum}});
  }
  return gradients;
}

const Register registration{Op{
    .name = "quantize",
    .summary = "the nearest numbers of a format",
    .operands = {{.name = "x"},
                 {.name = "scale", .optional = true, .role = OperandRole::Scale},
                 {.name = "zero", .optional = true, .role = OperandRole::Zero},
                 {.name = "mask", .optional = true}},
    .attributes = {{.name = "format",
                    .default_value = std::string(),
                    .summary = "the number format, such as \"int:8,channel\"",
                    .required = true},
                   axis_attribute()},
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(4) * call.input(0).num_elements(); },
    .reference = reference,
    .gradient = gradient,
    .is_per_token = true,
    .examples = {"quantize(f32[T,8]) {format=\"fixed:8,4\"}",
                 "quantize(f32[3,64]) {format=\"mxint:8\"}",
                 "quantize(f32[3,8], f32[3]) {format=\"int:4,channel\"}",
                 "quantize(f32[4,2,3,3], f32[4]) {axis=0, format=\"int:4,channel\"}",
                 "quantize(f32[6,4], f32[4,2]) {axis=1, format=\"int:4,group=3\"}",
                 "quantize(f32[B,L,8], f32[], f32[]) {format=\"int:8,asymmetric\"}",
                 "quantize(f32[3,8], none, none, f32[3,8]) {format=\"binary:residual,2\"}"},
}};

}  // namespace
}  // namespace lathe::ops::quantize
