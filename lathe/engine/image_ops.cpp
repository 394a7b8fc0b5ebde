#include "lathe/core/op.h"
#include "lathe/engine/channels_last.h"
#include "lathe/ops/code_convolution.h"
#include "lathe/ops/convolution.h"
#include "lathe/ops/operand_checks.h"
#include "lathe/ops/pooling_windows.h"

// The lowered ops of images whose channels may lie side by side, [N,H,W,C]: see channels_last.h.
namespace lathe::engine {
namespace {

Type planes_if(const Type& type, bool is_last) {
  return is_last ? with_planes(type) : type;
}
Type last_if(const Type& type, bool is_last) {
  return is_last ? with_channels_last(type) : type;
}

AttributeSpec flag(std::string name, std::string summary) {
  return {.name = std::move(name), .default_value = true, .summary = std::move(summary)};
}

std::vector<AttributeSpec> with_flags(std::vector<AttributeSpec> attributes,
                                      std::vector<AttributeSpec> flags) {
  attributes.insert(attributes.end(), flags.begin(), flags.end());
  return attributes;
}

Type conv2d_planes(const OpCall& call) {
  return ops::conv2d_type(planes_if(call.input(0), call.attributes().flag("x_last")), call.input(1),
                          call.attributes());
}

Size product_flops(const Type& y, const Type& weight) {
  return Size(2) * y.num_elements() * weight.axis(1) * weight.axis(2) * weight.axis(3);
}

const Register image_conv2d{Op{
    .name = "image_conv2d",
    .summary =
        "activation(batch_norm(conv2d) + residual) of images in either layout, in one kernel",
    .operands = {{"x"},
                 {"weight"},
                 {"bias", true},
                 {"residual", true},
                 {"norm_weight", true},
                 {"norm_bias", true},
                 {"norm_mean", true},
                 {"norm_variance", true}},
    .attributes = with_flags(ops::conv2d_attributes(),
                             {flag("x_last", "whether x is [N,H,W,C]"),
                              flag("y_last", "whether the result is"),
                              {"activation", std::string("none"), "an op applied last"},
                              {"eps", 1e-5, "the batch norm's, added to the variance"},
                              {"tile", std::int64_t{0},
                               "side of a tile of results by Winograd's products; 0: windows"}}),
    .infer =
        [](const OpCall& call) {
          return std::vector<Type>{last_if(conv2d_planes(call), call.attributes().flag("y_last"))};
        },
    .flops = [](const OpCall& call) { return product_flops(conv2d_planes(call), call.input(1)); },
}};

std::vector<OperandSpec> code_operands() {
  std::vector<OperandSpec> operands = ops::code_conv2d_operands();
  operands.push_back({"residual", true});
  return operands;
}

Type code_planes(const OpCall& call) {
  return ops::code_conv2d_type(call, planes_if(call.input(0), call.attributes().flag("x_last")));
}

const Register image_code_conv2d{Op{
    .name = "image_code_conv2d",
    .summary = "activation(code_conv2d + residual) of images in either layout, in one kernel",
    .operands = code_operands(),
    .attributes = with_flags(ops::code_conv2d_attributes(),
                             {flag("x_last", "whether x is [N,H,W,C]"),
                              flag("y_last", "whether the result is"),
                              {"activation", std::string("none"), "an op applied last"}}),
    .infer =
        [](const OpCall& call) {
          return std::vector<Type>{last_if(code_planes(call), call.attributes().flag("y_last"))};
        },
    .flops =
        [](const OpCall& call) {
          return Size(2) * code_planes(call).num_elements() *
                 Size(call.attributes().integer("columns"));
        },
    .is_differentiable = false,
}};

const Register image_conv2d_input_gradient{Op{
    .name = "image_conv2d_input_gradient",
    .summary = "conv2d_input_gradient of images in either layout",
    .operands = {{"dy"}, {"weight"}},
    .attributes = with_flags(ops::conv2d_attributes(), {flag("dy_last", "whether dy is [N,H,W,C]"),
                                                        flag("dx_last", "whether the result is")}),
    .infer =
        [](const OpCall& call) {
          return std::vector<Type>{ops::declared_type("image_conv2d_input_gradient", call)};
        },
    .flops = [](const OpCall& call) { return product_flops(call.input(0), call.input(1)); },
    .is_differentiable = false,
}};

const Register image_conv2d_weight_gradient{Op{
    .name = "image_conv2d_weight_gradient",
    .summary = "conv2d_weight_gradient of images in either layout",
    .operands = {{"dy"}, {"x"}},
    .attributes = with_flags(ops::conv2d_attributes(), {flag("dy_last", "whether dy is [N,H,W,C]"),
                                                        flag("x_last", "whether x is")}),
    .infer =
        [](const OpCall& call) {
          return std::vector<Type>{ops::declared_type("image_conv2d_weight_gradient", call)};
        },
    .flops =
        [](const OpCall& call) {
          return product_flops(call.input(0),
                               ops::declared_type("image_conv2d_weight_gradient", call));
        },
    .is_differentiable = false,
}};

Op image_pool(const std::string& pool, std::vector<AttributeSpec> more) {
  return {
      .name = "image_" + pool,
      .summary = pool + " of images [N,H,W,C]",
      .operands = {{"x"}},
      .attributes = with_flags(ops::pooling_attributes(), std::move(more)),
      .infer =
          [pool](const OpCall& call) {
            const Type x = with_planes(call.input(0));
            return std::vector<Type>{with_channels_last(ops::slide_window(
                pool, x, x.axis(1), ops::pooling_window(pool, call.attributes())))};
          },
      .is_differentiable = false,
  };
}

const Register image_max_pool2d{image_pool("max_pool2d", {})};
const Register image_avg_pool2d{image_pool(
    "avg_pool2d", {{"count_include_pad", true, "whether padding counts as zeros in the mean"}})};

}  // namespace
}  // namespace lathe::engine
