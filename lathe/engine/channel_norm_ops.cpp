#include "lathe/core/op.h"

// normalize_batch and its gradient in parts, for images whose channels lie last: what is summed
// over all pixels, and what is done to each pixel, which joins the steps around it.
namespace lathe::engine {
namespace {

Type channels_of(const Type& x) {
  return {x.dtype, {x.shape.back()}};
}

const Register channel_statistics{Op{
    .name = "channel_statistics",
    .summary = "for each channel, which lie last, its mean, its variance over n - 1 and what "
               "normalize_batch multiplies its distances from the mean by",
    .operands = {{"x"}, {"weight"}},
    .attributes = {{"eps", 1e-5, "added to the variance"}},
    .num_results = 3,
    .infer = [](const OpCall& call) { return std::vector<Type>(3, channels_of(call.input(0))); },
    .flops = [](const OpCall& call) { return Size(4) * call.input(0).num_elements(); },
    .is_differentiable = false,
}};

const Register normalize_channels{Op{
    .name = "normalize_channels",
    .summary = "(x - mean) slope + bias, a number of each for a channel",
    .operands = {{"x"}, {"mean"}, {"slope"}, {"bias"}},
    .infer = [](const OpCall& call) { return std::vector<Type>{call.input(0)}; },
    .flops = [](const OpCall& call) { return Size(2) * call.input(0).num_elements(); },
    .is_differentiable = false,
}};

const Register fused_normalize_channels{Op{
    .name = "fused_normalize_channels",
    .summary = "normalize_channels + residual, through relu or not",
    .operands = {{"x"}, {"mean"}, {"slope"}, {"bias"}, {"residual", true}},
    .attributes = {{"relu", false, "whether relu is applied last"}},
    .infer = [](const OpCall& call) { return std::vector<Type>{call.input(0)}; },
    .flops = [](const OpCall& call) { return Size(4) * call.input(0).num_elements(); },
    .is_differentiable = false,
}};

const Register channel_gradients{Op{
    .name = "channel_gradients",
    .summary = "the gradients of normalize_batch's weight and bias, and the factor, shift and "
               "slope of that of x",
    .operands = {{"dy"}, {"x"}, {"weight"}, {"mean"}, {"variance"}},
    .attributes = {{"eps", 1e-5, "added to the variance"}},
    .num_results = 5,
    .infer = [](const OpCall& call) { return std::vector<Type>(5, channels_of(call.input(0))); },
    .flops = [](const OpCall& call) { return Size(4) * call.input(0).num_elements(); },
    .is_differentiable = false,
}};

const Register relu_channel_gradients{Op{
    .name = "relu_channel_gradients",
    .summary = "what comes back through relu of dy and of what is added to it, and the results of "
               "channel_gradients for it",
    .operands = {{"dy"}, {"more", true}, {"relu"}, {"x"}, {"weight"}, {"mean"}, {"variance"}},
    .attributes = {{"eps", 1e-5, "added to the variance"}},
    .num_results = 6,
    .infer =
        [](const OpCall& call) {
          std::vector<Type> types(6, channels_of(call.input(0)));
          types[0] = call.input(0);
          return types;
        },
    .flops = [](const OpCall& call) { return Size(6) * call.input(0).num_elements(); },
    .is_differentiable = false,
}};

const Register normalize_channels_gradient{Op{
    .name = "normalize_channels_gradient",
    .summary = "factor (dy - shift - (x - mean) slope), a number of each for a channel",
    .operands = {{"dy"}, {"x"}, {"mean"}, {"factor"}, {"shift"}, {"slope"}},
    .infer = [](const OpCall& call) { return std::vector<Type>{call.input(0)}; },
    .flops = [](const OpCall& call) { return Size(4) * call.input(0).num_elements(); },
    .is_differentiable = false,
}};

}  // namespace
}  // namespace lathe::engine
