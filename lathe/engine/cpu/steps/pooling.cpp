#include <algorithm>

#include "lathe/engine/cpu/step.h"
#include "lathe/ops/pooling_windows.h"

namespace lathe::engine {
namespace {

// max_pool2d, avg_pool2d and their gradients, a plane [H,W] at a time.

struct Pooling {
  std::int64_t planes, height, width, out_height, out_width;
  ops::Window window;

  Pooling(const WholeCall& call, const Type& x, const Type& y)
      : window(ops::pooling_window("pooling", call.graph.attribute(call.node))) {
    const std::vector<std::int64_t> from = x.dims(call.symbols), to = y.dims(call.symbols);
    planes = from[0] * from[1];
    height = from[2];
    width = from[3];
    out_height = to[2];
    out_width = to[3];
  }

  // Calls visit(result, rows and columns [begin, end) of the window) for each result of a plane.
  // Pooling has no dilations, so the elements under a window are a rectangle.
  template <typename Visit>
  void each_window(const Visit& visit) const {
    for (std::int64_t i = 0; i < out_height; ++i) {
      const std::int64_t top = window.position(0, i, 0);
      for (std::int64_t j = 0; j < out_width; ++j) {
        const std::int64_t left = window.position(1, j, 0);
        visit(i * out_width + j, std::max<std::int64_t>(0, top),
              std::min(height, top + window.kernel[0]), std::max<std::int64_t>(0, left),
              std::min(width, left + window.kernel[1]));
      }
    }
  }
};

// The place of the largest element, the first of several; of a NaN where there is one.
template <typename Element>
std::int64_t largest_place(const Element* plane, std::int64_t width, std::int64_t top,
                           std::int64_t bottom, std::int64_t left, std::int64_t right) {
  std::int64_t best = top * width + left;
  for (std::int64_t row = top; row < bottom; ++row)
    for (std::int64_t column = left; column < right; ++column) {
      const Element x = plane[row * width + column];
      if (plane[best] != plane[best]) return best;
      if (!(x <= plane[best])) best = row * width + column;
    }
  return best;
}

const Type& operand_type(const WholeCall& call, std::size_t operand) {
  return call.graph.type(call.graph.input(call.node, operand));
}

// Integers too: the largest of them is one of them.
// Some planes a task: taking one of a few numbers takes longer than pooling them.
template <typename Body>
void each_plane(const WholeCall& call, const Pooling& pool, const Body& body) {
  constexpr std::int64_t kNumbersOfTask = 1 << 14;
  const std::int64_t numbers =
      std::max<std::int64_t>(1, pool.height * pool.width + pool.out_height * pool.out_width);
  const std::int64_t planes = std::max<std::int64_t>(1, kNumbersOfTask / numbers);
  call.parallel((pool.planes + planes - 1) / planes, [&](std::int64_t task, int) {
    const std::int64_t end = std::min(pool.planes, (task + 1) * planes);
    for (std::int64_t plane = task * planes; plane < end; ++plane) body(plane);
  });
}

template <typename Element>
class MaxPoolStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const Pooling pool(call, operand_type(call, 0), call.graph.types(call.node)[0]);
    each_plane(call, pool, [&](std::int64_t plane) {
      const auto* const x =
          reinterpret_cast<const Element*>(call.inputs[0]) + plane * pool.height * pool.width;
      auto* const y =
          reinterpret_cast<Element*>(call.outputs[0]) + plane * pool.out_height * pool.out_width;
      pool.each_window([&](std::int64_t result, auto... edges) {
        y[result] = x[largest_place(x, pool.width, edges...)];
      });
    });
  }
};

class MaxPoolGradientStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const Pooling pool(call, operand_type(call, 1), operand_type(call, 0));
    const std::int64_t size = pool.height * pool.width;
    each_plane(call, pool, [&](std::int64_t plane) {
      const auto* const dy =
          reinterpret_cast<const float*>(call.inputs[0]) + plane * pool.out_height * pool.out_width;
      const auto* const x = reinterpret_cast<const float*>(call.inputs[1]) + plane * size;
      auto* const dx = reinterpret_cast<float*>(call.outputs[0]) + plane * size;
      std::fill_n(dx, size, 0.0f);
      pool.each_window([&](std::int64_t result, auto... edges) {
        dx[largest_place(x, pool.width, edges...)] += dy[result];
      });
    });
  }
};

