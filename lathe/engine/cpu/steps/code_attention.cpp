#include "lathe/ops/code_attention.h"

#include <algorithm>

#include "lathe/engine/cpu/attention_shape.h"
#include "lathe/engine/cpu/code_kernels.h"
#include "lathe/ops/attention_weights.h"

namespace lathe::engine {
namespace {

// code_attention one (sequence, head) at a time, for padded batches with a mask and for packed
// ones.
class CodeAttentionStep final : public Step {
 public:
  explicit CodeAttentionStep(const AttentionShape& shape) : shape_(shape) {}

  void prepare(const Kernels& kernels, std::span<const Tensor* const>) override {
    kernels_ = &code_kernels(*parse_isa(kernels.isa));
  }

  void run_whole(const WholeCall& call) const override {
    const AttentionShape& a = shape_;
    const CodeKernels& table = *kernels_;
    const std::vector<AttentionSequence> sequences = a.sequences(call);
    std::int64_t longest = 0;
    for (const AttentionSequence& at : sequences) longest = std::max(longest, at.k_length);
    const std::int64_t mask_at = table.attention_scratch_bytes(longest, a.d);
    for (AlignedBuffer& buffer : call.scratch) buffer.reserve(mask_at + longest);
    auto* const y = reinterpret_cast<float*>(call.outputs[0]);
    fill_unseeing(sequences, call.outputs[0],
                  a.q_stride() * static_cast<std::int64_t>(sizeof(float)));
    const std::vector<AttentionTask> tasks =
        attention_tasks(a, sequences, std::ssize(call.scratch), table.attention_tile);
    PackedPairs packed(a, sequences, tasks, table.attention_packed_bytes(longest, a.d),
                       call.shared);
    const auto run = [&](const AttentionTask& task, int thread) {
      const AttentionSequence& at = sequences[task.sequence];
      std::byte* const scratch = call.scratch[static_cast<std::size_t>(thread)].data();
      const std::int64_t q_place = at.q_start * a.q_stride() + task.head * a.d;
      const std::int64_t k_place =
          at.k_start * a.k_stride() + task.head / (a.heads / a.kv_heads) * a.d;
      const auto numbers = [&](std::size_t operand) {
        return reinterpret_cast<const std::int8_t*>(call.inputs[operand]);
      };
      const auto scales = [&](std::size_t operand) {
        return reinterpret_cast<const float*>(call.inputs[operand]);
      };
      CodeAttentionArgs args{};
      args.lq = at.q_length;
      args.lk = at.k_length;
      args.d = a.d;
      args.q_begin = task.q_begin;
      args.q_end = task.q_end;
      args.q = numbers(ops::kQuery) + q_place;
      args.k = numbers(ops::kKey) + k_place;
      args.v = numbers(ops::kValue) + k_place;
      args.q_scales = scales(ops::kQueryScales) + at.q_start;
      args.k_scales = scales(ops::kKeyScales) + at.k_start;
      args.v_scales = scales(ops::kValueScales) + at.k_start;
      args.out = y + q_place;
      args.q_stride = args.out_stride = a.q_stride();
      args.k_stride = a.k_stride();
      args.scale = a.scale;
      args.causal = a.causal;
      args.keep = a.keep(call, at, reinterpret_cast<float*>(scratch + mask_at));
      args.scratch = scratch;
      args.packed = packed.find(task, [&](void* to) { table.attention_pack(args, to); });
      table.attention(args);
    };
    run_attention_tasks(call, sequences, tasks, run);
  }

  KernelChoice choice() const override { return {kernels_->name, "codes"}; }

 private:
  AttentionShape shape_;
  const CodeKernels* kernels_ = nullptr;
};

std::unique_ptr<Step> make_code_attention(const Graph& graph, NodeId id) {
  if (!graph.type(graph.input(id, ops::kQuery)).axis(-1).is_constant()) return nullptr;
  for (const std::size_t operand : {ops::kMask, ops::kOffsets}) {
    const Value value = graph.input(id, operand);
    if (!value.is_none() && graph.type(value).dtype != DType::I32) return nullptr;
  }
  return std::make_unique<CodeAttentionStep>(AttentionShape(graph, id, 0));
}

const Register code_attention{CpuKernel{"code_attention", make_code_attention}};

}  // namespace
}  // namespace lathe::engine
