#include "lathe/engine/cuda/arguments/batch_norm.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/engine/cuda/cuda_step.h"
#include "lathe/ops/axes.h"

namespace lathe::engine {
namespace {

// batch_norm and normalize_batch with their gradients; the latter also in parts, for images whose
// channels lie last; and the average of statistics that training keeps.

using Kind = cuda::ChannelNorm;

cuda::ChannelSizes channel_sizes(const std::vector<std::int64_t>& dims, bool is_last) {
  if (is_last) return {num_elements(dims) / std::max<std::int64_t>(1, dims.back()), dims.back(), 1};
  const ops::AxisSplit split = ops::split_around(dims, 1);
  return {split.outer, split.size, split.inner};
}

// Where each op has its operands; -1: it has none.
struct NormOperands {
  int x = 0, dy = -1, weight = 1, bias = -1, mean = -1, variance = -1, dmean = -1, dvariance = -1;
};
NormOperands operands_of(Kind kind) {
  switch (kind) {
    case Kind::Given:
      return {.bias = 2, .mean = 3, .variance = 4};
    case Kind::Own:
      return {.bias = 2};
    case Kind::GivenGradient:
      return {.x = 1, .dy = 0, .weight = 2, .mean = 3, .variance = 4};
    case Kind::OwnGradient:
      return {.x = 1, .dy = 0, .weight = 2, .mean = 3, .variance = 4, .dmean = 5, .dvariance = 6};
  }
  return {};
}

// `is_sums`: the results of channels that lie last, and not what becomes of x.
class ChannelNormStep final : public CudaStep {
 public:
  ChannelNormStep(Kind kind, bool is_sums)
      : kind_(kind), is_sums_(is_sums), at_(operands_of(kind)) {}
  // What convolutions make lies as bfloat16 anyway.
  std::vector<std::size_t> rounded_operands() const override {
    if (at_.dy < 0) return {0};
    return {0, 1};
  }
  bool can_write_half(std::size_t result) const override { return result == 0 && !is_sums_; }
  std::int64_t scratch_bytes(const Graph& graph, NodeId id, const CudaSizes& sizes) const override {
    const cuda::ChannelSizes channels =
        channel_sizes(x_type(graph, id).dims(sizes.bucket), is_sums_);
    return sums_bytes(channels) + cuda::norm_coefficients(channels) * 4;
  }

  void launch(const CudaCall& call) const override {
    const auto operand = [&](int i) {
      return i < 0 ? nullptr : call.input(static_cast<std::size_t>(i));
    };
    cuda::BatchNormArgs args;
    args.kind = kind_;
    args.sizes = channel_sizes(call.dims(x_type(call.graph, call.node)), is_sums_);
    if (kind_ == Kind::Own && args.sizes.count() == 1)
      fail("one element a channel has no variance: expected more");
    const CudaOperand x = call.operand(static_cast<std::size_t>(at_.x));
    args.x = x.data;
    args.x_as = x.as;
    if (at_.dy >= 0) {
      const CudaOperand dy = call.operand(static_cast<std::size_t>(at_.dy));
      args.dy = dy.data;
      args.dy_as = dy.as;
    }
    args.weight = operand(at_.weight);
    args.bias = operand(at_.bias);
    args.mean = operand(at_.mean);
    args.variance = operand(at_.variance);
    args.dmean = operand(at_.dmean);
    args.dvariance = operand(at_.dvariance);
    args.eps = call.graph.attribute(call.node).real("eps");
    const std::size_t first = is_sums_ ? 0 : 1;  // of the results of channels
    if (!is_sums_) {
      args.y = call.output(0);
      args.y_half = call.output_half(0);
    }
    for (std::size_t i = first; i < call.outputs.size(); ++i)
      args.results[i - first] = call.output(i);
    args.sums = reinterpret_cast<double*>(call.scratch);
    args.coefficients = reinterpret_cast<float*>(call.scratch + sums_bytes(args.sizes));
    call.kernels.batch_norm(args, call.stream);
  }