class AveragePoolStep final : public Step {
 public:
  explicit AveragePoolStep(bool is_gradient) : is_gradient_(is_gradient) {}
  void run_whole(const WholeCall& call) const override {
    const Type &operand = operand_type(call, 0), &made = call.graph.types(call.node)[0];
    const Pooling pool(call, is_gradient_ ? made : operand, is_gradient_ ? operand : made);
    const AttributeReader attributes = call.graph.attribute(call.node);
    const std::int64_t size = pool.height * pool.width;
    const std::int64_t results = pool.out_height * pool.out_width;
    each_plane(call, pool, [&](std::int64_t plane) {
      const auto* const from =
          reinterpret_cast<const float*>(call.inputs[0]) + plane * (is_gradient_ ? results : size);
      auto* const to =
          reinterpret_cast<float*>(call.outputs[0]) + plane * (is_gradient_ ? size : results);
      if (is_gradient_) std::fill_n(to, size, 0.0f);
      pool.each_window([&](std::int64_t result, std::int64_t top, std::int64_t bottom,
                           std::int64_t left, std::int64_t right) {
        const auto count = static_cast<std::size_t>((bottom - top) * (right - left));
        const auto divisor = static_cast<float>(ops::average_divisor(attributes, count));
        const float share = is_gradient_ ? from[result] / divisor : 0.0f;
        if (is_gradient_ && results == 1 && count == static_cast<std::size_t>(size)) {
          std::fill_n(to, size, share);
          return;
        }
        float sum = 0;
        for (std::int64_t row = top; row < bottom; ++row)
          for (std::int64_t column = left; column < right; ++column)
            if (is_gradient_)
              to[row * pool.width + column] += share;
            else
              sum += from[row * pool.width + column];
        if (!is_gradient_) to[result] = sum / divisor;
      });
    });
  }

 private:
  bool is_gradient_;
};

// Images whose channels lie side by side, a row of results at a time.
class ImagePoolStep final : public Step {
 public:
  explicit ImagePoolStep(bool is_largest) : is_largest_(is_largest) {}
  bool is_by_images() const override { return true; }
  void run_whole(const WholeCall& call) const override {
    const std::vector<std::int64_t> x = operand_type(call, 0).dims(call.symbols);
    const std::vector<std::int64_t> y = call.graph.types(call.node)[0].dims(call.symbols);
    const AttributeReader attributes = call.graph.attribute(call.node);
    const ops::Window window = ops::pooling_window("pooling", attributes);
    const std::int64_t channels = x[3];
    const auto range = [&](int axis, std::int64_t place, std::int64_t size) {
      const std::int64_t first = window.position(axis, place, 0);
      return std::pair(std::max<std::int64_t>(0, first),
                       std::min(size, first + window.kernel[axis]));
    };
    call.parallel(y[0] * y[1], [&](std::int64_t row, int) {
      const auto [top, bottom] = range(0, row % y[1], x[1]);
      for (std::int64_t j = 0; j < y[2]; ++j) {
        const auto [left, right] = range(1, j, x[2]);
        const auto count = static_cast<std::size_t>((bottom - top) * (right - left));
        call.kernels.pool(
            {.lines = bottom - top,
             .line_step = x[2] * channels,
             .pixels = right - left,
             .pixel_step = channels,
             .channels = channels,
             .x = reinterpret_cast<const float*>(call.inputs[0]) +
                  ((row / y[1] * x[1] + top) * x[2] + left) * channels,
             .y = reinterpret_cast<float*>(call.outputs[0]) + (row * y[2] + j) * channels,
             .divisor =
                 is_largest_ ? 1.0f : static_cast<float>(ops::average_divisor(attributes, count)),
             .is_largest = is_largest_});
      }
    });
  }

 private:
  bool is_largest_;
};

bool is_f32(const Graph& graph, NodeId id) {
  return graph.types(id)[0].dtype == DType::F32;
}

const Register max_pool2d{
    CpuKernel{"max_pool2d", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                switch (graph.types(id)[0].dtype) {
                  case DType::F32:
                    return std::make_unique<MaxPoolStep<float>>();
                  case DType::I8:
                    return std::make_unique<MaxPoolStep<std::int8_t>>();
                  case DType::I16:
                    return std::make_unique<MaxPoolStep<std::int16_t>>();
                  case DType::I32:
                    return std::make_unique<MaxPoolStep<std::int32_t>>();
                  default:
                    return nullptr;
                }
              }}};
const Register max_pool2d_gradient{
    CpuKernel{"max_pool2d_gradient", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                if (!is_f32(graph, id)) return nullptr;
                return std::make_unique<MaxPoolGradientStep>();
              }}};
const Register avg_pool2d{
    CpuKernel{"avg_pool2d", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                if (!is_f32(graph, id)) return nullptr;
                return std::make_unique<AveragePoolStep>(false);
              }}};
const Register avg_pool2d_gradient{
    CpuKernel{"avg_pool2d_gradient", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                if (!is_f32(graph, id)) return nullptr;
                return std::make_unique<AveragePoolStep>(true);
              }}};

template <bool IsLargest>
std::unique_ptr<Step> make_image_pool(const Graph& graph, NodeId id) {
  if (!is_f32(graph, id)) return nullptr;
  return std::make_unique<ImagePoolStep>(IsLargest);
}
const Register image_max_pool2d{CpuKernel{"image_max_pool2d", make_image_pool<true>}};
const Register image_avg_pool2d{CpuKernel{"image_avg_pool2d", make_image_pool<false>}};

}  // namespace
}  // namespace lathe::engine
