#include <algorithm>
#include <cmath>
#include <numeric>

#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// Below this many (sequence, head) pairs a long sequence is cut into ranges of queries, so that a
// batch of one still feeds several threads. The bits of a row do not depend on its range.
constexpr std::int64_t kFewTasks = 16;
constexpr std::int64_t kQueryRange = 64;

struct Task {
  std::int64_t sequence, head, q_begin, q_end;
};

// Attention one (sequence, head) at a time, for padded batches with a mask and for packed ones.
class AttentionStep final : public Step {
 public:
  AttentionStep(std::int64_t heads, std::int64_t kv_heads, std::int64_t d, float scale, bool causal,
                bool is_packed)
      : heads_(heads), kv_heads_(kv_heads), d_(d), scale_(scale), causal_(causal),
        is_packed_(is_packed) {}

  void run_whole(const WholeCall& call) const override {
    const Graph& graph = call.graph;
    // Where each sequence's queries and keys start, and how many there are.
    std::vector<std::int64_t> q_start, k_start, q_length, k_length;
    if (is_packed_) {
      const auto* offsets = reinterpret_cast<const std::int32_t*>(call.inputs[4]);
      const std::int64_t tokens =
          graph.type(graph.input(call.node, 0)).shape[0].evaluate(call.symbols);
      const std::int64_t sequences =
          graph.type(graph.input(call.node, 4)).shape[0].evaluate(call.symbols) - 1;
      for (std::int64_t s = 0; s < sequences; ++s) {
        if (offsets[s] < 0 || offsets[s + 1] < offsets[s] || offsets[s + 1] > tokens)
          fail("offsets {} to {} of sequence {} do not lie in the {} tokens", offsets[s],
               offsets[s + 1], s, tokens);
        q_start.push_back(offsets[s]);
        q_length.push_back(offsets[s + 1] - offsets[s]);
      }
      k_start = q_start;
      k_length = q_length;
    } else {
      const std::vector<std::int64_t> q = graph.type(graph.input(call.node, 0)).dims(call.symbols);
      const std::int64_t lk = graph.type(graph.input(call.node, 1)).shape[1].evaluate(call.symbols);
      for (std::int64_t b = 0; b < q[0]; ++b) {
        q_start.push_back(b * q[1]);
        k_start.push_back(b * lk);
        q_length.push_back(q[1]);
        k_length.push_back(lk);
      }
    }

    std::vector<Task> tasks;
    const auto sequences = static_cast<std::int64_t>(q_start.size());
    const bool split = sequences * heads_ < kFewTasks;
    std::int64_t scratch = 0;
    for (std::int64_t s = 0; s < sequences; ++s) {
      const std::int64_t lq = q_length[static_cast<std::size_t>(s)];
      const std::int64_t lk = k_length[static_cast<std::size_t>(s)];
      const std::int64_t range = split ? kQueryRange : std::max<std::int64_t>(lq, 1);
      for (std::int64_t begin = 0; begin < lq; begin += range)
        for (std::int64_t head = 0; head < heads_; ++head)
          tasks.push_back({s, head, begin, std::min(lq, begin + range)});
      scratch = std::max(scratch, call.kernels.attention_scratch_size(lq, lk, d_) *
                                          static_cast<std::int64_t>(sizeof(float)) +
                                      lk);
    }
    // Long ones first: the last task to start should be a short one.
    std::stable_sort(tasks.begin(), tasks.end(), [&](const Task& a, const Task& b) {
      return q_length[static_cast<std::size_t>(a.sequence)] >
             q_length[static_cast<std::size_t>(b.sequence)];
    });
    for (AlignedBuffer& buffer : call.scratch) buffer.reserve(scratch);

    const auto* mask = call.inputs.size() > 3
                           ? reinterpret_cast<const std::int32_t*>(call.inputs[3])
                           : nullptr;
    const std::int64_t group = heads_ / kv_heads_;
    call.parallel(static_cast<std::int64_t>(tasks.size()), [&](std::int64_t index, int thread) {
      const Task& task = tasks[static_cast<std::size_t>(index)];
      const auto s = static_cast<std::size_t>(task.sequence);
      const std::int64_t lq = q_length[s], lk = k_length[s];
      float* const floats = call.scratch[static_cast<std::size_t>(thread)].floats();
      std::uint8_t* keep = nullptr;
      if (mask != nullptr) {
        keep = reinterpret_cast<std::uint8_t*>(
            floats + call.kernels.attention_scratch_size(lq, lk, d_));
        for (std::int64_t i = 0; i < lk; ++i)
          keep[i] = mask[task.sequence * lk + i] != 0 ? 1 : 0;
      }
      const std::int64_t q_stride = heads_ * d_, k_stride = kv_heads_ * d_;
      const auto at = [&](std::size_t operand, std::int64_t row, std::int64_t stride,
                          std::int64_t head) {
        return reinterpret_cast<const float*>(call.inputs[operand]) + row * stride + head * d_;
      };
      call.kernels.attention(
          {.lq = lq,
           .lk = lk,
           .d = d_,
           .q_begin = task.q_begin,
           .q_end = task.q_end,
           .q = at(0, q_start[s], q_stride, task.head),
           .k = at(1, k_start[s], k_stride, task.head / group),
           .v = at(2, k_start[s], k_stride, task.head / group),
           .out = reinterpret_cast<float*>(call.outputs[0]) + q_start[s] * q_stride +
                  task.head * d_,
           .q_stride = q_stride,
           .k_stride = k_stride,
           .v_stride = k_stride,
           .out_stride = q_stride,
           .scale = scale_,
           .causal = causal_,
           .keep = keep,
           .row_log_sum_exp = nullptr,
           .scratch = floats});
    });
  }

 private:
  std::int64_t heads_, kv_heads_, d_;
  float scale_;
  bool causal_, is_packed_;
};

std::unique_ptr<Step> make_attention(const Graph& graph, NodeId id) {
  const AttributeReader attributes = graph.attribute(id);
  const std::optional<RowShape> q = row_shape(graph.type(graph.input(id, 0)));
  if (!q) return nullptr;
  const Value mask = graph.input(id, 3), offsets = graph.input(id, 4);
  if (!mask.is_none() && graph.type(mask).dtype != DType::I32) return nullptr;
  if (!offsets.is_none() && graph.type(offsets).dtype != DType::I32) return nullptr;
  const std::int64_t heads = attributes.integer("heads");
  const std::int64_t kv_heads =
      attributes.integer("kv_heads") == 0 ? heads : attributes.integer("kv_heads");
  const std::int64_t d = q->width / heads;
  double scale = attributes.real("scale");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(d));
  return std::make_unique<AttentionStep>(heads, kv_heads, d, static_cast<float>(scale),
                                         attributes.flag("causal"), !offsets.is_none());
}

const Register attention{CpuKernel{"attention", make_attention}};

}  // namespace
}  // namespace lathe::engine
