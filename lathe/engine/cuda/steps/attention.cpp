#include <cmath>

#include "lathe/engine/cuda/cuda_step.h"
#include "lathe/ops/dropout_mask.h"

namespace lathe::engine {
namespace {

// attention(q, k, v, mask, offsets, random, examples) and attention_gradient(dout, q, ...).
// Operands counted from q, as the op has them.
constexpr std::size_t kMask = 3, kOffsets = 4, kRandom = 5, kExamples = 6;

bool has_operand(const Graph& graph, NodeId id, std::size_t operand) {
  return operand < graph.inputs(id).size() && !graph.input(id, operand).is_none();
}

// Whether the kernels can do it. Weights rounded to a format have none yet.
bool is_supported(const Graph& graph, NodeId id, std::size_t first) {
  const std::optional<CudaRows> q = cuda_rows(graph.type(graph.input(id, first)));
  if (!q) return false;
  const AttributeReader attributes = graph.attribute(id);
  if (!attributes.text("weight_format").empty()) return false;
  if (q->width / attributes.integer("heads") > cuda::kMostHeadSize) return false;
  for (const std::size_t operand : {kMask, kOffsets, kExamples})
    if (has_operand(graph, id, first + operand) &&
        !is_integer(graph, graph.input(id, first + operand)))
      return false;
  return !has_operand(graph, id, first + kRandom) ||
         graph.type(graph.input(id, first + kRandom)).dtype == DType::I32;
}

cuda::AttentionShape shape_of(const CudaCall& call, std::size_t first) {
  const AttributeReader attributes = call.graph.attribute(call.node);
  const Type& q = call.input_type(first);
  const Type& k = call.input_type(first + 1);
  cuda::AttentionShape shape;
  shape.q = call.input(first);
  shape.k = call.input(first + 1);
  shape.v = call.input(first + 2);
  shape.mask = call.integers(first + kMask);
  shape.offsets = call.integers(first + kOffsets);
  shape.heads = static_cast<std::int32_t>(attributes.integer("heads"));
  shape.kv_heads = static_cast<std::int32_t>(attributes.integer("kv_heads"));
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
  shape.d = static_cast<std::int32_t>(q.axis(-1).constant()) / shape.heads;
  const double scale = attributes.real("scale");
  shape.scale = static_cast<float>(scale == 0 ? 1 / std::sqrt(double{1} * shape.d) : scale);
  shape.is_causal = attributes.flag("causal");
  if (call.has(first + kRandom)) {
    shape.random = reinterpret_cast<const std::int32_t*>(call.inputs[first + kRandom]);
    shape.examples = call.integers(first + kExamples);
    shape.threshold = ops::dropout_threshold(attributes.real("dropout"));
    shape.dropout_scale = static_cast<float>(ops::dropout_scale(shape.threshold));
    shape.site = static_cast<std::uint32_t>(attributes.integer("site"));
  }
  shape.fault = call.fault;
  if (shape.offsets.data == nullptr) {
    shape.lq = call.sizes.capacity(q.axis(1));
    shape.lk = call.sizes.capacity(k.axis(1));
    shape.queries = call.extent(q.axis(0) * q.axis(1));
    shape.keys = call.extent(k.axis(0) * k.axis(1));
    shape.sequences = call.extent(q.axis(0));
  } else {
    // By the types, for sizes may agree by accident.
    shape.only_first = q.axis(0) != k.axis(0);
    shape.queries = call.extent(q.axis(0));
    shape.keys = call.extent(k.axis(0));
    shape.sequences = call.extent(call.input_type(first + kOffsets).axis(0) - Size(1));
  }
  return shape;
}

std::unique_ptr<CudaStep> make_attention(const Graph& graph, NodeId id) {
  if (!is_supported(graph, id, 0)) return nullptr;
  return cuda_step([](const CudaCall& call) {
    call.kernels.attention({.shape = shape_of(call, 0), .y = call.output(0)}, call.stream);
  });
}

std::unique_ptr<CudaStep> make_gradient(const Graph& graph, NodeId id) {
  if (!is_supported(graph, id, 1)) return nullptr;
  const std::int64_t heads = graph.attribute(id).integer("heads");
  const Size rows = cuda_rows(graph.type(graph.input(id, 1)))->rows;
  return cuda_step_with_scratch(
      [=](const Graph&, NodeId, const CudaSizes& sizes) {
        return sizes.capacity(rows) * heads * cuda::kAttentionStatistics *
               static_cast<std::int64_t>(sizeof(float));
      },
      [](const CudaCall& call) {
        call.kernels.attention_gradient({.shape = shape_of(call, 1),
                                         .dout = call.input(0),
                                         .dq = call.output(0),
                                         .dk = call.output(1),
                                         .dv = call.output(2),
                                         .statistics = reinterpret_cast<float*>(call.scratch)},
                                        call.stream);
      });
}

const Register attention{CudaKernel{"attention", make_attention, always_takes_padding}};
const Register gradient{CudaKernel{"attention_gradient", make_gradient, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
