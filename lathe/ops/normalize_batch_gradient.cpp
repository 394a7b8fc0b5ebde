#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/axes.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// normalize_batch_gradient(dy, x[N,C,..], weight[C], mean[C], variance[C], dmean, dvariance) {eps}:
// the gradients of the operands of normalize_batch. For each channel of n elements, with
// s = 1 / sqrt(variance * (n - 1) / n + eps) and h = (x - mean) * s:
//   dweight = sum of dy * h,  dbias = sum of dy,
//   dx = s * weight * (dy - dbias / n - h * dweight / n) + dmean / n
//        + 2 * (x - mean) * dvariance / (n - 1),
// without the last two terms where no loss depends on the statistics.
namespace lathe::ops::normalize_batch_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("normalize_batch_gradient", call, 0);
  const Type& dy = call.input(0);
  const Type& x = call.input(1);
  require_rank_at_least("normalize_batch_gradient", "x", x, 2);
  if (dy.shape != x.shape)
    fail("normalize_batch_gradient: dy {} and x {} differ in shape", to_text(dy), to_text(x));
  const char* const names[] = {"weight", "mean", "variance", "dmean", "dvariance"};
  for (std::size_t i = 0; i < 5; ++i)
    if (call.has(i + 2))
      require_vector("normalize_batch_gradient", names[i], call.input(i + 2), x.axis(1));
  const Type channels{.dtype = call.input(2).dtype, .shape = {x.axis(1)}};
  return {{.dtype = x.dtype, .shape = x.shape}, channels, channels};
}

void reference(const KernelCall& call) {
  std::vector<double> dx = read_elements(call.input(0));
  const std::vector<double> x = read_elements(call.input(1));
  const std::vector<double> weight = read_elements(call.input(2));
  const std::vector<double> mean = read_elements(call.input(3));
  const std::vector<double> variance = read_elements(call.input(4));
  const std::size_t channels = weight.size();
  const std::vector<double> nothing(channels, 0.0);
  const std::vector<double> dmean = call.has(5) ? read_elements(call.input(5)) : nothing;
  const std::vector<double> dvariance = call.has(6) ? read_elements(call.input(6)) : nothing;
  const AxisSplit split = split_around(call.input(1).dims(), 1);
  const auto count = static_cast<double>(split.outer * split.inner);
  std::vector<double> scale(channels), dweight(channels, 0.0), dbias(channels, 0.0);
  for (std::size_t c = 0; c < channels; ++c)
    scale[c] = 1.0 / std::sqrt(variance[c] * (count - 1) / count + call.attributes.real("eps"));
  const auto channel_of = [&](std::size_t i) {
    return i / static_cast<std::size_t>(split.inner) % channels;
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel_of(i);
    dweight[c] += dx[i] * (x[i] - mean[c]) * scale[c];
    dbias[c] += dx[i];
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel_of(i);
    const double distance = x[i] - mean[c];
    dx[i] = scale[c] * weight[c] *
                (dx[i] - dbias[c] / count - distance * scale[c] * dweight[c] / count) +
            dmean[c] / count + 2 * distance * dvariance[c] / (count - 1);
  }
  write_elements(call.outputs[0], dx);
  write_elements(call.outputs[1], dweight);
  write_elements(call.outputs[2], dbias);
}

const Register registration{Op{
    .name = "normalize_batch_gradient",
    .summary = "the gradients of normalize_batch with respect to x, weight and bias",
    .operands = {{.name = "dy"},
                 {.name = "x"},
                 {.name = "weight"},
                 {.name = "mean"},
                 {.name = "variance"},
                 {.name = "dmean", .optional = true},
                 {.name = "dvariance", .optional = true}},
    .attributes = {{.name = "eps", .default_value = 1e-5, .summary = "added to the variance"}},
    .num_results = 3,
    .infer = infer,
    // Four for the two sums, five for dx.
    .flops = [](const OpCall& call) { return Size(9) * call.input(0).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"normalize_batch_gradient(f32[B,3,2,2], f32[B,3,2,2], f32[3], f32[3], f32[3])",
                 "normalize_batch_gradient(f32[5,2], f32[5,2], f32[2], f32[2], f32[2], f32[2], "
                 "f32[2])"},
}};

}  // namespace
}  // namespace lathe::ops::normalize_batch_gradient
