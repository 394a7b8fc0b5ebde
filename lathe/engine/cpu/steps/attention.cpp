#include <algorithm>
#include <array>
#include <cmath>

#include "lathe/engine/cpu/attention_shape.h"
#include "lathe/engine/cpu/bf16_kernels.h"
#include "lathe/engine/cpu/bf16_values.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/ops/attention_weight_format.h"
#include "lathe/ops/attention_weights.h"
#include "lathe/ops/dropout_mask.h"
#include "lathe/ops/underflow.h"

namespace lathe::engine {
namespace {

static_assert(double{kLowestAttentionScore} == ops::kLowestAttentionScore &&
              double{kLeastScoreGradient} == ops::kLeastScoreGradient);

// Attention that may drop weights or round them.
class WeightedAttention : public AttentionShape {
 public:
  WeightedAttention(const Graph& graph, NodeId id, std::size_t first)
      : AttentionShape(graph, id, first) {
    const AttributeReader attributes = graph.attribute(id);
    site = static_cast<std::uint32_t>(attributes.integer("site"));
    weight_format = ops::AttentionWeightFormat::of(attributes);
    if (!graph.input(id, first + ops::kRandom).is_none())
      threshold = ops::dropout_threshold(attributes.real("dropout"));
  }

  Dropout dropout(const WholeCall& call) const {
    const std::int32_t* const random = integers(call, ops::kRandom);
    if (random == nullptr || threshold == 0) return {};
    const ops::DropoutStream stream = ops::dropout_stream(random[0], random[1], random[2], site);
    return {threshold, stream.seed, stream.step, stream.site};
  }
  std::uint32_t example(const WholeCall& call, std::size_t sequence) const {
    const std::int32_t* const examples = integers(call, ops::kExamples);
    return examples == nullptr ? 0 : static_cast<std::uint32_t>(examples[sequence]);
  }

  std::uint32_t site, threshold = 0;
  std::optional<ops::AttentionWeightFormat> weight_format;
};

// What the kernels call to round a row; lives as long as the call.
class RowRounder {
 public:
  RowRounder(const WeightedAttention& shape, const WholeCall& call)
      : format_(shape.weight_format ? &*shape.weight_format : nullptr),
        isa_(*parse_isa(call.kernels.isa)) {}
  RowRounder(const RowRounder&) = delete;
  RowRounder& operator=(const RowRounder&) = delete;

  WeightRounding rounding() const {
    if (format_ == nullptr) return {};
    return {[](const void* context, float* weights, const std::uint8_t* keep, std::int64_t count) {
              const auto& self = *static_cast<const RowRounder*>(context);
              self.format_->round({weights, static_cast<std::size_t>(count)}, keep, self.isa_);
            },
            this};
  }

 private:
  const ops::AttentionWeightFormat* format_;
  Isa isa_;
};

// What attention multiplies under a precision: in bfloat16, operands that are not rounded already
// are copied, and results are rounded where they lie. To be made before tasks start.
class Rounding {
 public:
  Rounding(const WholeCall& call, bool is_bf16)
      : call_(call), table_(is_bf16 ? &bf16_kernels(*parse_isa(call.kernels.isa)) : nullptr) {}

  const Bf16Kernels* table() const { return table_; }
  const float* operand(std::size_t input) {
    const auto* const x = reinterpret_cast<const float*>(call_.inputs[input]);
    const Value value = call_.graph.input(call_.node, input);
    if (table_ == nullptr || is_bf16_result(call_.graph, value)) return x;
    const std::int64_t count = num_elements(call_.graph.type(value).dims(call_.symbols));
    copies_.emplace_back(std::max<std::int64_t>(count, 1) *
                         static_cast<std::int64_t>(sizeof(float)));
    table_->round(x, count, copies_.back().floats());
    return copies_.back().floats();
  }
  void round_rows(float* first, std::int64_t rows, std::int64_t width, std::int64_t stride) const {
    if (table_ == nullptr) return;
    for (std::int64_t r = 0; r < rows; ++r)
      table_->round(first + r * stride, width, first + r * stride);
  }

 private:
  const WholeCall& call_;
  const Bf16Kernels* table_;
  std::vector<AlignedBuffer> copies_;
};

void reserve_floats(const WholeCall& call, std::int64_t floats) {
  for (AlignedBuffer& buffer : call.scratch)
    buffer.reserve(floats * static_cast<std::int64_t>(sizeof(float)));
}

// Attention one (sequence, head) at a time, for padded batches with a mask and for packed ones.
class AttentionStep final : public Step {
 public:
  explicit AttentionStep(WeightedAttention shape) : shape_(shape) {}
  void set_precision(Precision precision) override { is_bf16_ = precision == Precision::Bf16; }
  Narrow narrow_input(std::size_t operand) const override {
    return operand < kOut && multiplies_pairs() ? Narrow::Anyway : Narrow::No;
  }
  Narrow narrow_output(std::size_t) const override {
    return multiplies_pairs() ? Narrow::Anyway : Narrow::No;
  }
  void set_narrow(const std::vector<bool>& inputs, const std::vector<bool>& outputs) override {
    for (std::size_t i = 0; i < kOut; ++i) narrow_[i] = inputs[i];
    narrow_[kOut] = outputs[0];
  }

