#include <algorithm>

#include "lathe/engine/cpu/step.h"
#include "lathe/ops/window.h"

namespace lathe::engine {
namespace {

// conv2d and its gradients by products: the elements of an image under each place of the window
// become the columns of a matrix [taps, places], which the weight [filters, taps] is multiplied
// with. One image at a time, so that any number of threads sums in the same order.

// The sizes of one execution; those of a group where channels are divided into groups.
struct Convolution {
  std::int64_t images, groups;
  std::int64_t channels, filters;  ///< of a group
  std::int64_t height, width, out_height, out_width;
  ops::Window window;

  Convolution(const AttributeReader& attributes, const std::vector<std::int64_t>& x,
              const std::vector<std::int64_t>& weight, const std::vector<std::int64_t>& y)
      : images(x[0]),
        groups(attributes.integer("groups")),
        channels(weight[1]),
        filters(weight[0] / groups),
        height(x[2]),
        width(x[3]),
        out_height(y[2]),
        out_width(y[3]),
        window(ops::read_window("conv2d", weight[2], weight[3], attributes, true)) {}

  std::int64_t taps() const { return channels * window.kernel[0] * window.kernel[1]; }
  std::int64_t places() const { return out_height * out_width; }
  std::int64_t image_size() const { return groups * channels * height * width; }
  std::int64_t result_size() const { return groups * filters * places(); }

  // Calls visit(place of `columns`, element of the image) for every element that is no padding,
  // and skip(first, count) for places that have none.
  template <typename Visit, typename Skip>
  void walk(const Visit& visit, const Skip& skip) const {
    std::int64_t row = 0;
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t p = 0; p < window.kernel[0]; ++p)
        for (std::int64_t q = 0; q < window.kernel[1]; ++q, ++row)
          for (std::int64_t i = 0; i < out_height; ++i) {
            const std::int64_t first = (row * out_height + i) * out_width;
            const std::int64_t y = window.position(0, i, p);
            if (y < 0 || y >= height) {
              skip(first, out_width);
              continue;
            }
            for (std::int64_t j = 0; j < out_width; ++j) {
              const std::int64_t x = window.position(1, j, q);
              if (x < 0 || x >= width)
                skip(first + j, 1);
              else
                visit(first + j, (c * height + y) * width + x);
            }
          }
  }

  void gather(const float* image, float* columns) const {
    walk(
        [&](std::int64_t place, std::int64_t element) { columns[place] = image[element]; },
        [&](std::int64_t first, std::int64_t count) { std::fill_n(columns + first, count, 0.0f); });
  }
  void scatter(const float* columns, float* image) const {
    std::fill_n(image, channels * height * width, 0.0f);
    walk([&](std::int64_t place, std::int64_t element) { image[element] += columns[place]; },
         [](std::int64_t, std::int64_t) {});
  }
};

std::vector<std::int64_t> operand_dims(const WholeCall& call, std::size_t operand) {
  return call.graph.type(call.graph.input(call.node, operand)).dims(call.symbols);
}

std::vector<std::int64_t> result_dims(const WholeCall& call) {
  return call.graph.types(call.node)[0].dims(call.symbols);
}

const float* floats(const WholeCall& call, std::size_t operand) {
  return reinterpret_cast<const float*>(call.inputs[operand]);
}

void reserve_floats_of_threads(const WholeCall& call, std::int64_t count) {
  for (AlignedBuffer& buffer : call.scratch)
    buffer.reserve(count * static_cast<std::int64_t>(sizeof(float)));
}

GemmArgs product(std::int64_t rows, std::int64_t n, std::int64_t k, const float* x,
                 std::int64_t x_stride, const float* packed, float* y) {
  GemmArgs args{};
  args.rows = rows;
  args.n = n;
  args.k = k;
  args.x = x;
  args.x_stride = x_stride;
  args.packed = packed;
  args.activation = Unary::None;
  args.y = y;
  args.y_stride = n;
  return args;
}

// y[filters, places] = weight[filters, taps] * columns[taps, places].
class Conv2dStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const std::vector<std::int64_t> weight_dims = operand_dims(call, 1);
    const Convolution c(call.graph.attribute(call.node), operand_dims(call, 0), weight_dims,
                        result_dims(call));
    const std::int64_t columns = c.taps() * c.places();
    reserve_floats_of_threads(call, columns + call.kernels.packed_size(c.places(), c.taps()));
    const bool has_bias = call.inputs.size() > 2 && call.inputs[2] != nullptr;
    call.parallel(c.images, [&](std::int64_t image, int thread) {
      float* const gathered = call.scratch[static_cast<std::size_t>(thread)].floats();
      float* const packed = gathered + columns;
      for (std::int64_t g = 0; g < c.groups; ++g) {
        c.gather(floats(call, 0) + image * c.image_size() + g * c.channels * c.height * c.width,
                 gathered);
        call.kernels.pack_b(gathered, c.places(), c.taps(), 1, c.places(), packed);
        float* const y = reinterpret_cast<float*>(call.outputs[0]) + image * c.result_size() +
                         g * c.filters * c.places();
        call.kernels.gemm(product(c.filters, c.places(), c.taps(),
                                  floats(call, 1) + g * c.filters * c.taps(), c.taps(), packed, y));
        for (std::int64_t f = 0; has_bias && f < c.filters; ++f) {
          const float bias = floats(call, 2)[g * c.filters + f];
          for (std::int64_t i = 0; i < c.places(); ++i) y[f * c.places() + i] += bias;
        }
      }
    });
  }
};

