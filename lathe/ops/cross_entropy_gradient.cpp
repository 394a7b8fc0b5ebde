#include <algorithm>
#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/underflow.h"

// cross_entropy_gradient(dsum, logits[..,c], labels[..]) {ignore_index}: the gradient of the summed
// loss, dsum * (softmax(logits) - 1 at the label); 0 in rows that do not count. What is below
// 2^-100 apart from the label is 0.
namespace lathe::ops::cross_entropy_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("cross_entropy_gradient", call, 1);
  require_rank("cross_entropy_gradient", "dsum", call.input(0), 0);
  const Type& logits = call.input(1);
  const Type& labels = call.input(2);
  require_rank_at_least("cross_entropy_gradient", "logits", logits, 1);
  require_integer("cross_entropy_gradient", "labels", labels);
  if (labels.shape != Shape(logits.shape.begin(), logits.shape.end() - 1))
    fail("cross_entropy_gradient: labels {} do not fit logits {}", to_text(labels),
         to_text(logits));
  return {{.dtype = logits.dtype, .shape = logits.shape}};
}

void reference(const KernelCall& call) {
  const double dsum = call.input(0).at(0);
  std::vector<double> values = read_elements(call.input(1));
  const std::vector<std::int64_t> labels = read_integers(call.input(2));
  const std::int64_t ignored = call.attributes.integer("ignore_index");
  const std::int64_t classes = call.input(1).dims().back();
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const std::span<double> x(values.data() + row * static_cast<std::size_t>(classes),
                              static_cast<std::size_t>(classes));
    const std::int64_t label = labels[row];
    if (label == ignored) {
      std::fill(x.begin(), x.end(), 0.0);
      continue;
    }
    if (label < 0 || label >= classes)
      fail("label {} at position {} is outside the {} classes", label, row, classes);
    const double highest = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (double& value : x) sum += value = std::exp(value - highest);
    for (double& value : x) value = unless_below(kLeastScoreGradient, value * (dsum / sum));
    x[static_cast<std::size_t>(label)] -= dsum;
  }
  write_elements(call.outputs[0], values);
}

const Register registration{Op{
    .name = "cross_entropy_gradient",
    .summary = "the gradient of the summed cross-entropy with respect to the logits",
    .operands = {{.name = "dsum"}, {.name = "logits"}, {.name = "labels"}},
    .attributes = {{.name = "ignore_index",
                    .default_value = -100,
                    .summary = "rows with this label do not count"}},
    .infer = infer,
    // Maximum, difference, exponential, sum and scale.
    .flops = [](const OpCall& call) { return Size(5) * call.input(1).num_elements(); },
    .reference = reference,
    .is_differentiable = false,
    .examples = {"cross_entropy_gradient(f32[], f32[B,3], i64[B])",
                 "cross_entropy_gradient(f32[], f32[T,5], i32[T]) {ignore_index=0}"},
}};

}  // namespace
}  // namespace lathe::ops::cross_entropy_gradient
