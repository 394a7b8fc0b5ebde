// An op of one's own: what it is, and how a GPU computes it.

#include "soft_clip.h"

#include <lathe/core/op.h>
#include <lathe/core/plugin.h>
#include <lathe/engine/cuda/cuda_step.h>

#include <cmath>

namespace {

using namespace lathe;

// soft_clip(x) {limit}: limit * tanh(x / limit), nearly x where x is small, never beyond the limit.
Op soft_clip() {
  Op op;
  op.name = "soft_clip";
  op.summary = "limit * tanh(x / limit)";
  op.operands = {{.name = "x", .role = OperandRole::Input}};
  op.attributes = {{.name = "limit", .default_value = 1.0, .summary = "what no result is beyond"}};
  // The shape rule: as x. It is also the place to refuse what makes no sense.
  op.infer = [](const OpCall& call) {
    if (call.attributes().real("limit") <= 0) fail("soft_clip: limit must be positive");
    return std::vector<Type>{call.input(0)};
  };
  op.flops = [](const OpCall& call) { return Size(3) * call.input(0).num_elements(); };
  // The definition that every kernel is compared with. The CPU runs it, too.
  op.reference = [](const KernelCall& call) {
    const double limit = call.attributes.real("limit");
    const std::span<const float> x = call.input(0).data<float>();
    const std::span<float> y = call.outputs[0].mutable_data<float>();
    for (std::size_t i = 0; i < x.size(); ++i)
      y[i] = static_cast<float>(limit * std::tanh(static_cast<double>(x[i]) / limit));
  };
  op.is_elementwise = true;
  op.is_per_token = true;
  op.is_differentiable = false;
  op.examples = {"soft_clip(f32[T,8]) {limit=0.5}"};
  return op;
}

#ifdef SOFT_CLIP_CUDA
// A step is made once for each node; its launch is captured and replayed with everything else.
// Rows up to a bucket hold zeros, and so do their results.
engine::CudaKernel soft_clip_kernel() {
  engine::CudaKernel kernel;
  kernel.name = "soft_clip";
  kernel.make = [](const Graph& graph, NodeId id) -> std::unique_ptr<engine::CudaStep> {
    if (!engine::is_float(graph, graph.input(id, 0))) return nullptr;
    const auto limit = static_cast<float>(graph.attribute(id).real("limit"));
    return engine::cuda_step([limit](const engine::CudaCall& call) {
      launch_soft_clip(call.input(0), call.output(0),
                       call.extent(call.type(0).num_elements()).capacity, limit, call.stream);
    });
  };
  kernel.takes_padding = engine::always_takes_padding;
  return kernel;
}
#endif

void add_records() {
  Registry<Op>::instance().add(soft_clip());
#ifdef SOFT_CLIP_CUDA
  Registry<engine::CudaKernel>::instance().add(soft_clip_kernel());
#endif
}

}  // namespace

extern "C" const lathe::Plugin* lathe_plugin() {
  static const lathe::Plugin plugin{.name = "soft_clip", .add = add_records};
  return &plugin;
}