// The transposed weight times dy[filters, places] is the gradient of the columns.
class Conv2dInputGradientStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const Convolution c(call.graph.attribute(call.node), result_dims(call), operand_dims(call, 1),
                        operand_dims(call, 0));
    const std::int64_t columns = c.taps() * c.places();
    reserve_floats_of_threads(call, columns + call.kernels.packed_size(c.places(), c.filters));
    call.parallel(c.images, [&](std::int64_t image, int thread) {
      float* const gradient = call.scratch[static_cast<std::size_t>(thread)].floats();
      float* const packed = gradient + columns;
      for (std::int64_t g = 0; g < c.groups; ++g) {
        const float* const dy =
            floats(call, 0) + image * c.result_size() + g * c.filters * c.places();
        call.kernels.pack_b(dy, c.places(), c.filters, 1, c.places(), packed);
        GemmArgs args = product(c.taps(), c.places(), c.filters,
                                floats(call, 1) + g * c.filters * c.taps(), 1, packed, gradient);
        args.x_step = c.taps();
        call.kernels.gemm(args);
        c.scatter(gradient, reinterpret_cast<float*>(call.outputs[0]) + image * c.image_size() +
                                g * c.channels * c.height * c.width);
      }
    });
  }
};

// dy[filters, places] times the transposed columns, summed over images: by parts of the batch whose
// number follows from its size, and then in their order.
class Conv2dWeightGradientStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    constexpr std::int64_t kMostParts = 16;
    const Convolution c(call.graph.attribute(call.node), operand_dims(call, 1), result_dims(call),
                        operand_dims(call, 0));
    const std::int64_t columns = c.taps() * c.places();
    const std::int64_t weights = c.groups * c.filters * c.taps();
    const std::int64_t parts = std::min(kMostParts, c.images);
    reserve_floats_of_threads(call, columns + call.kernels.packed_size(c.taps(), c.places()));
    std::vector<float> sums(static_cast<std::size_t>(parts * weights), 0.0f);
    call.parallel(parts, [&](std::int64_t part, int thread) {
      float* const gathered = call.scratch[static_cast<std::size_t>(thread)].floats();
      float* const packed = gathered + columns;
      for (std::int64_t image = part * c.images / parts; image < (part + 1) * c.images / parts;
           ++image)
        for (std::int64_t g = 0; g < c.groups; ++g) {
          c.gather(floats(call, 1) + image * c.image_size() + g * c.channels * c.height * c.width,
                   gathered);
          call.kernels.pack_b(gathered, c.taps(), c.places(), c.places(), 1, packed);
          GemmArgs args =
              product(c.filters, c.taps(), c.places(),
                      floats(call, 0) + image * c.result_size() + g * c.filters * c.places(),
                      c.places(), packed, sums.data() + part * weights + g * c.filters * c.taps());
          args.accumulate = true;
          call.kernels.gemm(args);
        }
    });
    auto* const result = reinterpret_cast<float*>(call.outputs[0]);
    std::fill_n(result, weights, 0.0f);
    for (std::int64_t part = 0; part < parts; ++part)
      for (std::int64_t i = 0; i < weights; ++i)
        result[i] += sums[static_cast<std::size_t>(part * weights + i)];
  }
};

template <typename ConvolutionStep>
CpuKernel convolution_kernel(std::string op) {
  return {std::move(op), [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
            if (graph.types(id)[0].dtype != DType::F32) return nullptr;
            return std::make_unique<ConvolutionStep>();
          }};
}

const Register conv2d{convolution_kernel<Conv2dStep>("conv2d")};
const Register conv2d_input_gradient{
    convolution_kernel<Conv2dInputGradientStep>("conv2d_input_gradient")};
const Register conv2d_weight_gradient{
    convolution_kernel<Conv2dWeightGradientStep>("conv2d_weight_gradient")};

}  // namespace
}  // namespace lathe::engine
