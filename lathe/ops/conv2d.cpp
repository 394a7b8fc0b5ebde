#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/window.h"

// conv2d(x[N,C,H,W], weight[O,C/groups,kh,kw], bias[O]) {strides, pads, dilations, groups}:
//   y[n,o,i,j] = bias[o] + sum over c, p, q of
//       weight[o,c,p,q] * x[n, group * C/groups + c, i*stride - pad + p*dilation, (same for j, q)],
// where group is o / (O/groups) and x is 0 outside.
namespace lathe::ops {
namespace {

Window window_of(const Type& weight, const AttributeReader& attributes) {
  return read_window("conv2d", constant_size("conv2d", weight.axis(2), weight),
                     constant_size("conv2d", weight.axis(3), weight), attributes, true);
}

std::vector<Type> infer(const OpCall& call) {
  require_floating("conv2d", call, 0);
  const Type& x = call.input(0);
  const Type& weight = call.input(1);
  require_rank("conv2d", "x", x, 4);
  require_rank("conv2d", "weight", weight, 4);
  const std::int64_t groups = call.attributes().integer("groups");
  const std::int64_t channels = constant_size("conv2d", x.axis(1), x);
  const std::int64_t filters = constant_size("conv2d", weight.axis(0), weight);
  if (groups < 1 || channels % groups != 0 || filters % groups != 0)
    fail("conv2d: {} channels and {} filters do not divide into {} groups", channels, filters,
         groups);
  if (weight.axis(1) != Size(channels / groups))
    fail("cannot convolve {} with weight {}: {} channels a group and {} differ", to_text(x),
         to_text(weight), channels / groups, weight.axis(1).text());
  if (call.has(2)) require_vector("conv2d", "bias", call.input(2), weight.axis(0));
  return {slide_window("conv2d", x, weight.axis(0), window_of(weight, call.attributes()))};
}

Size flops(const OpCall& call) {
  const Type& weight = call.input(1);
  return Size(2) * infer(call)[0].num_elements() * weight.axis(1) * weight.axis(2) * weight.axis(3);
}

void reference(const KernelCall& call) {
  const Tensor& x = call.input(0);
  const Tensor& weight = call.input(1);
  const std::vector<double> input = read_elements(x);
  const std::vector<double> filter = read_elements(weight);
  const std::vector<double> bias =
      call.has(2) ? read_elements(call.input(2)) : std::vector<double>{};
  const Window window = read_window("conv2d", weight.dim(2), weight.dim(3), call.attributes, true);
  const std::int64_t in_group = weight.dim(1);
  const std::int64_t out_group = weight.dim(0) / call.attributes.integer("groups");
  const std::int64_t height = x.dim(2), width = x.dim(3);

  const auto one_output = [&](std::int64_t n, std::int64_t o, std::int64_t i, std::int64_t j) {
    double sum = bias.empty() ? 0.0 : bias[static_cast<std::size_t>(o)];
    for (std::int64_t c = 0; c < in_group; ++c) {
      const std::int64_t plane = n * x.dim(1) + o / out_group * in_group + c;
      for (std::int64_t p = 0; p < window.kernel[0]; ++p) {
        const std::int64_t row = window.position(0, i, p);
        if (row < 0 || row >= height) continue;
        for (std::int64_t q = 0; q < window.kernel[1]; ++q) {
          const std::int64_t column = window.position(1, j, q);
          if (column < 0 || column >= width) continue;
          const std::int64_t tap =
              ((o * in_group + c) * window.kernel[0] + p) * window.kernel[1] + q;
          sum += filter[static_cast<std::size_t>(tap)] *
                 input[static_cast<std::size_t>((plane * height + row) * width + column)];
        }
      }
    }
    return sum;
  };

  const Tensor& y = call.outputs[0];
  std::vector<double> values;
  for (std::int64_t n = 0; n < y.dim(0); ++n)
    for (std::int64_t o = 0; o < y.dim(1); ++o)
      for (std::int64_t i = 0; i < y.dim(2); ++i)
        for (std::int64_t j = 0; j < y.dim(3); ++j) values.push_back(one_output(n, o, i, j));
  write_elements(call.outputs[0], values);
}

const Register registration{Op{
    .name = "conv2d",
    .summary = "two-dimensional convolution (cross-correlation) of images [N,C,H,W]",
    .operands = {{.name = "x"}, {.name = "weight"}, {.name = "bias", .optional = true}},
    .attributes = {{.name = "strides",
                    .default_value = std::vector<std::int64_t>{1, 1},
                    .summary = "steps down and to the right"},
                   {.name = "pads",
                    .default_value = std::vector<std::int64_t>{0, 0, 0, 0},
                    .summary = "rows or columns of zeros: top, left, bottom, right"},
                   {.name = "dilations",
                    .default_value = std::vector<std::int64_t>{1, 1},
                    .summary = "distances between elements of the window"},
                   {.name = "groups",
                    .default_value = 1,
                    .summary = "channels and filters are divided into this many groups"}},
    .infer = infer,
    .flops = flops,
    .reference = reference,
    .examples = {"conv2d(f32[B,3,5,5], f32[4,3,3,3], f32[4]) {pads=[1,1,1,1]}",
                 "conv2d(f32[B,4,6,5], f32[4,1,3,3]) {groups=4, strides=[2,1]}",
                 "conv2d(f32[2,2,5,5], f32[2,2,2,2], none) {dilations=[2,1]}"},
}};

}  // namespace
}  // namespace lathe::ops
