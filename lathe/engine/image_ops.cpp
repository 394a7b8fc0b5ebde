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

std::vector<OperandSpec> conv2d_operands() {
  return {{"x"},
          {"weight"},
          {"bias", true},
          {"residual", true},
          {"norm_weight", true},
          {"norm_bias", true},
          {"norm_mean", true},
          {"norm_variance", true}};
}
AttributeSpec tile_attribute() {
  return {"tile", std::int64_t{0}, "side of a tile of results by Winograd's products; 0: windows"};
}
AttributeSpec rounded_attribute() {
  return {"rounded", false, "whether operands and results of products are rounded to bfloat16"};
}
std::vector<AttributeSpec> image_conv2d_attributes() {
  return with_flags(ops::conv2d_attributes(),
                    {flag("x_last", "whether x is [N,H,W,C]"),
                     flag("y_last", "whether the result is"),
                     {"activation", std::string("none"), "an op applied last"},
                     {"eps", 1e-5, "the batch norm's, added to the variance"},
                     tile_attribute()});
}

const Register image_conv2d{Op{
    .name = "image_conv2d",
    .summary =
        "activation(batch_norm(conv2d) + residual) of images in either layout, in one kernel",
    .operands = conv2d_operands(),
    .attributes = image_conv2d_attributes(),
    .infer =
        [](const OpCall& call) {
          return std::vector<Type>{last_if(conv2d_planes(call), call.attributes().flag("y_last"))};
        },
    .flops = [](const OpCall& call) { return product_flops(conv2d_planes(call), call.input(1)); },
}};

std::vector<AttributeSpec> statistics_attributes() {
  return with_flags(ops::conv2d_attributes(),
                    {flag("x_last", "whether x is [N,H,W,C]"),
                     {"eps", 1e-5, "the batch norm's, added to the variance"},
                     tile_attribute(),
                     rounded_attribute()});
}
std::vector<Type> statistics_types(const OpCall& call) {
  const Type y = with_channels_last(conv2d_planes(call)), of_channel{y.dtype, {y.axis(3)}};
  return {y, of_channel, of_channel, of_channel};
}
Size statistics_flops(const OpCall& call) {
  const Type y = conv2d_planes(call);
  return product_flops(y, call.input(1)) + Size(4) * y.num_elements();
}

const Register image_conv2d_statistics{Op{
    .name = "image_conv2d_statistics",
    .summary = "conv2d of images in either layout to [N,H,W,C], and its channel_statistics",
    .operands = {{"x"}, {"weight"}, {"bias", true}, {"norm_weight"}},
    .attributes = statistics_attributes(),
    .num_results = 4,
    .infer = statistics_types,
    .flops = statistics_flops,
    .is_differentiable = false,
}};

