#include <algorithm>
#include <cmath>

#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"

// cross_entropy(logits[..,c], labels[..]) {ignore_index}: two numbers,
//   sum   = sum over rows of log(sum of exp(logits)) - logits[label],
//   count = number of rows,
// both over the rows whose label is not ignore_index. The mean loss is their quotient, which is
// taken once for a whole step, so that batches split over devices or accumulated give the same
// number.
namespace lathe::ops::cross_entropy {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("cross_entropy", call, 0);
  const Type& logits = call.input(0);
  const Type& labels = call.input(1);
  require_rank_at_least("cross_entropy", "logits", logits, 1);
  require_integer("cross_entropy", "labels", labels);
  const Shape rows(logits.shape.begin(), logits.shape.end() - 1);
  if (labels.shape != rows)
    fail("cross_entropy: labels {} do not fit logits {}: expected shape {}", to_text(labels),
         to_text(logits), to_text(rows));
  // Sums over many rows need more than half precision.
  const Type scalar{.dtype = logits.dtype == DType::F64 ? DType::F64 : DType::F32, .shape = {}};
  return {scalar, scalar};
}

// Maximum, difference, exponential and sum.
Size flops(const OpCall& call) {
  return Size(4) * call.input(0).num_elements();
}

void reference(const KernelCall& call) {
  const std::vector<double> logits = read_elements(call.input(0));
  const std::vector<std::int64_t> labels = read_integers(call.input(1));
  const std::int64_t ignored = call.attributes.integer("ignore_index");
  const std::int64_t classes = call.input(0).dims().back();
  double sum = 0;
  double count = 0;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const std::int64_t label = labels[row];
    if (label == ignored) continue;
    if (label < 0 || label >= classes)
      fail("label {} at position {} is outside the {} classes", label, row, classes);
    const std::span<const double> x(logits.data() + row * static_cast<std::size_t>(classes),
                                    static_cast<std::size_t>(classes));
    const double highest = *std::max_element(x.begin(), x.end());
    double exponentials = 0;
    for (const double value : x) exponentials += std::exp(value - highest);
    sum += std::log(exponentials) + highest - x[static_cast<std::size_t>(label)];
    count += 1;
  }
  write_elements(call.outputs[0], std::span(&sum, 1));
  write_elements(call.outputs[1], std::span(&count, 1));
}

// The count does not depend on the logits.
std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  if (gradients[0].is_none()) return no_gradients(graph, node);
  return {
      derive(graph, node, "gradient_logits", "cross_entropy_gradient",
             {gradients[0], graph.input(node, 0), graph.input(node, 1)}, graph.attributes(node)),
      kNone};
}

const Register registration{Op{
    .name = "cross_entropy",
    .summary = "the summed negative log-probability of the labels, and how many there are",
    .operands = {{.name = "logits"}, {.name = "labels"}},
    .attributes = {{.name = "ignore_index",
                    .default_value = -100,
                    .summary = "rows with this label do not count"}},
    .num_results = 2,
    .infer = infer,
    .flops = flops,
    .reference = reference,
    .gradient = gradient,
    .is_per_token = true,
    .examples = {"cross_entropy(f32[B,3], i64[B])", "cross_entropy(f32[T,5], i32[T])",
                 "cross_entropy(f32[B,L,5], i64[B,L]) {ignore_index=0}"},
}};

}  // namespace
}  // namespace lathe::ops::cross_entropy
