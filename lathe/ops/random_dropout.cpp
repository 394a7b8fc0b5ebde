#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/random_operand.h"

// random_dropout(x[..,n], random[3], examples[..], positions[..]) {rate, site}: dropout as training
// does it. Which elements of a row are dropped follows from the dataset index of its example and
// its position there, as dropout_mask.h says.
namespace lathe::ops::random_dropout {
namespace {

// Features are counted in blocks of 8, with 16 bits for the number of the block.
constexpr std::int64_t kMostFeatures = 8 * 65536;

std::vector<Type> infer(const OpCall& call) {
  require_floating("random_dropout", call, 0);
  const Type& x = call.input(0);
  require_rank_at_least("random_dropout", "x", x, 1);
  require_random("random_dropout", call.input(1));
  require_places("random_dropout", call, 2, x);
  if (constant_size("random_dropout", x.axis(-1), x) > kMostFeatures)
    fail("random_dropout takes {} features at most, not {}", kMostFeatures, to_text(x));
  require_dropout("random_dropout", call.attributes().real("rate"),
                  call.attributes().integer("site"));
  return {{.dtype = x.dtype, .shape = x.shape}};
}

void reference(const KernelCall& call) {
  std::vector<double> values = read_elements(call.input(0));
  const DropoutStream stream = read_dropout_stream(call.input(1), call.attributes.integer("site"));
  const std::vector<std::int64_t> examples = read_integers(call.input(2));
  const std::vector<std::int64_t> positions = read_integers(call.input(3));
  const std::uint32_t threshold = dropout_threshold(call.attributes.real("rate"));
  const auto width = static_cast<std::size_t>(call.input(0).dims().back());
  for (std::size_t row = 0; row < examples.size(); ++row)
    for (std::size_t f = 0; f < width; ++f)
      values[row * width + f] *= row_dropout_factor(
          stream, threshold, static_cast<std::uint32_t>(examples[row]),
          static_cast<std::uint32_t>(positions[row]), static_cast<std::uint32_t>(f));
  write_elements(call.outputs[0], values);
}

// The same elements are dropped of the gradient, and the others scaled alike.
std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  return {derive(graph, node, "gradient_x", "random_dropout",
                 {gradients[0], graph.input(node, 1), graph.input(node, 2), graph.input(node, 3)},
                 graph.attributes(node)),
          kNone, kNone, kNone};
}

const Register registration{Op{
    .name = "random_dropout",
    .summary = "zero a share of the elements, chosen by seed, step, example and place",
    .operands = {{.name = "x"}, {.name = "random"}, {.name = "examples"}, {.name = "positions"}},
    .attributes = {{.name = "rate", .default_value = 0.0, .summary = "share of elements dropped"},
                   {.name = "site",
                    .default_value = 0,
                    .summary = "which stream of random numbers it draws from"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = reference,
    .gradient = gradient,
    .dropout_attribute = "rate",
    .is_per_token = true,
    .examples = {"random_dropout(f32[T,12], i32[3], i32[T], i32[T]) {rate=0.25, site=3}",
                 "random_dropout(f32[B,L,4], i32[3], i32[B,L], i64[B,L]) {rate=0.5}"},
}};

}  // namespace
}  // namespace lathe::ops::random_dropout
