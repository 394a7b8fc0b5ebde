
#include "lathe/engine/cuda/cuda_convolution.h"
#include "lathe/ops/pooling_windows.h"

namespace lathe::engine {
namespace {

// max_pool2d and avg_pool2d with their gradients, and the two of images [N,H,W,C].

cuda::PoolArgs args_of(const CudaCall& call, const CudaImages& x, const CudaImages& y,
                       bool is_largest) {
  const AttributeReader attributes = call.graph.attribute(call.node);
  cuda::PoolArgs args = pool_args(x, y, ops::pooling_window("pooling", attributes));
  args.is_largest = is_largest;
  args.counts_padding = is_largest || attributes.flag("count_include_pad");
  return args;
}

// The largest of numbers of bfloat16 is one of them.
class PoolStep final : public CudaStep {
 public:
  PoolStep(bool is_largest, bool is_last) : is_largest_(is_largest), is_last_(is_last) {}
  std::vector<std::size_t> rounded_operands() const override { return {0}; }
  bool keeps_numbers() const override { return is_largest_; }
  bool can_write_half(std::size_t) const override { return true; }
  void launch(const CudaCall& call) const override {
    const CudaImages x = cuda_images(call.dims(call.input_type(0)), is_last_);
    const CudaImages y = cuda_images(call.dims(call.type(0)), is_last_);
    cuda::PoolArgs args = args_of(call, x, y, is_largest_);
    const CudaOperand operand = call.operand(0);
    args.x = operand.data;
    args.x_as = operand.as;
    args.y = call.output(0);
    args.y_half = call.output_half(0);
    call.kernels.pool(args, call.stream);
  }

 private:
  bool is_largest_, is_last_;
};

template <bool IsLargest, bool IsLast>
std::unique_ptr<CudaStep> make_pool(const Graph& graph, NodeId id) {
  if (!is_float(graph, graph.input(id, 0))) return nullptr;
  return std::make_unique<PoolStep>(IsLargest, IsLast);
}

template <bool IsLargest, bool IsLast>
std::unique_ptr<CudaStep> make_pool_gradient(const Graph& graph, NodeId id) {
  if (!is_float(graph, graph.input(id, 0)) || graph.types(id)[0].dtype != DType::F32)
    return nullptr;
  return cuda_step([](const CudaCall& call) {
    const CudaImages x = cuda_images(call.dims(call.type(0)), IsLast);
    const CudaImages y = cuda_images(call.dims(call.input_type(0)), IsLast);
    cuda::PoolGradientArgs args{.pool = args_of(call, x, y, IsLargest)};
    if (IsLargest) args.pool.x = call.input(1);
    args.dy = call.input(0);
    args.dx = call.output(0);
    call.kernels.pool_gradient(args, call.stream);
  });
}

const Register max_pool2d{CudaKernel{"max_pool2d", make_pool<true, false>}};
const Register avg_pool2d{CudaKernel{"avg_pool2d", make_pool<false, false>}};
const Register image_max_pool2d{CudaKernel{"image_max_pool2d", make_pool<true, true>}};
const Register image_avg_pool2d{CudaKernel{"image_avg_pool2d", make_pool<false, true>}};
const Register max_gradient{CudaKernel{"max_pool2d_gradient", make_pool_gradient<true, false>}};
const Register average_gradient{
    CudaKernel{"avg_pool2d_gradient", make_pool_gradient<false, false>}};
const Register image_max_gradient{
    CudaKernel{"image_max_pool2d_gradient", make_pool_gradient<true, true>}};
const Register image_average_gradient{
    CudaKernel{"image_avg_pool2d_gradient", make_pool_gradient<false, true>}};

}  // namespace
}  // namespace lathe::engine
