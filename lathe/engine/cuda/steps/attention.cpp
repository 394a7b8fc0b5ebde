#include <algorithm>
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

// Whether the kernels can do it, of all float or all bfloat16. Weights rounded to a format have
// none yet.
bool is_supported(const Graph& graph, NodeId id, std::size_t first) {
  const Type& q = graph.type(graph.input(id, first));
  if (q.dtype != DType::F32 && q.dtype != DType::BF16) return false;
  if (q.shape.empty() || !q.shape.back().is_constant() || q.shape.back().constant() == 0)
    return false;
  for (const std::size_t operand : {first + 1, first + 2, first == 0 ? first : 0})
    if (graph.type(graph.input(id, operand)).dtype != q.dtype) return false;
  const AttributeReader attributes = graph.attribute(id);
  if (!attributes.text("weight_format").empty()) return false;
  if (q.shape.back().constant() / attributes.integer("heads") > cuda::kMostWideHeadSize)
    return false;
  for (const std::size_t operand : {kMask, kOffsets, kExamples})
    if (has_operand(graph, id, first + operand) &&
        !is_integer(graph, graph.input(id, first + operand)))
      return false;
  return !has_operand(graph, id, first + kRandom) ||
         graph.type(graph.input(id, first + kRandom)).dtype == DType::I32;
}

// Where the elements of an operand or a result lie: as bfloat16 where that is the precision.
const std::byte* elements_of(const CudaCall& call, std::size_t operand) {
  return call.operand(operand).data;
}
std::byte* result_of(const CudaCall& call, std::size_t result) {
  std::byte* const half = call.output_halves[result];
  return half != nullptr ? half : call.outputs[result];
}

// Attention or its gradient as launches that read and write bfloat16 where that is the precision.
template <typename Bytes, typename Launch>
class AttentionStep final : public CudaStep {
 public:
  AttentionStep(std::vector<std::size_t> operands, std::vector<std::size_t> results, Bytes bytes,
                Launch launch)
      : operands_(std::move(operands)),
        results_(std::move(results)),
        bytes_(std::move(bytes)),
        launch_(std::move(launch)) {}
  std::vector<std::size_t> half_operands() const override { return operands_; }
  std::vector<std::size_t> half_results() const override { return results_; }
  bool can_write_half(std::size_t result) const override {
    return std::find(results_.begin(), results_.end(), result) != results_.end();
  }
  std::int64_t scratch_bytes(const Graph& graph, NodeId id, const CudaSizes& sizes) const override {
    return bytes_(graph, id, sizes);
  }
  void launch(const CudaCall& call) const override {
    launch_(call);
    for (const std::size_t result : results_) {
      if (call.output_halves[result] == nullptr || call.outputs[result] == nullptr) continue;
      call.kernels.cast({.from = cuda::Number::BF16,
                         .to = cuda::Number::F32,
                         .x = call.output_halves[result],
                         .y = call.outputs[result],
                         .count = call.extent(call.type(result).num_elements())},
                        call.stream);
    }
  }

 private:
  std::vector<std::size_t> operands_, results_;
  Bytes bytes_;
  Launch launch_;
};

// `operands` and `results` of elements; those of a graph that has bfloat16 itself need no copies.
template <typename Bytes, typename Launch>
std::unique_ptr<CudaStep> attention_step(const Graph& graph, NodeId id,
                                         std::vector<std::size_t> operands,
                                         std::vector<std::size_t> results, Bytes bytes,
                                         Launch launch) {
  if (!is_float(graph, graph.input(id, operands.front()))) operands = results = {};
  return std::make_unique<AttentionStep<Bytes, Launch>>(std::move(operands), std::move(results),
                                                        std::move(bytes), std::move(launch));
}

