#include <algorithm>

#include "lathe/engine/cuda/cuda_step.h"
#include "lathe/ops/rope_turn.h"

namespace lathe::engine {
namespace {

// rope(x, positions) and rope_gradient(dy, positions), which turns back.
class RopeStep final : public CudaStep {
 public:
  RopeStep(const Graph& graph, NodeId id, const CudaRows& x)
      : rows_(x.rows), is_forward_(graph.is(id, "rope")) {
    const AttributeReader attributes = graph.attribute(id);
    heads_ = attributes.integer("heads");
    head_size_ = x.width / heads_;
    is_interleaved_ = attributes.flag("interleaved");
    theta_ = attributes.real("theta");
    scaling_ = ops::rope_scaling(attributes);
    frequencies_ = ops::rope_frequencies(attributes, head_size_);
  }

  void launch(const CudaCall& call) const override {
    call.kernels.rope({.x = call.input(0),
                       .positions = call.integers(1),
                       .y = call.output(0),
                       .heads = heads_,
                       .half = head_size_ / 2,
                       .is_interleaved = is_interleaved_,
                       .theta = theta_,
                       .scaling = scaling_,
                       .direction = is_forward_ ? 1.0 : -1.0,
                       .rows = call.extent(rows_)},
                      call.stream);
  }

  std::optional<cuda::TokenRotation> token_rotation(const CudaCall& call) const override {
    if (!is_forward_ || head_size_ > cuda::kMostHeadSize) return std::nullopt;
    cuda::TokenRotation rotation{
        .is_there = true, .is_interleaved = is_interleaved_, .positions = call.integers(1)};
    std::copy(frequencies_.begin(), frequencies_.end(), rotation.frequencies);
    return rotation;
  }

 private:
  Size rows_;
  bool is_forward_, is_interleaved_ = false;
  std::int64_t heads_ = 0, head_size_ = 0;
  double theta_ = 0;
  ops::RopeScaling scaling_;
  std::vector<double> frequencies_;
};

std::unique_ptr<CudaStep> make_rope(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> x = cuda_rows(graph.types(id)[0]);
  if (!x || !is_integer(graph, graph.input(id, 1))) return nullptr;
  return std::make_unique<RopeStep>(graph, id, *x);
}

const Register rope{CudaKernel{"rope", make_rope, always_takes_padding}};
const Register rope_gradient{CudaKernel{"rope_gradient", make_rope, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
