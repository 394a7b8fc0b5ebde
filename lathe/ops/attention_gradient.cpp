#include "lathe/ops/attention_weights.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/underflow.h"

// attention_gradient(dout, q, k, v, mask, offsets, random, examples), attributes as attention:
// the gradients of its first three operands. With weights P, dropout factors D and
// dP[i,j] = D[i,j] * dot(dout[i], v[j]):
//   dv[j] = sum over i of round(P[i,j]) * D[i,j] * dout[i],
//   dscore[i,j] = P[i,j] * (dP[i,j] - sum over n of P[i,n] * dP[i,n]),
//   dq[i] = scale * sum over j of dscore[i,j] * k[j],  dk[j] = scale * sum over i of the same.
// Rounding to `weight_format` counts as the identity where scores are concerned (straight-through):
// the softmax that has a gradient is the one before rounding. A scale * dscore below 2^-100 is 0.
namespace lathe::ops::attention_gradient {
namespace {

std::vector<Type> infer(const OpCall& call) {
  check_attention(call, 1);
  const Type& dout = call.input(0);
  const Type& q = call.input(1 + kQuery);
  const Type& k = call.input(1 + kKey);
  if (dout.shape != q.shape)
    fail("attention_gradient: dout {} and queries {} differ in shape", to_text(dout), to_text(q));
  return {{.dtype = q.dtype, .shape = q.shape},
          {.dtype = k.dtype, .shape = k.shape},
          {.dtype = k.dtype, .shape = k.shape}};
}

// Scores again, dout by values, and one product for each result.
Size flops(const OpCall& call) {
  return Size(5) * attention_product_flops(call, 1);
}

void reference(const KernelCall& call) {
  const std::span<const Tensor* const> operands = call.inputs.subspan(1);
  const AttentionSizes sizes = attention_sizes(call.attributes, operands);
  const std::vector<double> dout = read_elements(call.input(0));
  const std::vector<double> q = read_elements(*operands[kQuery]);
  const std::vector<double> k = read_elements(*operands[kKey]);
  const std::vector<double> v = read_elements(*operands[kValue]);
  std::vector<double> dq(q.size(), 0.0), dk(k.size(), 0.0), dv(v.size(), 0.0);
  std::vector<double> dweights;
  for_each_attention_row(call.attributes, operands, [&](const AttentionRow& row) {
    const auto query = static_cast<std::size_t>(row.query);
    const auto head_size = static_cast<std::size_t>(sizes.head_size);
    const auto key = [&](std::size_t j) {
      return static_cast<std::size_t>(row.first_key) + j * static_cast<std::size_t>(sizes.k_width);
    };
    dweights.assign(row.weights.size(), 0.0);
    double mean = 0;
    for (std::size_t j = 0; j < row.weights.size(); ++j) {
      for (std::size_t d = 0; d < head_size; ++d) {
        dweights[j] += row.factors[j] * dout[query + d] * v[key(j) + d];
        dv[key(j) + d] += row.rounded[j] * row.factors[j] * dout[query + d];
      }
      mean += row.weights[j] * dweights[j];
    }
    if (row.sees_no_key) return;  // its weights do not depend on scores
    for (std::size_t j = 0; j < row.weights.size(); ++j) {
      const double dscore =
          unless_below(kLeastScoreGradient, sizes.scale * row.weights[j] * (dweights[j] - mean));
      for (std::size_t d = 0; d < head_size; ++d) {
        dq[query + d] += dscore * k[key(j) + d];
        dk[key(j) + d] += dscore * q[query + d];
      }
    }
  });
  write_elements(call.outputs[0], dq);
  write_elements(call.outputs[1], dk);
  write_elements(call.outputs[2], dv);
}

std::vector<OperandSpec> operands() {
  std::vector<OperandSpec> result = attention_operands();
  result.insert(result.begin(), {.name = "dout"});
  return result;
}

const Register registration{Op{
    .name = "attention_gradient",
    .summary = "the gradients of attention with respect to queries, keys and values",
    .operands = operands(),
    .attributes = attention_attributes(),
    .num_results = 3,
    .infer = infer,
    .flops = flops,
    .reference = reference,
    .dropout_attribute = "dropout",
    .is_differentiable = false,
    .examples = {"attention_gradient(f32[B,L,8], f32[B,L,8], f32[B,L,8], f32[B,L,8], i64[B,L]) "
                 "{heads=2}",
                 "attention_gradient(f32[T,8], f32[T,8], f32[T,8], f32[T,8], none, i32[S+1], "
                 "i32[3], i32[S]) {heads=2, dropout=0.25, site=7}",
                 "attention_gradient(f32[B,L,8], f32[B,L,8], f32[B,L,8], f32[B,L,8], i64[B,L]) "
                 "{heads=2, weight_format=\"int:4,asymmetric\"}"},
}};

}  // namespace
}  // namespace lathe::ops::attention_gradient
