#include <algorithm>
#include <cmath>
#include <cstring>

#include "lathe/core/number_format.h"
#include "lathe/engine/cpu/code_kernels.h"
#include "lathe/engine/cpu/encode_args.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/ops/cache_rows.h"

namespace lathe::engine {
namespace {

// Tokens of a sequence up to which each attends to the cache as it lies; more of them share packed
// keys and values.
constexpr std::int64_t kFewTokens = 4;
// Queries of a task, so that one long prompt feeds several threads.
constexpr std::int64_t kCachedRange = 64;

// What a run adds to one sequence: `count` tokens from row `token` on, behind `length` keys.
struct CachedPart {
  std::int64_t token, count, start, length;
};

struct CachedTask {
  CachedPart part;
  std::int64_t head;  // of the keys, or of the queries where many share packed keys
  std::int64_t begin, end;
};

CacheKind kind_of(DType dtype) {
  if (dtype == DType::BF16) return CacheKind::Bf16;
  return dtype == DType::I8 ? CacheKind::Int8 : CacheKind::Float;
}

class CachedAttentionStep final : public Step {
 public:
  CachedAttentionStep(std::int64_t heads, const ops::CacheLayout& layout, float scale)
      : heads_(heads),
        kv_heads_(layout.heads),
        d_(layout.d),
        scale_(scale),
        layout_(layout),
        kind_(kind_of(layout.dtype)) {}
  std::vector<InPlace> in_place() const override { return {{1, 3}, {2, 4}}; }

  void run_whole(const WholeCall& call) const override {
    const std::vector<CachedPart> parts = read_parts(call);
    append(call, parts, 1, 3);
    append(call, parts, 2, 4);
    std::vector<CachedTask> tasks;
    std::int64_t floats = 0;
    for (const CachedPart& part : parts) {
      const std::int64_t keys = part.length + part.count;
      if (part.count <= kFewTokens) {
        for (std::int64_t head = 0; head < kv_heads_ && part.count > 0; ++head)
          tasks.push_back({part, head, 0, part.count});
        floats = std::max(floats, call.kernels.attend_cache_scratch_size(keys, heads_ / kv_heads_));
        continue;
      }
      for (std::int64_t begin = 0; begin < part.count; begin += kCachedRange)
        for (std::int64_t head = 0; head < heads_; ++head)
          tasks.push_back({part, head, begin, std::min(part.count, begin + kCachedRange)});
      floats = std::max(floats, call.kernels.attention_scratch_size(part.count, keys, d_) +
                                    (is_float() ? 0 : 2 * keys * d_));
    }
    for (AlignedBuffer& buffer : call.scratch)
      buffer.reserve(floats * static_cast<std::int64_t>(sizeof(float)));
    call.parallel(static_cast<std::int64_t>(tasks.size()), [&](std::int64_t index, int thread) {
      const CachedTask& task = tasks[static_cast<std::size_t>(index)];
      float* const scratch = call.scratch[static_cast<std::size_t>(thread)].floats();
      if (task.part.count <= kFewTokens)
        attend_few(call, task, scratch);
      else
        attend_many(call, task, scratch);
    });
  }

 private:
  static const float* input(const WholeCall& call, std::size_t index) {
    return reinterpret_cast<const float*>(call.inputs[index]);
  }
  static float* output(const WholeCall& call, std::size_t index) {
    return reinterpret_cast<float*>(call.outputs[index]);
  }
  bool is_float() const { return kind_ == CacheKind::Float; }
  std::int64_t q_width() const { return heads_ * d_; }
  std::int64_t k_width() const { return kv_heads_ * d_; }
  // The rows of a sequence's head.
  CacheRows cache_rows(const WholeCall& call, const CachedPart& part, std::int64_t head) const {
    const std::int64_t place =
        part.start * layout_.row_bytes() + head * d_ * size_of(layout_.dtype);
    return {.kind = kind_,
            .d = d_,
            .k = call.outputs[1] + place,
            .v = call.outputs[2] + place,
            .stride = layout_.row_bytes(),
            .scales = layout_.first_scale() + head * (4 - d_)};
  }

  static std::vector<CachedPart> read_parts(const WholeCall& call) {
    const auto extent = [&](std::size_t index) {
      return call.graph.type(call.graph.input(call.node, index)).dims(call.symbols)[0];
    };
    const auto integers = [&](std::size_t index) {
      return reinterpret_cast<const std::int32_t*>(call.inputs[index]);
    };
    const std::int64_t tokens = extent(0), rows = extent(3), sequences = extent(6);
    const std::int32_t *const offsets = integers(5), *const starts = integers(6),
                              *const lengths = integers(7);
    std::vector<CachedPart> parts;
    for (std::int64_t s = 0; s < sequences; ++s) {
      if (offsets[s] < 0 || offsets[s + 1] < offsets[s] || offsets[s + 1] > tokens)
        fail("offsets {} to {} of sequence {} do not lie in the {} tokens", offsets[s],
             offsets[s + 1], s, tokens);
      const CachedPart part{offsets[s], offsets[s + 1] - offsets[s], starts[s], lengths[s]};
      if (part.start < 0 || part.length < 0 || part.start + part.length + part.count > rows)
        fail("cached_attention: sequence {} needs rows {} to {}, but the cache has {}", s,
             part.start, part.start + part.length + part.count, rows);
      parts.push_back(part);
    }
    return parts;
  }

