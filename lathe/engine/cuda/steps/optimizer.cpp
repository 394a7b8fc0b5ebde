#include "lathe/engine/cuda/cuda_step.h"

namespace lathe::engine {
namespace {

// adamw, sgd and their forms for sparse gradients: one launch for all parameters. The sums of
// squares that gradients are clipped by share a launch, too.

std::int64_t blocks_of(std::int64_t count) {
  return (count + cuda::kUpdateBlock - 1) / cuda::kUpdateBlock;
}

struct Coefficients {
  bool is_adamw;
  double beta1, beta2, eps, weight_decay;
};

class UpdateStep final : public CudaStep {
 public:
  explicit UpdateStep(Coefficients coefficients) : coefficients_(coefficients) {}
  CudaGroup group() const override {
    return coefficients_.is_adamw ? CudaGroup::Adamw : CudaGroup::Sgd;
  }
  std::vector<CudaInPlace> in_place() const override {
    if (coefficients_.is_adamw) return {{0, 0}, {1, 2}, {2, 3}};
    return {{0, 0}, {1, 2}};
  }

  bool can_write_half(std::size_t output) const override { return output == 0; }

  // Operands: adamw (param, gradient, m, v, rate, scale, random, places), sgd (param, gradient,
  // velocity, rate, scale, places).
  void add_to(CudaGroupTable& table, const CudaCall& call) const override {
    const bool is_adamw = coefficients_.is_adamw;
    const std::size_t places = is_adamw ? 7 : 5;
    cuda::UpdatedTensor tensor;
    tensor.param = call.input(0);
    tensor.gradient = call.input(1);
    tensor.m = call.input(2);
    tensor.v = is_adamw ? call.input(3) : nullptr;
    tensor.new_param = call.output(0);
    tensor.new_half = call.output_half(0);
    tensor.new_m = call.output(1);
    tensor.new_v = is_adamw ? call.output(2) : nullptr;
    tensor.rate = call.input(is_adamw ? 4 : 3);
    tensor.scale = call.input(is_adamw ? 5 : 4);
    if (is_adamw) tensor.random = reinterpret_cast<const std::int32_t*>(call.inputs[6]);
    if (call.has(places)) {
      tensor.places = reinterpret_cast<const std::int32_t*>(call.inputs[places]);
      tensor.n = call.sizes.capacity(call.type(0).axis(-1));
    }
    tensor.count = call.sizes.capacity(call.type(0).num_elements());
    tensor.first_block = table.num_blocks;
    tensor.beta1 = coefficients_.beta1;
    tensor.beta2 = coefficients_.beta2;
    tensor.eps = coefficients_.eps;
    tensor.weight_decay = coefficients_.weight_decay;
    table.num_blocks += blocks_of(tensor.count);
    table.updates.push_back(tensor);
  }

 private:
  Coefficients coefficients_;
};

class SquaresStep final : public CudaStep {
 public:
  CudaGroup group() const override { return CudaGroup::Squares; }
  // A double for each block of the launch.
  std::int64_t scratch_bytes(const Graph& graph, NodeId id, const CudaSizes& sizes) const override {
    const Type& x = graph.type(graph.input(id, 0));
    return (blocks_of(sizes.capacity(x.num_elements())) + 1) *
           static_cast<std::int64_t>(sizeof(double));
  }
  void add_to(CudaGroupTable& table, const CudaCall& call) const override {
    cuda::SquaredTensor tensor;
    tensor.x = call.input(0);
    tensor.count = call.extent(call.input_type(0).num_elements());
    if (call.has(1)) {
      tensor.used_rows = reinterpret_cast<const std::int32_t*>(call.inputs[1]);
      tensor.n = call.sizes.capacity(call.input_type(0).axis(-1));
    }
    tensor.first_block = table.num_blocks;
    tensor.sum = call.output(0);
    table.num_blocks += blocks_of(tensor.count.capacity);
    table.squares.push_back(tensor);
  }
};

bool all_f32(const Graph& graph, NodeId id, std::size_t operands) {
  for (std::size_t i = 0; i < operands; ++i)
    if (!is_float(graph, graph.input(id, i))) return false;
  return true;
}

std::unique_ptr<CudaStep> make_adamw(const Graph& graph, NodeId id) {
  if (!all_f32(graph, id, 6) || graph.type(graph.input(id, 6)).dtype != DType::I32) return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  return std::make_unique<UpdateStep>(Coefficients{true, attributes.real("beta1"),
                                                   attributes.real("beta2"), attributes.real("eps"),
                                                   attributes.real("weight_decay")});
}

std::unique_ptr<CudaStep> make_sgd(const Graph& graph, NodeId id) {
  if (!all_f32(graph, id, 5)) return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  return std::make_unique<UpdateStep>(
      Coefficients{false, attributes.real("momentum"), 0, 0, attributes.real("weight_decay")});
}

std::unique_ptr<CudaStep> make_squares(const Graph& graph, NodeId id) {
  if (!all_f32(graph, id, 1)) return nullptr;
  return std::make_unique<SquaresStep>();
}

class GradientScaleStep final : public CudaStep {
 public:
  explicit GradientScaleStep(double max_norm) : max_norm_(max_norm) {}
  CudaGroup group() const override { return CudaGroup::Scalars; }
  void add_to(CudaGroupTable& table, const CudaCall& call) const override {
    add_scalar(table, call,
               {.kind = cuda::ScalarOperation::Kind::GradientScale,
                .value = max_norm_,
                .norm = call.output(1)});
  }

 private:
  double max_norm_;
};

std::unique_ptr<CudaStep> make_gradient_scale(const Graph& graph, NodeId id) {
  if (!all_f32(graph, id, 2)) return nullptr;
  return std::make_unique<GradientScaleStep>(graph.attribute(id).real("max_norm"));
}

const Register adamw{CudaKernel{"adamw", make_adamw}};
const Register adamw_of_rows{CudaKernel{"adamw_of_rows", make_adamw, always_takes_padding}};
const Register sgd{CudaKernel{"sgd", make_sgd}};
const Register sgd_of_rows{CudaKernel{"sgd_of_rows", make_sgd, always_takes_padding}};
const Register sum_squares{CudaKernel{"sum_squares", make_squares, always_takes_padding}};
const Register squares_of_rows{
    CudaKernel{"sum_squares_of_rows", make_squares, always_takes_padding}};
const Register gradient_scale{CudaKernel{"gradient_scale", make_gradient_scale}};

}  // namespace
}  // namespace lathe::engine
