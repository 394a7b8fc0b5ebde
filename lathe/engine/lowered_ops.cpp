#include "lathe/core/op.h"
#include "lathe/ops/attention_weights.h"
#include "lathe/ops/code_products.h"

// The ops of lowered graphs: what a kernel computes at once that the user's graph says in several
// nodes. They have no reference kernel and no gradient, because nobody writes them.
namespace lathe::engine {
namespace {

std::vector<Type> same_as_linear(const OpCall& call) {
  Type type = call.input(0);
  type.shape.back() = call.input(1).shape[0];
  return {type};
}

const Register fused_linear{Op{
    .name = "fused_linear",
    .summary = "activation(x . weight^T + bias) + residual, in one kernel",
    .operands = {{"x"}, {"weight"}, {"bias", true}, {"residual", true}},
    .attributes = {{"activation", std::string("none"), "an op applied to the sums"}},
    .infer = same_as_linear,
    .flops =
        [](const OpCall& call) {
          return Size(2) * call.input(0).num_elements() * call.input(1).shape[0];
        },
}};

const Register fused_code_linear{Op{
    .name = "fused_code_linear",
    .summary = "activation(code_linear) + residual, in one kernel",
    .operands = {{"numbers"},
                 {"scales"},
                 {"zeros"},
                 {"codes"},
                 {"local", true},
                 {"scale", true},
                 {"zero", true},
                 {"bias", true},
                 {"residual", true}},
    .attributes = {{"x_format", std::string(), "the format that x was encoded in", true},
                   {"format", std::string(), "of the weight", true},
                   {"columns", std::int64_t{0}, "numbers in a row of the weight", true},
                   {"activation", std::string("none"), "an op applied to the sums"}},
    .infer =
        [](const OpCall& call) {
          Type type{DType::F32, call.input(ops::kXNumbers).shape};
          type.shape.back() = call.input(ops::kWeightCodes).shape[0];
          return std::vector<Type>{type};
        },
    .flops =
        [](const OpCall& call) {
          return Size(2) * call.input(ops::kXNumbers).num_elements() *
                 call.input(ops::kWeightCodes).shape[0];
        },
    .is_differentiable = false,
}};

const Register packed_linear{Op{
    .name = "packed_linear",
    .summary = "activation(x . weight^T + bias) + residual, the weight packed as for decode",
    .operands = {{"x"},
                 {"codes"},
                 {"local", true},
                 {"scale", true},
                 {"zero", true},
                 {"bias", true},
                 {"residual", true}},
    .attributes = {{"format", std::string(), "of the weight", true},
                   {"columns", std::int64_t{0}, "numbers in a row of the weight", true},
                   {"activation", std::string("none"), "an op applied to the sums"},
                   {"encodes", false, "round x to the weight's format, multiply whole numbers"}},
    .infer = same_as_linear,
    .flops =
        [](const OpCall& call) {
          return Size(2) * call.input(0).num_elements() * call.input(1).shape[0];
        },
    .is_differentiable = false,
}};

const Register packed_embedding{Op{
    .name = "packed_embedding",
    .summary = "rows looked up in a table that is packed as for decode",
    .operands = {{"ids"}, {"codes"}, {"local", true}, {"scale", true}, {"zero", true}},
    .attributes = {{"format", std::string(), "of the table", true},
                   {"columns", std::int64_t{0}, "numbers in a row of the table", true}},
    .infer =
        [](const OpCall& call) {
          Type type{DType::F32, call.input(0).shape};
          type.shape.emplace_back(call.attributes().integer("columns"));
          return std::vector<Type>{type};
        },
    .is_differentiable = false,
}};

const Register fused_layer_norm{Op{
    .name = "fused_layer_norm",
    .summary = "layer_norm(x + residual), in one kernel",
    .operands = {{"x"}, {"residual"}, {"weight"}, {"bias"}},
    .attributes = {{"eps", 1e-5, "added to the variance"}},
    .infer = [](const OpCall& call) { return std::vector<Type>{call.input(0)}; },
}};

const Register embedding_sum{Op{
    .name = "embedding_sum",
    .summary = "the sum of rows looked up in up to three tables, in one kernel",
    .operands = {{"ids"}, {"table"}, {"more", false, true}},
    .infer =
        [](const OpCall& call) {
          Type type = call.input(1);
          type.shape = call.input(0).shape;
          type.shape.push_back(call.input(1).shape[1]);
          return std::vector<Type>{type};
        },
}};

const Register attention_with_statistics{Op{
    .name = "attention_with_statistics",
    .summary = "attention, and what its gradient reads again: for each query and head the largest "
               "score times log2(e) and one over the sum of the exponentials",
    .operands = ops::attention_operands(),
    .attributes = ops::attention_attributes(),
    .num_results = 2,
    .infer =
        [](const OpCall& call) {
          ops::check_attention(call, 0);
          Type statistics = call.input(ops::kQuery);
          statistics.dtype = DType::F32;
          statistics.shape.back() = Size(2 * call.attributes().integer("heads"));
          return std::vector<Type>{call.input(ops::kQuery), statistics};
        },
    .flops = [](const OpCall& call) { return Size(2) * ops::attention_product_flops(call, 0); },
}};

std::vector<OperandSpec> operands_with_statistics() {
  std::vector<OperandSpec> result = ops::attention_operands();
  result.insert(result.begin(), {{.name = "dout"}, {.name = "y"}, {.name = "statistics"}});
  return result;
}

const Register attention_gradient_with_statistics{Op{
    .name = "attention_gradient_with_statistics",
    .summary = "attention_gradient that reads the results of attention_with_statistics",
    .operands = operands_with_statistics(),
    .attributes = ops::attention_attributes(),
    .num_results = 3,
    .infer =
        [](const OpCall& call) {
          ops::check_attention(call, 3);
          const Type& k = call.input(3 + ops::kKey);
          return std::vector<Type>{call.input(3 + ops::kQuery), k, k};
        },
    .flops = [](const OpCall& call) { return Size(5) * ops::attention_product_flops(call, 3); },
    .is_differentiable = false,
}};

const Type kCount{DType::I32, {}};

const Register embedding_gradient_rows{Op{
    .name = "embedding_gradient_rows",
    .summary = "the rows of embedding_gradient that are not zero, in the table's order; for each "
               "row of the table where it is among them, or -1; and how many there are",
    .operands = {{"dy"}, {"ids"}},
    .attributes = {{"rows", 0, "number of rows of the table", true}},
    .num_results = 3,
    .infer =
        [](const OpCall& call) {
          const Type& dy = call.input(0);
          const Size rows(call.attributes().integer("rows"));
          return std::vector<Type>{
              {dy.dtype, {call.input(1).num_elements(), dy.axis(-1)}},
              {DType::I32, {rows}},
              kCount,
          };
        },
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .is_differentiable = false,
}};

const Register sum_squares_of_rows{Op{
    .name = "sum_squares_of_rows",
    .summary = "sum_squares of the first `used` rows",
    .operands = {{"rows"}, {"used"}},
    .infer =
        [](const OpCall&) {
          return std::vector<Type>{{DType::F32, {}}};
        },
    .is_differentiable = false,
}};

const Register adamw_of_rows{Op{
    .name = "adamw_of_rows",
    .summary = "adamw with a gradient of embedding_gradient_rows",
    .operands =
        {{"param"}, {"rows"}, {"m"}, {"v"}, {"learning_rate"}, {"scale"}, {"random"}, {"places"}},
    .attributes = {{"beta1", 0.9, "how slowly m forgets"},
                   {"beta2", 0.999, "how slowly v forgets"},
                   {"eps", 1e-8, "added to the denominator"},
                   {"weight_decay", 0.0, "share of the parameter a step of rate 1 takes away"}},
    .num_results = 3,
    .infer =
        [](const OpCall& call) {
          return std::vector<Type>{call.input(0), call.input(2), call.input(3)};
        },
    .flops = [](const OpCall& call) { return Size(14) * call.input(0).num_elements(); },
    .is_differentiable = false,
}};

const Register sgd_of_rows{Op{
    .name = "sgd_of_rows",
    .summary = "sgd with a gradient of embedding_gradient_rows",
    .operands = {{"param"}, {"rows"}, {"velocity"}, {"learning_rate"}, {"scale"}, {"places"}},
    .attributes = {{"momentum", 0.0, "share of the velocity that a step keeps"},
                   {"weight_decay", 0.0, "share of the parameter added to its gradient"}},
    .num_results = 2,
    .infer =
        [](const OpCall& call) {
          return std::vector<Type>{call.input(0), call.input(2)};
        },
    .flops = [](const OpCall& call) { return Size(7) * call.input(0).num_elements(); },
    .is_differentiable = false,
}};

const Register add_embedding_gradient{Op{
    .name = "add_embedding_gradient",
    .summary = "base + embedding_gradient(dy, ids)",
    .operands = {{"dy"}, {"ids"}, {"base"}},
    .infer = [](const OpCall& call) { return std::vector<Type>{call.input(2)}; },
    .flops = [](const OpCall& call) { return call.input(0).num_elements(); },
    .is_differentiable = false,
}};

}  // namespace
}  // namespace lathe::engine
