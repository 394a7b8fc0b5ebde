#include "lathe/core/op.h"
#include "lathe/ops/broadcast.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/gradient_nodes.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/packing.h"
#include "lathe/ops/weight_layout.h"
#include "lathe/ops/whole.h"

// matmul(a[..,m,k], b[..,k,n]): the product of the matrices in the last two axes; leading axes are
// broadcast. transpose_a reads a as [..,k,m], transpose_b reads b as [..,n,k]. Whole numbers are
// multiplied exactly, and wrap around as their sums do elsewhere.
namespace lathe::ops::matmul {
namespace {

struct Sizes {
  Size m, k, n;
};

Sizes matrix_sizes(const OpCall& call) {
  const Type& a = call.input(0);
  const Type& b = call.input(1);
  require_rank_at_least("matmul", "a", a, 2);
  require_rank_at_least("matmul", "b", b, 2);
  const bool flip_a = call.attributes().flag("transpose_a");
  const bool flip_b = call.attributes().flag("transpose_b");
  const Size& inner_a = a.axis(flip_a ? -2 : -1);
  const Size& inner_b = b.axis(flip_b ? -1 : -2);
  if (inner_a != inner_b)
    fail("cannot multiply {}{} by {}{}: inner sizes {} and {} differ", flip_a ? "transposed " : "",
         to_text(a), flip_b ? "transposed " : "", to_text(b), inner_a.text(), inner_b.text());
  return {a.axis(flip_a ? -1 : -2), inner_a, b.axis(flip_b ? -2 : -1)};
}

std::vector<Type> infer(const OpCall& call) {
  const Type& a = call.input(0);
  const Type& b = call.input(1);
  require_same_dtype("multiply", a, b);
  if (a.dtype == DType::Bool) fail("matmul works on numbers, not {}", to_text(a));
  const Sizes sizes = matrix_sizes(call);
  Type result{.dtype = a.dtype,
              .shape = broadcast_shapes("multiply", Shape(a.shape.begin(), a.shape.end() - 2),
                                        Shape(b.shape.begin(), b.shape.end() - 2), a, b)};
  result.shape.push_back(sizes.m);
  result.shape.push_back(sizes.n);
  return {result};
}

Size flops(const OpCall& call) {
  const Sizes sizes = matrix_sizes(call);
  return Size(2) * infer(call)[0].num_elements() * sizes.k;
}

template <typename Number>
void multiply(const KernelCall& call) {
  const bool flip_a = call.attributes.flag("transpose_a");
  const bool flip_b = call.attributes.flag("transpose_b");
  const std::vector<Number> a = read_numbers<Number>(call.input(0));
  const std::vector<Number> b = read_numbers<Number>(call.input(1));
  const std::span<const std::int64_t> a_dims = call.input(0).dims();
  const std::span<const std::int64_t> b_dims = call.input(1).dims();
  const std::span<const std::int64_t> y_dims = call.outputs[0].dims();
  const std::int64_t m = y_dims[y_dims.size() - 2];
  const std::int64_t n = y_dims[y_dims.size() - 1];
  const std::int64_t k = a_dims[a_dims.size() - (flip_a ? 2 : 1)];
  const std::span<const std::int64_t> batch = y_dims.first(y_dims.size() - 2);
  const auto a_matrix = broadcast_indices(a_dims.first(a_dims.size() - 2), batch);
  const auto b_matrix = broadcast_indices(b_dims.first(b_dims.size() - 2), batch);
  std::vector<Number> y;
  y.reserve(static_cast<std::size_t>(call.outputs[0].num_elements()));
  for (std::size_t matrix = 0; matrix < a_matrix.size(); ++matrix) {
    const Number* left = a.data() + a_matrix[matrix] * m * k;
    const Number* right = b.data() + b_matrix[matrix] * k * n;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        Number sum{};
        for (std::int64_t p = 0; p < k; ++p)
          sum = sum + left[flip_a ? p * m + i : i * k + p] * right[flip_b ? j * k + p : p * n + j];
        y.push_back(sum);
      }
    }
  }
  write_numbers(call.outputs[0], y);
}

void reference(const KernelCall& call) {
  with_numbers_of(call.input(0).dtype(), [&](auto zero) { multiply<decltype(zero)>(call); });
}

// Tokens times one matrix is per token; anything else (scores of queries and keys, sums over
// tokens) mixes them.
Value pack(Graph& graph, NodeId node, const PackedSequences& sequences) {
  const Type& a = graph.type(graph.input(node, 0));
  const Type& b = graph.type(graph.input(node, 1));
  const bool a_packed = is_packed(a, sequences);
  if (is_packed(b, sequences) ||
      (a_packed && (b.rank() != 2 || graph.attribute(node).flag("transpose_a"))))
    refuse_to_pack(
        graph, node,
        fmt::format("{} by {} mixes tokens of different positions", to_text(a), to_text(b)));
  return repeat_packed(graph, node, graph.attributes(node));
}

// With A and B as read (transposed or not): dA = dY B^T and dB = A^T dY; an operand that is read
// transposed gets the transpose of that, which is the product of transposes in the other order.
std::vector<Value> gradient(Graph& graph, NodeId node, std::span<const Value> gradients) {
  const Value dy = gradients[0];
  const Value a = graph.input(node, 0);
  const Value b = graph.input(node, 1);
  const bool flip_a = graph.attribute(node).flag("transpose_a");
  const bool flip_b = graph.attribute(node).flag("transpose_b");
  const auto product = [&](std::string_view role, Value left, Value right, bool flip_left,
                           bool flip_right) {
    return derive(graph, node, role, "matmul", {left, right},
                  {{"transpose_a", flip_left}, {"transpose_b", flip_right}});
  };
  const Value da = flip_a ? product("gradient_a", b, dy, flip_b, true)
                          : product("gradient_a", dy, b, false, !flip_b);
  const Value db = flip_b ? product("gradient_b", dy, a, true, flip_a)
                          : product("gradient_b", a, dy, !flip_a, false);
  return {sum_to_operand(graph, node, 0, da), sum_to_operand(graph, node, 1, db)};
}

const Register registration{Op{
    .name = "matmul",
    .summary = "the product of matrices in the last two axes, leading axes broadcast",
    .operands = {{.name = "a", .role = OperandRole::Input},
                 {.name = "b", .role = OperandRole::Weight}},
    .attributes = {{.name = "transpose_a",
                    .default_value = false,
                    .summary = "read the matrices of a transposed"},
                   {.name = "transpose_b",
                    .default_value = false,
                    .summary = "read the matrices of b transposed"}},
    .infer = infer,
    .flops = flops,
    .reference = reference,
    .gradient = gradient,
    .pack = pack,
    .examples = {"matmul(f32[B,2,L,4], f32[B,2,L,4]) {transpose_b=true}",
                 "matmul(f32[T,4], f32[4,3])",
                 "matmul(f32[2,1,3,4], f32[5,3,2]) {transpose_a=true}"},
}};

const Register layout{WeightLayout{
    .name = "matmul",
    .output_axis =
        [](const Graph& graph, NodeId node) {
          const auto rank = static_cast<std::int64_t>(graph.type(graph.input(node, 1)).rank());
          return rank - (graph.attribute(node).flag("transpose_b") ? 2 : 1);
        },
}};

}  // namespace
}  // namespace lathe::ops::matmul