const Register image_normed_conv2d_statistics{Op{
    .name = "image_normed_conv2d_statistics",
    .summary =
        "image_conv2d_statistics of fused_normalize_channels of `front`, through relu, which "
        "is the last result; it is not written where nobody reads it",
    .operands = {{"front"},
                 {"weight"},
                 {"bias", true},
                 {"norm_weight"},
                 {"front_mean"},
                 {"front_slope"},
                 {"front_bias"},
                 {"residual", true}},
    .attributes = statistics_attributes(),
    .num_results = 5,
    .infer =
        [](const OpCall& call) {
          std::vector<Type> types = statistics_types(call);
          types.push_back(call.input(0));
          return types;
        },
    .flops =
        [](const OpCall& call) {
          return statistics_flops(call) + Size(4) * call.input(0).num_elements();
        },
    .is_differentiable = false,
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
    .attributes =
        with_flags(ops::conv2d_attributes(), {flag("dy_last", "whether dy is [N,H,W,C]"),
                                              flag("x_last", "whether x is"), tile_attribute()}),
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

std::vector<OperandSpec> normed_gradient_operands() {
  return {{"dy"}, {"x"}, {"weight"}, {"y"}, {"mean"}, {"factor"}, {"shift"}, {"slope"}};
}
Size normed_gradient_flops(const OpCall& call) {
  return Size(2) * product_flops(call.input(0), call.input(2)) +
         Size(4) * call.input(0).num_elements();
}

const Register image_normed_conv2d_gradients{Op{
    .name = "image_normed_conv2d_gradients",
    .summary = "image_conv2d_input_gradient and image_conv2d_weight_gradient, [N,H,W,C], of what "
               "normalize_channels_gradient makes of dy",
    .operands = normed_gradient_operands(),
    .attributes = with_flags(ops::conv2d_attributes(), {tile_attribute(), rounded_attribute()}),
    .num_results = 2,
    .infer =
        [](const OpCall& call) {
          return std::vector<Type>{call.input(1), call.input(2)};
        },
    .flops = normed_gradient_flops,
    .is_differentiable = false,
}};

std::vector<OperandSpec> relu_gradient_operands() {
  std::vector<OperandSpec> operands = normed_gradient_operands();
  operands.push_back({"more", true});
  for (const char* const name : {"front", "front_weight", "front_mean", "front_variance"})
    operands.push_back({name});
  for (const char* const name : {"front_slope", "front_bias"}) operands.push_back({name, true});
  return operands;
}

const Register image_relu_normed_conv2d_gradients{Op{
    .name = "image_relu_normed_conv2d_gradients",
    .summary = "image_normed_conv2d_gradients where x is relu of a norm of `front`, whose "
               "relu_channel_gradients take the place of the gradient of x; with front_slope and "
               "front_bias x is `front` itself, and relu of the norm is made again",
    .operands = relu_gradient_operands(),
    .attributes = with_flags(
        ops::conv2d_attributes(),
        {{"eps", 1e-5, "added to the variance of `front`"}, tile_attribute(), rounded_attribute()}),
    .num_results = 7,
    .infer =
        [](const OpCall& call) {
          const Type& x = call.input(1);
          std::vector<Type> types(7, Type{x.dtype, {x.shape.back()}});
          types[0] = x;
          types[1] = call.input(2);
          return types;
        },
    .flops =
        [](const OpCall& call) {
          return normed_gradient_flops(call) + Size(6) * call.input(1).num_elements();
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

// A convolution and the pool behind it: its own result is never written.
const Register image_pooled_conv2d{Op{
    .name = "image_pooled_conv2d",
    .summary = "max_pool2d(image_conv2d) of images whose channels come last, in one kernel",
    .operands = conv2d_operands(),
    .attributes = with_flags(image_conv2d_attributes(),
                             {{.name = "pool_kernel",
                               .default_value = std::vector<std::int64_t>{},
                               .summary = "the pool's `kernel`",
                               .required = true},
                              {"pool_strides", std::vector<std::int64_t>{}, "its `strides`"},
                              {"pool_pads", std::vector<std::int64_t>{0, 0, 0, 0}, "its `pads`"}}),
    .infer =
        [](const OpCall& call) {
          const Type y = conv2d_planes(call);
          return std::vector<Type>{with_channels_last(ops::slide_window(
              "image_pooled_conv2d", y, y.axis(1), pool_behind(call.attributes())))};
        },
    .flops = [](const OpCall& call) { return product_flops(conv2d_planes(call), call.input(1)); },
    .is_differentiable = false,
}};

// Two convolutions whose results are added: the shortcut of a residual block is one of them where
// images become smaller.
std::vector<OperandSpec> summed_operands() {
  std::vector<OperandSpec> operands = conv2d_operands();
  for (const char* const name : {"short_x", "short_weight"}) operands.push_back({name});
  for (const char* const name : {"short_bias", "short_norm_weight", "short_norm_bias",
                                 "short_norm_mean", "short_norm_variance"})
    operands.push_back({name, true});
  return operands;
}
const Register image_summed_conv2d{Op{
    .name = "image_summed_conv2d",
    .summary = "activation(batch_norm(conv2d) + batch_norm(conv2d)) of images whose channels come "
               "last, in one kernel",
    .operands = summed_operands(),
    .attributes =
        with_flags(image_conv2d_attributes(),
                   {{"short_strides", std::vector<std::int64_t>{1, 1}, "the second one's strides"},
                    {"short_pads", std::vector<std::int64_t>{0, 0, 0, 0}, "its padding"},
                    {"short_dilations", std::vector<std::int64_t>{1, 1}, "its dilations"},
                    {"short_eps", 1e-5, "its batch norm's, added to the variance"}}),
    .infer =
        [](const OpCall& call) {
          return std::vector<Type>{last_if(conv2d_planes(call), call.attributes().flag("y_last"))};
        },
    .flops =
        [](const OpCall& call) {
          const Type y = conv2d_planes(call);
          return product_flops(y, call.input(1)) + product_flops(y, call.input(9));
        },
    .is_differentiable = false,
}};

// The gradients of pooling, whose images are written.
Op image_pool_gradient(const std::string& pool, std::vector<OperandSpec> operands,
                       std::vector<AttributeSpec> more) {
  const std::string name = "image_" + pool + "_gradient";
  return {
      .name = name,
      .summary = pool + "_gradient of images [N,H,W,C]",
      .operands = std::move(operands),
      .attributes = with_flags(ops::pooling_attributes(), std::move(more)),
      .infer =
          [name](const OpCall& call) { return std::vector<Type>{ops::declared_type(name, call)}; },
      .is_differentiable = false,
  };
}
const Register image_max_pool2d_gradient{image_pool_gradient("max_pool2d", {{"dy"}, {"x"}}, {})};
const Register image_avg_pool2d_gradient{image_pool_gradient(
    "avg_pool2d", {{"dy"}},
    {{"count_include_pad", true, "whether padding counts as zeros in the mean"}})};

}  // namespace

ops::Window shortcut_window(const AttributeReader& attributes, const Type& weight) {
  const std::vector<std::int64_t>& strides = attributes.integers("short_strides");
  const std::vector<std::int64_t>& pads = attributes.integers("short_pads");
  const std::vector<std::int64_t>& dilations = attributes.integers("short_dilations");
  return {.kernel = {weight.axis(2).constant(), weight.axis(3).constant()},
          .strides = {strides[0], strides[1]},
          .pads = {pads[0], pads[1], pads[2], pads[3]},
          .dilations = {dilations[0], dilations[1]}};
}

ops::Window pool_behind(const AttributeReader& attributes) {
  const std::vector<std::int64_t>& kernel = attributes.integers("pool_kernel");
  const std::vector<std::int64_t>& strides = attributes.integers("pool_strides");
  const std::vector<std::int64_t>& pads = attributes.integers("pool_pads");
  const bool has_strides = !strides.empty();
  return {.kernel = {kernel[0], kernel[1]},
          .strides = {has_strides ? strides[0] : kernel[0], has_strides ? strides[1] : kernel[1]},
          .pads = {pads[0], pads[1], pads[2], pads[3]}};
}

}  // namespace lathe::engine
