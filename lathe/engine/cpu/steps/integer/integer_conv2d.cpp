#include <algorithm>
#include <vector>

#include "lathe/engine/cpu/step.h"
#include "lathe/engine/cpu/steps/integer/integer_rows.h"
#include "lathe/ops/window.h"

namespace lathe::engine {
namespace {

// integer_conv2d of narrow operands with sums of 32 bits: the elements under each place of the
// window are a row of 16-bit integers, and the filters are the others.
class IntegerConv2dStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const Graph& graph = call.graph;
    const auto operand = [&](std::size_t i) -> const Type& {
      return graph.type(graph.input(call.node, i));
    };
    const std::vector<std::int64_t> x = operand(0).dims(call.symbols);
    const std::vector<std::int64_t> weight = operand(1).dims(call.symbols);
    const std::vector<std::int64_t> y = graph.types(call.node)[0].dims(call.symbols);
    const AttributeReader attributes = graph.attribute(call.node);
    const ops::Window window = ops::read_window("conv2d", weight[2], weight[3], attributes, true);
    const std::int64_t groups = attributes.integer("groups"), filters = weight[0] / groups;
    const std::int64_t taps = weight[1] * weight[2] * weight[3], depth = padded_depth(taps);
    const std::int64_t places = y[2] * y[3];
    const DType result = graph.types(call.node)[0].dtype;
    std::vector<std::int16_t> filter_rows(static_cast<std::size_t>(weight[0] * depth));
    for (std::int64_t f = 0; f < weight[0]; ++f)
      to_shorts(operand(1).dtype, call.inputs[1] + f * taps * size_of(operand(1).dtype), taps,
                depth, filter_rows.data() + f * depth);
    std::vector<std::int64_t> bias(static_cast<std::size_t>(weight[0]), 0);
    if (call.inputs.size() > 2 && call.inputs[2] != nullptr)
      widen(operand(2).dtype, call.inputs[2], weight[0], bias.data());
    call.parallel(x[0], [&](std::int64_t image, int) {
      std::vector<std::int16_t> pixels(static_cast<std::size_t>(x[1] * x[2] * x[3]));
      to_shorts(operand(0).dtype,
                call.inputs[0] + image * std::ssize(pixels) * size_of(operand(0).dtype),
                std::ssize(pixels), std::ssize(pixels), pixels.data());
      std::vector<std::int16_t> rows(static_cast<std::size_t>(places * depth), 0);
      std::vector<std::int32_t> sums(static_cast<std::size_t>(filters * places));
      std::vector<std::int64_t> wide(sums.size());
      for (std::int64_t g = 0; g < groups; ++g) {
        gather(window, x, y, weight, g, depth, pixels, rows);
        call.kernels.integer_products({.m = filters,
                                       .n = places,
                                       .depth = depth,
                                       .a = filter_rows.data() + g * filters * depth,
                                       .a_stride = depth,
                                       .b = rows.data(),
                                       .b_stride = depth,
                                       .y = sums.data(),
                                       .y_stride = places});
        // As in integer_linear: the sum may wrap around before its bias is added.
        for (std::size_t i = 0; i < sums.size(); ++i)
          wide[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(
              sums[i] +
              bias[static_cast<std::size_t>(g * filters) + i / static_cast<std::size_t>(places)]));
        narrow(result, wide.data(), std::ssize(wide),
               call.outputs[0] + (image * weight[0] + g * filters) * places * size_of(result));
      }
    });
  }

 private:
  static void gather(const ops::Window& window, const std::vector<std::int64_t>& x,
                     const std::vector<std::int64_t>& y, const std::vector<std::int64_t>& weight,
                     std::int64_t group, std::int64_t depth,
                     const std::vector<std::int16_t>& pixels, std::vector<std::int16_t>& rows) {
    for (std::int64_t i = 0; i < y[2]; ++i)
      for (std::int64_t j = 0; j < y[3]; ++j) {
        std::int16_t* row = rows.data() + (i * y[3] + j) * depth;
        for (std::int64_t c = 0; c < weight[1]; ++c)
          for (std::int64_t p = 0; p < weight[2]; ++p)
            for (std::int64_t q = 0; q < weight[3]; ++q, ++row) {
              const std::int64_t r = window.position(0, i, p), s = window.position(1, j, q);
              const bool is_inside = r >= 0 && r < x[2] && s >= 0 && s < x[3];
              *row = is_inside ? pixels[static_cast<std::size_t>(
                                     ((group * weight[1] + c) * x[2] + r) * x[3] + s)]
                               : std::int16_t{0};
            }
      }
  }
};

std::unique_ptr<Step> make_integer_conv2d(const Graph& graph, NodeId id) {
  const auto is_short = [&](std::size_t operand) {
    const DType dtype = graph.type(graph.input(id, operand)).dtype;
    return dtype == DType::I8 || dtype == DType::I16;
  };
  if (!is_short(0) || !is_short(1) || graph.types(id)[0].dtype == DType::I64) return nullptr;
  return std::make_unique<IntegerConv2dStep>();
}

const Register integer_conv2d{CpuKernel{"integer_conv2d", make_integer_conv2d}};

}  // namespace
}  // namespace lathe::engine
