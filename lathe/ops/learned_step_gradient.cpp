#include "lathe/core/op.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/quantized_operands.h"

// learned_step_gradient(dy, x, y, scale, zero?) {format, axis} -> (dx, dscale): the gradients
// of y = quantize(x, scale, zero) whose scale s is a parameter (Esser et al. 2020, LSQ):
//   dx = dy where x/s is inside the format's range and half a step around it, else 0
//   ds = sum of dy (y - x)/s inside and of dy y/s outside, over the elements s covers.
// The sum is divided by sqrt(elements of a row a scale covers * largest number), so that a step
// moves a scale about as far, for its size, as it moves a weight.
namespace lathe::ops::learned_step_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  const Type& dy = call.input(0);
  const Type& x = call.input(1);
  const Type& y = call.input(2);
  check_quantized_operands("learned_step_gradient", call, x, 3);
  if (dy.shape != x.shape || y.shape != x.shape || dy.dtype != x.dtype || y.dtype != x.dtype)
    fail("learned_step_gradient: dy {}, x {} and y {} differ", to_text(dy), to_text(x), to_text(y));
  if (!call.has(3)) fail("learned_step_gradient: a scale is needed");
  return {{.dtype = x.dtype, .shape = x.shape}, call.input(3)};
}

void reference(const KernelCall& call) {
  const QuantizedMatrix matrix = quantized_matrix(call, call.input(1), 3);
  const FormatFacts& facts = matrix.format->facts();
  const QuantizeArgs& args = matrix.args;
  const std::int64_t axis = call.attributes.integer("axis");
  const Tensor y_matrix = to_matrix(call.input(2), axis),
               dy_matrix = to_matrix(call.input(0), axis);
  Tensor dx_matrix(DType::F32, matrix.x.dims());
  const std::span<const float> y = y_matrix.data<float>(), dy = dy_matrix.data<float>();
  const std::span<float> dx = dx_matrix.mutable_data<float>();
  const PlaceRange range = unclipped_places(facts);
  std::vector<double> sums(call.outputs[1].data<float>().size());
  for (std::int64_t i = 0; i < args.rows * args.columns; ++i) {
    const auto s = static_cast<std::size_t>(scale_index(facts, args.columns, i));
    const double scale = effective_scale(facts, args.scales[s]);
    const double zero = args.zeros == nullptr ? 0 : args.zeros[s];
    const double place = args.x[i] / scale + zero;
    // A NaN counts as inside: it has to show.
    const bool is_inside = !(place < range.minimum || place > range.maximum);
    const auto at = static_cast<std::size_t>(i);
    dx[at] = is_inside ? dy[at] : 0;
    sums[s] += dy[at] * (is_inside ? y[at] - args.x[i] : y[at]) / scale;
  }
  call.outputs[0] = from_matrix(dx_matrix, call.outputs[0].dims(), axis);
  const double factor = step_gradient_factor(facts, args.columns);
  for (std::size_t s = 0; s < sums.size(); ++s)
    call.outputs[1].mutable_data<float>()[s] = static_cast<float>(sums[s] * factor);
}

const Register registration{Op{
    .name = "learned_step_gradient",
    .summary = "the gradients of quantize with respect to its operand and its scale",
    .operands = {{.name = "dy"},
                 {.name = "x"},
                 {.name = "y"},
                 {.name = "scale", .role = OperandRole::Scale},
                 {.name = "zero", .optional = true, .role = OperandRole::Zero}},
    .attributes = {{.name = "format",
                    .default_value = std::string(),
                    .summary = "the number format",
                    .required = true},
                   axis_attribute()},
    .num_results = 2,
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(8) * call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples =
        {"learned_step_gradient(f32[3,8], f32[3,8], f32[3,8], f32[3]) {format=\"int:4,channel\"}",
         "learned_step_gradient(f32[T,8], f32[T,8], f32[T,8], f32[], f32[]) "
         "{format=\"int:8,asymmetric\"}",
         "learned_step_gradient(f32[6,4], f32[6,4], f32[6,4], f32[4]) "
         "{axis=1, format=\"int:4,channel\"}",
         "learned_step_gradient(f32[2,8], f32[2,8], f32[2,8], f32[2,2]) "
         "{format=\"int:4,group=4\"}"},
}};

}  // namespace
}  // namespace lathe::ops::learned_step_gradient
