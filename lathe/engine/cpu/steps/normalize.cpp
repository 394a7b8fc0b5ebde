#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// layer_norm(x, weight, bias) and fused_layer_norm(x, residual, weight, bias).
class LayerNormStep final : public Step {
 public:
  LayerNormStep(RowSpace space, float eps, bool has_residual)
      : space_(std::move(space)), eps_(eps), has_residual_(has_residual) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    const std::int64_t n = space_.output_widths[0];
    const std::size_t parameters = has_residual_ ? 2 : 1;
    call.kernels.layer_norm({.rows = call.rows,
                             .n = n,
                             .x = call.input(0),
                             .x_stride = n,
                             .residual = has_residual_ ? call.input(1) : nullptr,
                             .residual_stride = n,
                             .gamma = call.input(parameters),
                             .beta = call.input(parameters + 1),
                             .eps = eps_,
                             .y = call.output(0),
                             .y_stride = n,
                             .mean = nullptr,
                             .rstd = nullptr});
  }

 private:
  RowSpace space_;
  float eps_;
  bool has_residual_;
};

class RmsNormStep final : public Step {
 public:
  RmsNormStep(RowSpace space, float eps) : space_(std::move(space)), eps_(eps) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    const std::int64_t n = space_.output_widths[0];
    call.kernels.rms_norm(
        {call.rows, n, call.input(0), n, call.input(1), eps_, call.output(0), n, nullptr});
  }

 private:
  RowSpace space_;
  float eps_;
};

std::unique_ptr<Step> make_layer_norm(const Graph& graph, NodeId id) {
  const std::optional<RowShape> x = row_shape(graph.types(id)[0]);
  if (!x) return nullptr;
  const bool has_residual = graph.is(id, "fused_layer_norm");
  RowSpace space{x->rows, {x->width}, {x->width}};
  if (has_residual) space.input_widths.push_back(x->width);
  space.input_widths.resize(graph.inputs(id).size());
  return std::make_unique<LayerNormStep>(
      std::move(space), static_cast<float>(graph.attribute(id).real("eps")), has_residual);
}

std::unique_ptr<Step> make_rms_norm(const Graph& graph, NodeId id) {
  const std::optional<RowShape> x = row_shape(graph.types(id)[0]);
  if (!x) return nullptr;
  return std::make_unique<RmsNormStep>(RowSpace{x->rows, {x->width, 0}, {x->width}},
                                       static_cast<float>(graph.attribute(id).real("eps")));
}

const Register layer_norm{CpuKernel{"layer_norm", make_layer_norm}};
const Register fused_layer_norm{CpuKernel{"fused_layer_norm", make_layer_norm}};
const Register rms_norm{CpuKernel{"rms_norm", make_rms_norm}};

}  // namespace
}  // namespace lathe::engine
