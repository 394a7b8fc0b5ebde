#include <cmath>

#include "lathe/engine/cuda/cuda_step.h"
#include "lathe/ops/cache_rows.h"

namespace lathe::engine {
namespace {

cuda::CacheKind kind_of(DType dtype) {
  if (dtype == DType::BF16) return cuda::CacheKind::Bf16;
  return dtype == DType::I8 ? cuda::CacheKind::Int8 : cuda::CacheKind::Float;
}

class CachedAttentionStep final : public CudaStep {
 public:
  std::vector<CudaInPlace> in_place() const override { return {{1, 3}, {2, 4}}; }

  void launch(const CudaCall& call) const override {
    call.kernels.cached_attention(*cached_attention(call), call.stream);
  }

  std::optional<cuda::CachedAttentionArgs> cached_attention(const CudaCall& call) const override {
    const AttributeReader attributes = call.graph.attribute(call.node);
    const auto heads = static_cast<std::int32_t>(attributes.integer("heads"));
    const auto kv_heads = static_cast<std::int32_t>(attributes.integer("kv_heads"));
    const auto d = static_cast<std::int32_t>(call.type(0).axis(-1).constant()) / heads;
    const double scale = attributes.real("scale");
    const ops::CacheLayout layout{call.type(1).dtype, kv_heads == 0 ? heads : kv_heads, d};
    return cuda::CachedAttentionArgs{
        .q = call.input(0),
        .k = call.input(1),
        .v = call.input(2),
        .k_cache = call.inputs[3],
        .v_cache = call.inputs[4],
        .offsets = call.integers(5),
        .starts = call.integers(6),
        .lengths = call.integers(7),
        .y = call.output(0),
        .new_k = call.outputs[1],
        .new_v = call.outputs[2],
        .kind = kind_of(layout.dtype),
        .row_bytes = layout.row_bytes(),
        .first_scale = layout.first_scale(),
        .heads = heads,
        .kv_heads = static_cast<std::int32_t>(layout.heads),
        .d = d,
        .scale = static_cast<float>(scale == 0 ? 1 / std::sqrt(double{1} * d) : scale),
        .rows = call.sizes.capacity(call.type(1).axis(0)),
        .tokens = call.extent(call.type(0).axis(0)),
        .sequences = call.extent(call.input_type(6).axis(0)),
        .rotation = {},
        .may_begin_early = false,
        .fault = call.fault};
  }
};

std::unique_ptr<CudaStep> make_cached_attention(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> q = cuda_rows(graph.types(id)[0]);
  if (!q || !graph.types(id)[1].num_elements().is_constant()) return nullptr;
  for (const std::size_t operand : {5, 6, 7})
    if (!is_integer(graph, graph.input(id, operand))) return nullptr;
  if (q->width / graph.attribute(id).integer("heads") > cuda::kMostWideHeadSize) return nullptr;
  return std::make_unique<CachedAttentionStep>();
}

// A token beyond the real ones has no sequence and writes zeros.
const Register cached_attention{
    CudaKernel{"cached_attention", make_cached_attention, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
