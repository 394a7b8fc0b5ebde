#include <algorithm>

#include "lathe/numerics/integer/requant.h"
#include "lathe/numerics/integer/rounded_divide.h"
#include "lathe/ops/attention_weights.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/integer/integer_softmax_row.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/packing.h"

// integer_attention(q, k, v, mask, offsets) {heads, kv_heads, causal, exponent_multiplier,
// exponent_shift, multiplier, shift, width, signed, symmetric, scale}
//
// As attention, on integers: scores are exact, weights are the 15-bit exponentials of
// integer_softmax_row.h, values are summed with them exactly and divided once by their sum:
//   y = round((sum over j of weight[j] * v[j]) * multiplier / ((sum of weight[j]) * 2^shift)),
// saturated. What a query sees is as in attention. Rows of no keys are 0.
namespace lathe::ops::integer_attention {
namespace {

std::vector<Type> infer(const OpCall& call) {
  for (const std::size_t i : {kQuery, kKey, kValue})
    require_integer("integer_attention", "q, k and v", call.input(i));
  check_attention_shapes(call, 0);
  exponent_scale(call.attributes());
  multiplier_attribute(call.attributes(), "multiplier");
  shift_attribute(call.attributes(), "shift");
  return {
      {.dtype = storage_of(integer_range(call.attributes())), .shape = call.input(kQuery).shape}};
}

void reference(const KernelCall& call) {
  const AttentionHeads heads = attention_heads(call.attributes, call.inputs);
  const ExponentScale exponents = exponent_scale(call.attributes);
  const std::int64_t multiplier = multiplier_attribute(call.attributes, "multiplier");
  const int shift = shift_attribute(call.attributes, "shift");
  const numerics::Integer128 up = numerics::Integer128{1} << std::max(0, -shift);
  const numerics::Integer128 down = numerics::Integer128{1} << std::max(0, shift);
  const numerics::IntegerRange range = integer_range(call.attributes);
  const bool causal = call.attributes.flag("causal");
  const std::vector<std::int64_t> q = read_integers(call.input(kQuery));
  const std::vector<std::int64_t> k = read_integers(call.input(kKey));
  const std::vector<std::int64_t> v = read_integers(call.input(kValue));
  const std::vector<std::int64_t> mask =
      call.has(kMask) ? read_integers(call.input(kMask)) : std::vector<std::int64_t>{};
  std::vector<std::int64_t> y(q.size(), 0), weights;
  std::vector<std::uint8_t> keep;
  const auto at = [](const std::vector<std::int64_t>& from, std::int64_t index) {
    return from[static_cast<std::size_t>(index)];
  };
  for (const AttentionSequence& sequence : attention_sequences(call.inputs, causal)) {
    if (sequence.num_keys == 0) continue;
    weights.resize(static_cast<std::size_t>(sequence.num_keys));
    keep.resize(weights.size());
    for (std::int64_t h = 0; h < heads.heads; ++h) {
      const std::int64_t kv_head = h / (heads.heads / heads.kv_heads);
      const std::int64_t first_key = sequence.first_key * heads.k_width + kv_head * heads.head_size;
      for (std::int64_t i = 0; i < sequence.num_queries; ++i) {
        const std::int64_t query = (sequence.first_query + i) * heads.q_width + h * heads.head_size;
        for (std::int64_t j = 0; j < sequence.num_keys; ++j) {
          const bool is_kept =
              !(causal && j > i) && (mask.empty() || at(mask, sequence.first_key + j) != 0);
          keep[static_cast<std::size_t>(j)] = is_kept ? 1 : 0;
          std::int64_t score = 0;
          for (std::int64_t d = 0; d < heads.head_size; ++d)
            score += at(q, query + d) * at(k, first_key + j * heads.k_width + d);
          weights[static_cast<std::size_t>(j)] = score;
        }
        const std::int64_t sum = exponential_row(weights, keep, exponents);
        for (std::int64_t d = 0; d < heads.head_size; ++d) {
          std::int64_t total = 0;
          for (std::int64_t j = 0; j < sequence.num_keys; ++j)
            total += at(weights, j) * at(v, first_key + j * heads.k_width + d);
          y[static_cast<std::size_t>(query + d)] =
              numerics::requant(numerics::rounded_divide(total * up * multiplier, sum * down), 1, 0,
                                numerics::IntegerRounding::NearestEven, range);
        }
      }
    }
  }
  write_integers(call.outputs[0], y);
}

const Register registration{Op{
    .name = "integer_attention",
    .summary = "attention on integers with exact sums and one division for each result",
    .operands = {{.name = "q", .role = OperandRole::Query},
                 {.name = "k", .role = OperandRole::Key},
                 {.name = "v", .role = OperandRole::Content},
                 {.name = "mask", .optional = true},
                 {.name = "offsets", .optional = true}},
    .attributes = with_integer_result(with_exponent_scale(
        {{.name = "heads",
          .default_value = std::int64_t{1},
          .summary = "number of query heads",
          .required = true},
         {.name = "kv_heads",
          .default_value = std::int64_t{0},
          .summary = "number of key and value heads; 0: as many as query heads"},
         {.name = "causal",
          .default_value = false,
          .summary = "whether a query sees only keys up to its own position"},
         {.name = "multiplier",
          .default_value = std::int64_t{1},
          .summary = "this over 2^shift is the scale of values over that of results"},
         {.name = "shift", .default_value = std::int64_t{0}, .summary = "see multiplier"}})),
    .infer = infer,
    .flops = [](const OpCall& call) { return Size(2) * attention_product_flops(call, 0); },
    .reference = reference,
    .is_differentiable = false,
    .pack = pack_attention,
    .examples = {"integer_attention(i8[B,L,8], i8[B,L,8], i8[B,L,8], i64[B,L]) {heads=2, "
                 "exponent_multiplier=70000, exponent_shift=12, width=8}",
                 "integer_attention(i8[T,8], i8[T,8], i16[T,8], none, i32[S+1]) {heads=2, "
                 "causal=true, exponent_multiplier=70000, exponent_shift=12, multiplier=5, "
                 "shift=3, width=8}",
                 "integer_attention(i8[S,8], i8[T,4], i8[T,4], none, i32[S+1]) {heads=4, "
                 "kv_heads=2, exponent_multiplier=70000, exponent_shift=12, shift=-3, width=16}"},
}};

}  // namespace
}  // namespace lathe::ops::integer_attention