 private:
  static std::int64_t sums_bytes(const cuda::ChannelSizes& sizes) {
    return (cuda::norm_sums(sizes) * static_cast<std::int64_t>(sizeof(double)) + 255) / 256 * 256;
  }
  const Type& x_type(const Graph& graph, NodeId id) const {
    return graph.type(graph.input(id, static_cast<std::size_t>(at_.x)));
  }
  Kind kind_;
  bool is_sums_;
  NormOperands at_;
};

template <Kind K, bool IsSums>
std::unique_ptr<CudaStep> make_norm(const Graph& graph, NodeId id) {
  for (const Value& value : graph.inputs(id))
    if (!value.is_none() && !is_float(graph, value)) return nullptr;
  return std::make_unique<ChannelNormStep>(K, IsSums);
}

// normalize_channels(x, mean, slope, bias) and normalize_channels_gradient(dy, x, mean, factor,
// shift, slope).
class ScaleChannelsStep final : public CudaStep {
 public:
  explicit ScaleChannelsStep(bool is_gradient) : is_gradient_(is_gradient) {}
  std::vector<std::size_t> rounded_operands() const override {
    if (is_gradient_) return {0, 1};
    return {0};
  }
  bool can_write_half(std::size_t) const override { return true; }
  void launch(const CudaCall& call) const override {
    const cuda::ChannelSizes sizes = channel_sizes(call.dims(call.type(0)), true);
    cuda::ScaleChannelsArgs args;
    const CudaOperand x = call.operand(is_gradient_ ? 1 : 0);
    args.x = x.data;
    args.x_as = x.as;
    if (is_gradient_) {
      const CudaOperand dy = call.operand(0);
      args.dy = dy.data;
      args.dy_as = dy.as;
      args.factor = call.input(3);
    }
    args.mean = call.input(is_gradient_ ? 2 : 1);
    args.slope = call.input(is_gradient_ ? 5 : 2);
    args.shift = call.input(is_gradient_ ? 4 : 3);
    args.y = call.output(0);
    args.y_half = call.output_half(0);
    args.rows = sizes.outer;
    args.channels = sizes.channels;
    call.kernels.scale_channels(args, call.stream);
  }

 private:
  bool is_gradient_;
};

template <bool IsGradient>
std::unique_ptr<CudaStep> make_scale(const Graph& graph, NodeId id) {
  for (const Value& value : graph.inputs(id))
    if (!is_float(graph, value)) return nullptr;
  return std::make_unique<ScaleChannelsStep>(IsGradient);
}

std::unique_ptr<CudaStep> make_average(const Graph& graph, NodeId id) {
  for (const Value& value : graph.inputs(id))
    if (!is_float(graph, value)) return nullptr;
  return cuda_step([](const CudaCall& call) {
    call.kernels.running_average(
        {.kept = call.input(0),
         .seen = call.input(1),
         .scale = call.input(2),
         .y = call.output(0),
         .momentum = static_cast<float>(call.graph.attribute(call.node).real("momentum")),
         .count = call.sizes.capacity(call.type(0).num_elements())},
        call.stream);
  });
}

const Register given{CudaKernel{"batch_norm", make_norm<Kind::Given, false>}};
const Register given_gradient{
    CudaKernel{"batch_norm_gradient", make_norm<Kind::GivenGradient, false>}};
const Register own{CudaKernel{"normalize_batch", make_norm<Kind::Own, false>}};
const Register own_gradient{
    CudaKernel{"normalize_batch_gradient", make_norm<Kind::OwnGradient, false>}};
const Register statistics{CudaKernel{"channel_statistics", make_norm<Kind::Own, true>}};
const Register gradients{CudaKernel{"channel_gradients", make_norm<Kind::OwnGradient, true>}};
const Register scale{CudaKernel{"normalize_channels", make_scale<false>}};
const Register scale_gradient{CudaKernel{"normalize_channels_gradient", make_scale<true>}};
const Register average{CudaKernel{"running_average", make_average}};

}  // namespace
}  // namespace lathe::engine