cuda::AttentionShape shape_of(const CudaCall& call, std::size_t first) {
  const AttributeReader attributes = call.graph.attribute(call.node);
  const Type& q = call.input_type(first);
  const Type& k = call.input_type(first + 1);
  cuda::AttentionShape shape;
  shape.precision = q.dtype == DType::BF16 ? cuda::Precision::Bf16 : call.precision;
  if (shape.precision == cuda::Precision::Bf16) shape.elements = cuda::Number::BF16;
  shape.q = elements_of(call, first);
  shape.k = elements_of(call, first + 1);
  shape.v = elements_of(call, first + 2);
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

// How much of each there is, at most.
struct Capacities {
  std::int64_t queries, keys, sequences, heads, d;
};
Capacities capacities_of(const Graph& graph, NodeId id, std::size_t first, const CudaSizes& sizes) {
  const Type& q = graph.type(graph.input(id, first));
  const Type& k = graph.type(graph.input(id, first + 1));
  const std::int64_t heads = graph.attribute(id).integer("heads");
  const std::int64_t d = q.axis(-1).constant() / heads;
  if (!has_operand(graph, id, first + kOffsets))
    return {sizes.capacity(q.axis(0) * q.axis(1)), sizes.capacity(k.axis(0) * k.axis(1)),
            sizes.capacity(q.axis(0)), heads, d};
  const Type& offsets = graph.type(graph.input(id, first + kOffsets));
  return {sizes.capacity(q.axis(0)), sizes.capacity(k.axis(0)),
          sizes.capacity(offsets.axis(0) - Size(1)), heads, d};
}
std::int64_t scratch_of(const Capacities& of) {
  return cuda::attention_scratch(of.keys, of.sequences, of.heads, of.d);
}
std::int64_t gradient_scratch_of(const Capacities& of) {
  return cuda::attention_gradient_scratch(of.queries, of.keys, of.sequences, of.heads, of.d);
}

// attention, and attention_with_statistics, which has one more result.
std::unique_ptr<CudaStep> make_attention(const Graph& graph, NodeId id) {
  if (!is_supported(graph, id, 0)) return nullptr;
  return attention_step(
      graph, id, {0, 1, 2}, {0},
      [](const Graph& g, NodeId node, const CudaSizes& sizes) {
        return scratch_of(capacities_of(g, node, 0, sizes));
      },
      [](const CudaCall& call) {
        call.kernels.attention({.shape = shape_of(call, 0),
                                .y = result_of(call, 0),
                                .statistics = call.outputs.size() > 1 ? call.output(1) : nullptr,
                                .scratch = reinterpret_cast<float*>(call.scratch)},
                               call.stream);
      });
}

cuda::AttentionGradientArgs gradient_args(const CudaCall& call, std::size_t first) {
  return {.shape = shape_of(call, first),
          .dout = elements_of(call, 0),
          .y = nullptr,
          .statistics = nullptr,
          .dq = result_of(call, 0),
          .dk = result_of(call, 1),
          .dv = result_of(call, 2),
          .scratch = nullptr};
}

std::unique_ptr<CudaStep> make_gradient_with_statistics(const Graph& graph, NodeId id) {
  if (!is_supported(graph, id, 3)) return nullptr;
  return attention_step(
      graph, id, {0, 1, 3, 4, 5}, {0, 1, 2},
      [](const Graph& g, NodeId node, const CudaSizes& sizes) {
        return gradient_scratch_of(capacities_of(g, node, 3, sizes));
      },
      [](const CudaCall& call) {
        cuda::AttentionGradientArgs args = gradient_args(call, 3);
        args.y = elements_of(call, 1);
        args.statistics = call.input(2);
        args.scratch = reinterpret_cast<float*>(call.scratch);
        call.kernels.attention_gradient(args, call.stream);
      });
}

// The gradient of an attention that is not in the graph: the forward pass is done for it, into
// scratch.
std::unique_ptr<CudaStep> make_gradient(const Graph& graph, NodeId id) {
  if (!is_supported(graph, id, 1)) return nullptr;
  const auto y_bytes = [](const Capacities& of) {
    return (of.queries * of.heads * of.d * std::int64_t{sizeof(float)} + 255) / 256 * 256;
  };
  const auto statistics_bytes = [](const Capacities& of) {
    return (of.queries * of.heads * cuda::kAttentionStatistics * std::int64_t{sizeof(float)} +
            255) /
           256 * 256;
  };
  return attention_step(
      graph, id, {0, 1, 2, 3}, {0, 1, 2},
      [=](const Graph& g, NodeId node, const CudaSizes& sizes) {
        const Capacities of = capacities_of(g, node, 1, sizes);
        return y_bytes(of) + statistics_bytes(of) +
               std::max(scratch_of(of), gradient_scratch_of(of));
      },
      [=](const CudaCall& call) {
        const Capacities of = capacities_of(call.graph, call.node, 1, call.sizes);
        std::byte* const y = call.scratch;
        auto* const statistics = reinterpret_cast<float*>(y + y_bytes(of));
        auto* const scratch = reinterpret_cast<float*>(y + y_bytes(of) + statistics_bytes(of));
        cuda::AttentionGradientArgs args = gradient_args(call, 1);
        call.kernels.attention(
            {.shape = args.shape, .y = y, .statistics = statistics, .scratch = scratch},
            call.stream);
        args.y = y;
        args.statistics = statistics;
        args.scratch = scratch;
        call.kernels.attention_gradient(args, call.stream);
      });
}

const Register attention{CudaKernel{"attention", make_attention, always_takes_padding}};
const Register with_statistics{
    CudaKernel{"attention_with_statistics", make_attention, always_takes_padding}};
const Register gradient{CudaKernel{"attention_gradient", make_gradient, always_takes_padding}};
const Register gradient_with_statistics{CudaKernel{
    "attention_gradient_with_statistics", make_gradient_with_statistics, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
