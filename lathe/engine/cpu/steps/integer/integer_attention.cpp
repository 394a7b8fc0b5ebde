#include <algorithm>

#include "lathe/engine/cpu/step.h"
#include "lathe/engine/cpu/steps/integer/integer_rows.h"
#include "lathe/numerics/integer/requant.h"
#include "lathe/numerics/integer/rounded_divide.h"
#include "lathe/ops/attention_weights.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/ops/integer/integer_softmax_row.h"

namespace lathe::engine {
namespace {

using numerics::Integer128;

// Keys whose products with 15-bit weights are summed in 32 bits before they go to 64: with values
// of 8 bits a sum stays below 2^30.
constexpr std::int64_t kKeyBlock = 256;

// integer_attention one (sequence, head) at a time on operands of 8 bits: scores by the kernel of
// 16-bit products, weighted sums by the same on the transposed values.
class IntegerAttentionStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const Graph& graph = call.graph;
    std::vector<Tensor> operands;
    for (std::size_t i = 0; i < graph.inputs(call.node).size(); ++i) {
      const Value value = graph.input(call.node, i);
      operands.push_back(value.is_none() ? Tensor()
                                         : Tensor::view(graph.type(value).dtype,
                                                        graph.type(value).dims(call.symbols),
                                                        call.inputs[i], nullptr));
    }
    std::vector<const Tensor*> pointers;
    for (std::size_t i = 0; i < operands.size(); ++i)
      pointers.push_back(call.inputs[i] == nullptr ? nullptr : &operands[i]);
    const AttributeReader attributes = graph.attribute(call.node);
    const Work work{.heads = ops::attention_heads(attributes, pointers),
                    .exponents = ops::exponent_scale(attributes),
                    .multiplier = ops::multiplier_attribute(attributes, "multiplier"),
                    .shift = ops::shift_attribute(attributes, "shift"),
                    .range = ops::integer_range(attributes),
                    .causal = attributes.flag("causal"),
                    .mask = pointers.size() > ops::kMask && pointers[ops::kMask] != nullptr
                                ? ops::read_integers(*pointers[ops::kMask])
                                : std::vector<std::int64_t>{},
                    .result = graph.types(call.node)[0].dtype};
    const std::vector<ops::AttentionSequence> sequences =
        ops::attention_sequences(pointers, work.causal);
    const std::int64_t heads = work.heads.heads;
    call.parallel(std::ssize(sequences) * heads, [&](std::int64_t task, int) {
      attend(call, work, sequences[static_cast<std::size_t>(task / heads)], task % heads);
    });
  }

 private:
  struct Work {
    ops::AttentionHeads heads;
    ops::ExponentScale exponents;
    std::int64_t multiplier;
    int shift;
    numerics::IntegerRange range;
    bool causal;
    std::vector<std::int64_t> mask;
    DType result;
  };

  static void attend(const WholeCall& call, const Work& work,
                     const ops::AttentionSequence& sequence, std::int64_t head) {
    const ops::AttentionHeads& heads = work.heads;
    const std::int64_t d = heads.head_size, depth = padded_depth(d);
    const std::int64_t keys = sequence.num_keys, padded_keys = padded_depth(keys);
    const auto place = [&](std::byte* base, std::int64_t row) {
      return base + (row * heads.q_width + head * d) * size_of(work.result);
    };
    if (keys == 0) {
      for (std::int64_t i = 0; i < sequence.num_queries; ++i)
        std::fill_n(place(call.outputs[0], sequence.first_query + i), d * size_of(work.result),
                    std::byte{0});
      return;
    }
    const std::int64_t kv_head = head / (heads.heads / heads.kv_heads);
    std::vector<std::int16_t> k(static_cast<std::size_t>(keys * depth)),
        q(static_cast<std::size_t>(depth));
    std::vector<std::int16_t> v(static_cast<std::size_t>(d * padded_keys), 0);
    for (std::int64_t j = 0; j < keys; ++j) {
      const std::int64_t first = (sequence.first_key + j) * heads.k_width + kv_head * d;
      to_shorts(DType::I8, call.inputs[ops::kKey] + first, d, depth, k.data() + j * depth);
      for (std::int64_t i = 0; i < d; ++i)
        v[static_cast<std::size_t>(i * padded_keys + j)] =
            static_cast<std::int8_t>(call.inputs[ops::kValue][first + i]);
    }
    std::vector<std::int32_t> scores(static_cast<std::size_t>(keys));
    std::vector<std::int64_t> weights(scores.size()), totals(static_cast<std::size_t>(d));
    std::vector<std::int16_t> shorts(static_cast<std::size_t>(padded_keys), 0);
    std::vector<std::int32_t> sums(totals.size());
    std::vector<std::uint8_t> keep;
    for (std::int64_t i = 0; i < sequence.num_queries; ++i) {
      const std::int64_t row = sequence.first_query + i;
      to_shorts(DType::I8, call.inputs[ops::kQuery] + row * heads.q_width + head * d, d, depth,
                q.data());
      call.kernels.integer_products(
          {1, keys, depth, q.data(), depth, k.data(), depth, scores.data(), keys});
      std::copy(scores.begin(), scores.end(), weights.begin());
      if (work.causal || !work.mask.empty()) {
        keep.resize(weights.size());
        for (std::int64_t j = 0; j < keys; ++j)
          keep[static_cast<std::size_t>(j)] =
              !(work.causal && j > i) &&
              (work.mask.empty() ||
               work.mask[static_cast<std::size_t>(sequence.first_key + j)] != 0);
      }
      const std::int64_t sum = ops::exponential_row(weights, keep, work.exponents);
      for (std::size_t j = 0; j < weights.size(); ++j)
        shorts[j] = static_cast<std::int16_t>(weights[j]);
      std::ranges::fill(totals, 0);
      for (std::int64_t first = 0; first < padded_keys; first += kKeyBlock) {
        call.kernels.integer_products({1, d, std::min(kKeyBlock, padded_keys - first),
                                       shorts.data() + first, padded_keys, v.data() + first,
                                       padded_keys, sums.data(), d});
        for (std::size_t t = 0; t < totals.size(); ++t) totals[t] += sums[t];
      }
      for (std::int64_t& total : totals) total = divided(work, total, sum);
      narrow(work.result, totals.data(), d, place(call.outputs[0], row));
    }
  }

  static std::int64_t divided(const Work& work, std::int64_t total, std::int64_t sum) {
    const Integer128 up = Integer128{1} << std::max(0, -work.shift);
    const Integer128 down = Integer128{1} << std::max(0, work.shift);
    return numerics::requant(numerics::rounded_divide(total * up * work.multiplier, sum * down), 1,
                             0, numerics::IntegerRounding::NearestEven, work.range);
  }
};

std::unique_ptr<Step> make_integer_attention(const Graph& graph, NodeId id) {
  for (const std::size_t i : {ops::kQuery, ops::kKey, ops::kValue})
    if (graph.type(graph.input(id, i)).dtype != DType::I8 ||
        !integer_rows(graph.type(graph.input(id, i))))
      return nullptr;
  return std::make_unique<IntegerAttentionStep>();
}

const Register integer_attention{CpuKernel{"integer_attention", make_integer_attention}};

}  // namespace
}  // namespace lathe::engine