  // Puts new rows behind those of their sequences. Where the plan could not let the result lie in
  // the state, the others are copied first.
  void append(const WholeCall& call, const std::vector<CachedPart>& parts, std::size_t fresh,
              std::size_t cache) const {
    const std::size_t result = fresh;
    if (call.outputs[result] != call.inputs[cache]) {
      const Type& type = call.graph.type(call.graph.input(call.node, cache));
      std::memcpy(call.outputs[result], call.inputs[cache],
                  static_cast<std::size_t>(type.num_bytes().evaluate(call.symbols)));
    }
    for (const CachedPart& part : parts)
      write_rows(call, input(call, fresh) + part.token * k_width(), part.count,
                 call.outputs[result] + (part.start + part.length) * layout_.row_bytes());
  }

  void write_rows(const WholeCall& call, const float* from, std::int64_t count,
                  std::byte* to) const {
    if (is_float()) {
      std::memcpy(to, from, static_cast<std::size_t>(count * layout_.row_bytes()));
      return;
    }
    if (kind_ == CacheKind::Bf16) {
      call.kernels.round_to_bf16(from, count * k_width(), reinterpret_cast<std::uint16_t*>(to));
      return;
    }
    // A head is a row to encode, and the scales of a token's heads lie side by side.
    EncodeArgs args = *encode_args(*parse_format("int:8,dynamic"), d_);
    std::vector<std::int32_t> zeros(static_cast<std::size_t>(kv_heads_));
    args.rows = kv_heads_;
    args.zeros = zeros.data();
    const CodeKernels& codes = code_kernels(*parse_isa(call.kernels.isa));
    for (std::int64_t i = 0; i < count; ++i) {
      std::byte* const row = to + i * layout_.row_bytes();
      args.x = from + i * k_width();
      args.numbers = reinterpret_cast<std::int8_t*>(row);
      args.scales = reinterpret_cast<float*>(row + layout_.first_scale());
      codes.encode(args);
    }
  }

  void attend_few(const WholeCall& call, const CachedTask& task, float* scratch) const {
    const std::int64_t group = heads_ / kv_heads_;
    const CacheRows cache = cache_rows(call, task.part, task.head);
    for (std::int64_t i = task.begin; i < task.end; ++i) {
      const std::int64_t q_place = (task.part.token + i) * q_width() + task.head * group * d_;
      call.kernels.attend_cache({.lk = task.part.length + i + 1,
                                 .group = group,
                                 .q = input(call, 0) + q_place,
                                 .cache = cache,
                                 .out = output(call, 0) + q_place,
                                 .scale = scale_,
                                 .scratch = scratch});
    }
  }

  void attend_many(const WholeCall& call, const CachedTask& task, float* scratch) const {
    const std::int64_t group = heads_ / kv_heads_;
    const std::int64_t q_place = task.part.token * q_width() + task.head * d_;
    const CacheRows cache = cache_rows(call, task.part, task.head / group);
    AttentionArgs args{};
    args.lq = task.part.count;
    args.lk = task.part.length + task.part.count;
    args.d = d_;
    args.q_begin = task.begin;
    args.q_end = task.end;
    args.q = input(call, 0) + q_place;
    args.k = reinterpret_cast<const float*>(cache.k);
    args.v = reinterpret_cast<const float*>(cache.v);
    args.out = output(call, 0) + q_place;
    args.q_stride = args.out_stride = q_width();
    args.k_stride = args.v_stride = k_width();
    args.scale = scale_;
    args.causal = true;
    args.scratch = scratch;
    if (!is_float()) {
      float* const keys = scratch + call.kernels.attention_scratch_size(args.lq, args.lk, d_);
      float* const values = keys + args.lk * d_;
      call.kernels.widen_cache(cache, args.lk, keys, values);
      args.k = keys;
      args.v = values;
      args.k_stride = args.v_stride = d_;
    }
    call.kernels.attention(args);
  }

  std::int64_t heads_, kv_heads_, d_;
  float scale_;
  ops::CacheLayout layout_;
  CacheKind kind_;
};

std::unique_ptr<Step> make_cached_attention(const Graph& graph, NodeId id) {
  const std::optional<RowShape> q = row_shape(graph.types(id)[0]);
  if (!q || !graph.types(id)[1].num_elements().is_constant()) return nullptr;
  for (const std::size_t operand : {5, 6, 7})
    if (graph.type(graph.input(id, operand)).dtype != DType::I32) return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  const std::int64_t heads = attributes.integer("heads");
  const std::int64_t kv_heads = attributes.integer("kv_heads");
  const std::int64_t d = q->width / heads;
  const double scale = attributes.real("scale");
  return std::make_unique<CachedAttentionStep>(
      heads, ops::CacheLayout{graph.types(id)[1].dtype, kv_heads == 0 ? heads : kv_heads, d},
      static_cast<float>(scale == 0 ? 1 / std::sqrt(static_cast<double>(d)) : scale));
}

const Register cached_attention{CpuKernel{"cached_attention", make_cached_attention}};

}  // namespace
}  // namespace lathe::engine
