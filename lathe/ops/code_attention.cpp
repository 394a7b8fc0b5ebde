#include "lathe/ops/code_attention.h"

#include "lathe/numerics/code_layout.h"
#include "lathe/numerics/row_codes.h"
#include "lathe/numerics/scaled_format.h"
#include "lathe/ops/attention_weights.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/operand_checks.h"

// code_attention(q i8, k i8, v i8, mask, offsets, q scales, k scales, v scales) {as attention}: of
// queries, keys and values that `encode` made whole numbers of, each row of which has one scale:
//
//   S[i,j]     = sum over the head of q[i] * k[j]                             exact, 32 bits
//   score[i,j] = (float(S) * scale of k[j]) * (float(scale) * scale of q[i])
//
// where every operation is rounded by itself, so that all executors have the same scores. What
// follows is attention's: float weights, and values v[j] * scale of v[j].
namespace lathe::ops {

bool can_attend_codes(const NumberFormat& format) {
  const FormatFacts& facts = format.facts();
  return numerics::find_scaled_spec(format) != nullptr && numerics::has_row_codes(format) &&
         facts.is_row_local && !facts.has_zero_point && facts.block_columns == 0 &&
         numerics::code_layout(format) != numerics::CodeLayout::Unsigned;
}

namespace code_attention {
namespace {

std::vector<Type> infer(const OpCall& call) {
  for (const std::size_t i : {kQuery, kKey, kValue})
    if (call.input(i).dtype != DType::I8)
      fail("code_attention: q, k and v are whole numbers, i8, not {}", to_text(call.input(i)));
  check_attention_shapes(call, 0);
  const auto expect_scales = [&](std::size_t scales, std::size_t of) {
    Type type{DType::F32, call.input(of).shape};
    type.shape.back() = Size(1);
    if (!call.has(scales) || call.input(scales).dtype != type.dtype ||
        call.input(scales).shape != type.shape)
      fail("code_attention: scales of {} must be {}", to_text(call.input(of)), to_text(type));
  };
  expect_scales(kQueryScales, kQuery);
  expect_scales(kKeyScales, kKey);
  expect_scales(kValueScales, kValue);
  const Type& q = call.input(kQuery);
  const std::int64_t head =
      constant_size("code_attention", q.axis(-1), q) / call.attributes().integer("heads");
  if (head > kWidestCodeHead)
    fail("code_attention: heads of {} numbers, {} at most have sums of 32 bits", head,
         kWidestCodeHead);
  if (!call.attributes().text("weight_format").empty())
    fail("code_attention: weights are floats, and cannot be rounded to {}",
         call.attributes().text("weight_format"));
  return {{.dtype = DType::F32, .shape = q.shape}};
}

void reference(const KernelCall& call) {
  // Without what is behind the offsets: attention would take it for dropout's.
  const std::span<const Tensor* const> operands = call.inputs.first(kOffsets + 1);
  const AttentionSizes sizes = attention_sizes(call.attributes, operands);
  const std::span<const std::int8_t> q = call.input(kQuery).data<std::int8_t>();
  const std::span<const std::int8_t> k = call.input(kKey).data<std::int8_t>();
  const std::span<const std::int8_t> v = call.input(kValue).data<std::int8_t>();
  const auto scale = [&](std::size_t operand, std::int64_t row) {
    return call.input(operand).data<float>()[static_cast<std::size_t>(row)];
  };
  const auto score = [&](std::int64_t query, std::int64_t key) {
    std::int64_t sum = 0;
    for (std::int64_t d = 0; d < sizes.head_size; ++d)
      sum += q[static_cast<std::size_t>(query + d)] * k[static_cast<std::size_t>(key + d)];
    const float of_key = static_cast<float>(sum) * scale(kKeyScales, key / sizes.k_width);
    const float of_query =
        static_cast<float>(sizes.scale) * scale(kQueryScales, query / sizes.q_width);
    return double{of_key * of_query};
  };
  std::vector<double> y(static_cast<std::size_t>(call.outputs[0].num_elements()), 0.0);
  for_each_attention_row(call.attributes, operands, score, [&](const AttentionRow& row) {
    for (std::size_t j = 0; j < row.weights.size(); ++j) {
      const std::int64_t value = row.first_key + static_cast<std::int64_t>(j) * sizes.k_width;
      const double weight = row.weights[j] * double{scale(kValueScales, value / sizes.k_width)};
      for (std::int64_t d = 0; d < sizes.head_size; ++d)
        y[static_cast<std::size_t>(row.query + d)] +=
            weight * v[static_cast<std::size_t>(value + d)];
    }
  });
  write_elements(call.outputs[0], y);
}

std::vector<OperandSpec> operands() {
  std::vector<OperandSpec> result = attention_operands();
  result.resize(kOffsets + 1);
  for (const char* const name : {"q_scales", "k_scales", "v_scales"})
    result.push_back({.name = name, .role = OperandRole::Scale});
  return result;
}

const Register registration{Op{
    .name = "code_attention",
    .summary = "attention of numbers that are whole: exact sums of products, scaled",
    .operands = operands(),
    .attributes = attention_attributes(),
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(2) * attention_product_flops(call, 0); },
    .reference = reference,
    .is_differentiable = false,
    .pack = pack_attention,
    .examples = {"code_attention(i8[B,L,8], i8[B,L,8], i8[B,L,8], i32[B,L], none, f32[B,L,1], "
                 "f32[B,L,1], f32[B,L,1]) {heads=2}",
                 "code_attention(i8[T,8], i8[T,8], i8[T,8], none, i32[S+1], f32[T,1], f32[T,1], "
                 "f32[T,1]) {heads=2, causal=true}",
                 "code_attention(i8[S,8], i8[T,4], i8[T,4], none, i32[S+1], f32[S,1], f32[T,1], "
                 "f32[T,1]) {heads=4, kv_heads=2, scale=0.5}"},
}};

}  // namespace
}  // namespace code_attention
}  // namespace lathe::ops