  void run_whole(const WholeCall& call) const override {
    const WeightedAttention& a = shape_;
    const std::vector<AttentionSequence> sequences = a.sequences(call);
    const Dropout dropout = a.dropout(call);
    const RowRounder rounder(a, call);
    Rounding rounding(call, is_bf16_);
    const Bf16Kernels* const pairs = multiplies_pairs() ? rounding.table() : nullptr;
    const auto scratch_floats = [&](std::int64_t lq, std::int64_t lk) {
      if (pairs == nullptr) return call.kernels.attention_scratch_size(lq, lk, a.d);
      return (pairs->attention_scratch_bytes(lk, a.d) + 3) / 4;
    };
    std::int64_t floats = 0;
    for (const AttentionSequence& at : sequences)
      floats = std::max(floats, scratch_floats(at.q_length, at.k_length) + at.k_length);
    reserve_floats(call, floats);
    const auto operand = [&](std::size_t input) {  // that kernel rounds what it packs
      return pairs != nullptr ? reinterpret_cast<const float*>(call.inputs[input])
                              : rounding.operand(input);
    };
    const float* const q = operand(0);
    const float* const k = operand(1);
    const float* const v = operand(2);
    const std::int64_t group = a.heads / a.kv_heads;
    const std::int64_t q_stride = a.q_stride(), k_stride = a.k_stride();
    fill_unseeing(sequences, call.outputs[0],
                  q_stride * size_of(narrow_[kOut] ? DType::BF16 : DType::F32));
    std::int64_t most_keys = 0;
    for (const AttentionSequence& at : sequences) most_keys = std::max(most_keys, at.k_length);
    const std::vector<AttentionTask> tasks =
        attention_tasks(a, sequences, std::ssize(call.scratch),
                        pairs != nullptr ? pairs->attention_tile : call.kernels.attention_tile);
    PackedPairs packed(a, sequences, tasks,
                       (pairs != nullptr ? pairs->attention_packed_bytes
                                         : call.kernels.attention_packed_bytes)(most_keys, a.d),
                       call.shared);
    const auto run = [&](const AttentionTask& task, int thread) {
      const AttentionSequence& at = sequences[task.sequence];
      float* const scratch = call.scratch[static_cast<std::size_t>(thread)].floats();
      float* const room = scratch + scratch_floats(at.q_length, at.k_length);
      const std::int64_t q_place = at.q_start * q_stride + task.head * a.d;
      const std::int64_t k_place = at.k_start * k_stride + task.head / group * a.d;
      Bf16AttentionArgs args{};
      args.lq = at.q_length;
      args.lk = at.k_length;
      args.d = a.d;
      args.q_begin = task.q_begin;
      args.q_end = task.q_end;
      args.q = q + q_place;
      args.k = k + k_place;
      args.v = v + k_place;
      args.out = reinterpret_cast<float*>(call.outputs[0]) + q_place;
      args.q_stride = args.out_stride = q_stride;
      args.k_stride = args.v_stride = k_stride;
      args.scale = a.scale;
      args.causal = a.causal;
      args.keep = a.keep(call, at, room);
      args.scratch = scratch;
      args.dropout = dropout;
      args.head = static_cast<std::uint32_t>(task.head);
      args.example = a.example(call, task.sequence);
      args.rounding = rounder.rounding();
      if (pairs != nullptr) {
        const auto narrow = [&](std::size_t input, std::int64_t place) {
          const auto* const numbers = reinterpret_cast<const std::uint16_t*>(call.inputs[input]);
          return narrow_[input] ? numbers + place : nullptr;
        };
        args.narrow_q = narrow(0, q_place);
        args.narrow_k = narrow(1, k_place);
        args.narrow_v = narrow(2, k_place);
        if (narrow_[kOut])
          args.narrow_out = reinterpret_cast<std::uint16_t*>(call.outputs[0]) + q_place;
        args.packed = packed.find(task, [&](void* to) { pairs->attention_pack(args, to); });
        pairs->attention(args);
        return;
      }
      args.packed = packed.find(task, [&](void* to) { call.kernels.attention_pack(args, to); });
      call.kernels.attention(args);
      rounding.round_rows(args.out + task.q_begin * q_stride, task.q_end - task.q_begin, a.d,
                          q_stride);
    };
    run_attention_tasks(call, sequences, tasks, run);
  }

 private:
  static constexpr std::size_t kOut = 3;  // behind q, k and v

  // Whether the kernel that multiplies bfloat16 numbers can.
  bool multiplies_pairs() const {
    return is_bf16_ && shape_.threshold == 0 && !shape_.weight_format &&
           shape_.d <= Bf16Kernels::kMostHeadSize;
  }

