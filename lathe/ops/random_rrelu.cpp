#include "lathe/core/op.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/random_operand.h"

// random_rrelu(y[..,n], x[..,n], random[3], examples[..], positions[..]) {lower, upper, site}: y
// where x is positive, y times a slope drawn for the element elsewhere: rrelu of x as training does
// it where y is x, and its gradient where y is the gradient of the result. The slope is evenly
// spread over 2^16 numbers from `lower` to `upper`, by the bits that dropout would draw
// (dropout_mask.h).
namespace lathe::ops::random_rrelu {
namespace {

std::vector<Type> infer(const OpCall& call) {
  require_floating("random_rrelu", call, 0);
  const Type &y = call.input(0), &x = call.input(1);
  require_rank_at_least("random_rrelu", "x", x, 1);
  if (y.shape != x.shape || y.dtype != x.dtype)
    fail("random_rrelu: y {} and x {} differ", to_text(y), to_text(x));
  require_random("random_rrelu", call.input(2));
  require_places("random_rrelu", call, 3, x);
  require_dropout("random_rrelu", 0, call.attributes().integer("site"));
  return {{.dtype = x.dtype, .shape = x.shape}};
}

void reference(const KernelCall& call) {
  std::vector<double> y = read_elements(call.input(0));
  const std::vector<double> x = read_elements(call.input(1));
  const DropoutStream stream = read_dropout_stream(call.input(2), call.attributes.integer("site"));
  const std::vector<std::int64_t> examples = read_integers(call.input(3));
  const std::vector<std::int64_t> positions = read_integers(call.input(4));
  const double lower = call.attributes.real("lower"), upper = call.attributes.real("upper");
  const auto width = static_cast<std::size_t>(call.input(0).dims().back());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] < 0)) continue;
    const std::size_t row = i / width;
    const auto feature = static_cast<std::uint32_t>(i % width);
    const PhiloxCounter block =
        row_dropout_block(stream, static_cast<std::uint32_t>(examples[row]),
                          static_cast<std::uint32_t>(positions[row]), feature / 8);
    y[i] *= lower + (upper - lower) * (dropout_bits(block, feature % 8) + 0.5) / 65536;
  }
  write_elements(call.outputs[0], y);
}

std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  std::vector<Value> operands = graph.inputs(node);
  operands[0] = gradients[0];
  return {derive(graph, node, "gradient_y", "random_rrelu", std::move(operands),
                 graph.attributes(node)),
          kNone, kNone, kNone, kNone};
}

const Register registration{Op{
    .name = "random_rrelu",
    .summary = "y where x is positive, elsewhere y times a slope chosen by seed, step and place",
    .operands = {{.name = "y"},
                 {.name = "x"},
                 {.name = "random"},
                 {.name = "examples"},
                 {.name = "positions"}},
    .attributes = {{.name = "lower", .default_value = 1.0 / 8, .summary = "the least slope"},
                   {.name = "upper", .default_value = 1.0 / 3, .summary = "the largest slope"},
                   {.name = "site",
                    .default_value = 0,
                    .summary = "which stream of random numbers it draws from"}},
    .infer = infer,
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .reference = reference,
    .gradient = gradient,
    .is_per_token = true,
    .examples = {"random_rrelu(f32[T,12], f32[T,12], i32[3], i32[T], i32[T]) {site=3}",
                 "random_rrelu(f32[B,L,4], f32[B,L,4], i32[3], i32[B,L], i64[B,L])"},
}};

}  // namespace
}  // namespace lathe::ops::random_rrelu