  WeightedAttention shape_;
  bool is_bf16_ = false;
  std::array<bool, kOut + 1> narrow_{};  // which of q, k, v and the result
};

// attention_gradient, one (sequence, head of the keys) at a time: the query heads that share keys
// add to the same dk and dv, one after another.
class AttentionGradientStep final : public Step {
 public:
  explicit AttentionGradientStep(WeightedAttention shape) : shape_(shape) {}
  void set_precision(Precision precision) override { is_bf16_ = precision == Precision::Bf16; }

  void run_whole(const WholeCall& call) const override {
    const WeightedAttention& a = shape_;
    const std::vector<AttentionSequence> sequences = a.sequences(call);
    std::vector<AttentionTask> tasks;
    std::int64_t floats = 0;
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      const auto [q_start, k_start, lq, lk] = sequences[s];
      for (std::int64_t head = 0; head < a.kv_heads; ++head) tasks.push_back({s, head, 0, lq});
      floats = std::max(floats, call.kernels.attention_backward_scratch_size(lq, lk, a.d) + lk);
    }
    reserve_floats(call, floats);
    const Dropout dropout = a.dropout(call);
    const RowRounder rounder(a, call);
    Rounding rounding(call, is_bf16_);
    const float* const dout = rounding.operand(0);
    const float* const q = rounding.operand(1);
    const float* const k = rounding.operand(2);
    const float* const v = rounding.operand(3);
    const std::int64_t group = a.heads / a.kv_heads;
    const std::int64_t q_stride = a.q_stride(), k_stride = a.k_stride();
    fill_unseeing(sequences, call.outputs[0], q_stride * size_of(DType::F32));
    const auto run = [&](const AttentionTask& task, int thread) {
      const AttentionSequence& at = sequences[task.sequence];
      float* const scratch = call.scratch[static_cast<std::size_t>(thread)].floats();
      float* const room =
          scratch + call.kernels.attention_backward_scratch_size(at.q_length, at.k_length, a.d);
      const std::uint8_t* const keep = a.keep(call, at, room);
      const std::int64_t k_place = at.k_start * k_stride + task.head * a.d;
      for (std::int64_t member = 0; member < group; ++member) {
        const std::int64_t head = task.head * group + member;
        const std::int64_t q_place = at.q_start * q_stride + head * a.d;
        AttentionBackwardArgs args{};
        args.lq = at.q_length;
        args.lk = at.k_length;
        args.d = a.d;
        args.q = q + q_place;
        args.k = k + k_place;
        args.v = v + k_place;
        args.dout = dout + q_place;
        args.q_stride = args.dout_stride = args.dq_stride = q_stride;
        args.k_stride = args.v_stride = args.dk_stride = args.dv_stride = k_stride;
        args.dq = reinterpret_cast<float*>(call.outputs[0]) + q_place;
        args.dk = reinterpret_cast<float*>(call.outputs[1]) + k_place;
        args.dv = reinterpret_cast<float*>(call.outputs[2]) + k_place;
        args.accumulate = member > 0;
        args.scale = a.scale;
        args.causal = a.causal;
        args.keep = keep;
        args.dropout = dropout;
        args.head = static_cast<std::uint32_t>(head);
        args.example = a.example(call, task.sequence);
        args.rounding = rounder.rounding();
        args.scratch = scratch;
        call.kernels.attention_backward(args);
        rounding.round_rows(args.dq, at.q_length, a.d, q_stride);
      }
      float* const dk = reinterpret_cast<float*>(call.outputs[1]) + k_place;
      float* const dv = reinterpret_cast<float*>(call.outputs[2]) + k_place;
      rounding.round_rows(dk, at.k_length, a.d, k_stride);
      rounding.round_rows(dv, at.k_length, a.d, k_stride);
    };
    run_attention_tasks(call, sequences, std::move(tasks), run);
  }

 private:
  WeightedAttention shape_;
  bool is_bf16_ = false;
};

// Whether the kernels can do it: floats of constant width, and 32-bit integers.
bool is_supported_attention(const Graph& graph, NodeId id, std::size_t first) {
  if (!row_shape(graph.type(graph.input(id, first)))) return false;
  for (const std::size_t operand : {ops::kMask, ops::kOffsets, ops::kRandom, ops::kExamples}) {
    const Value value = graph.input(id, first + operand);
    if (!value.is_none() && graph.type(value).dtype != DType::I32) return false;
  }
  return true;
}

const Register attention{
    CpuKernel{"attention", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                if (!is_supported_attention(graph, id, 0)) return nullptr;
                return std::make_unique<AttentionStep>(WeightedAttention(graph, id, 0));
              }}};
const Register attention_gradient{
    CpuKernel{"attention_gradient", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                if (!is_supported_attention(graph, id, 1)) return nullptr;
                return std::make_unique<AttentionGradientStep>(WeightedAttention(graph, id, 1));
              }}};

}  // namespace
}  // namespace lathe::engine
