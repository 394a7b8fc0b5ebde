#include <algorithm>
#include <cmath>

#include "lathe/core/error.h"
#include "lathe/engine/cpu/activations.h"
#include "lathe/engine/cpu/channel_moments.h"
#include "lathe/engine/cpu/convolution.h"
#include "lathe/engine/cpu/lying_floats.h"
#include "lathe/engine/cpu/phased_convolution.h"
#include "lathe/engine/cpu/split_images.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/engine/cpu/winograd.h"

namespace lathe::engine {
namespace {

constexpr std::size_t kWeight = 1, kBias = 2, kResidual = 3, kNorm = 4;
// Of image_conv2d_statistics, which has no residual.
constexpr std::size_t kNormWeight = 3;
// Of image_normed_conv2d_statistics: mean, slope and bias of the norm in front, and its residual.
constexpr std::size_t kFront = 4, kMade = 4;

std::vector<std::int64_t> constant_dims(const Type& type) {
  std::vector<std::int64_t> dims;
  for (const Size& size : type.shape) dims.push_back(size.constant());
  return dims;
}

// conv2d, image_conv2d and those with statistics: products of windows with packed filters, whose
// epilogue adds bias and residual and applies an activation. A batch norm of given statistics
// behind it becomes part of the filters; for one that is trained the statistics are summed, and one
// in front is applied to an image when its turn comes.
class Conv2dStep final : public Step {
 public:
  Conv2dStep(const Graph& graph, NodeId id, Unary activation)
      : activation_(activation), weight_dims_(constant_dims(graph.type(graph.input(id, kWeight)))) {
    const AttributeReader attributes = graph.attribute(id);
    groups_ = attributes.integer("groups");
    window_ = ops::read_window("conv2d", weight_dims_[2], weight_dims_[3], attributes, true);
    if (graph.is(id, "conv2d")) return;
    x_is_last_ = attributes.flag("x_last");
    eps_ = attributes.real("eps");
    has_front_ = graph.is(id, "image_normed_conv2d_statistics");
    has_statistics_ = has_front_ || graph.is(id, "image_conv2d_statistics");
    keeps_made_ = has_front_ && graph.has_uses({id, kMade});
    y_is_last_ = has_statistics_ || attributes.flag("y_last");
    tile_ = static_cast<int>(attributes.integer("tile"));
    may_be_split_ = has_statistics_;
    has_rounded_results_ = has_statistics_ && attributes.flag("rounded");
    if (has_statistics_) return;
    if (graph.state_updates().empty()) {
      reason_ = choose_winograd(graph, id).reason;
      return;
    }
    const bool has_residual =
        graph.inputs(id).size() > kResidual && !graph.input(id, kResidual).is_none();
    may_be_split_ = activation == Unary::None && !has_residual;
  }

  void set_precision(Precision precision) override { is_rounded_ = precision == Precision::Bf16; }
  // Of windows a pixel apart in tiles: images are rounded when they are laid out, and the norm in
  // front is of floats.
  Narrow narrow_input(std::size_t operand) const override {
    if (!rounds() || PhasedConvolution::suits(without_images())) return Narrow::No;
    if (has_front_) return operand == 0 || operand == kFront + 3 ? Narrow::Can : Narrow::No;
    return operand == 0 ? Narrow::Anyway : Narrow::No;
  }
  Narrow narrow_output(std::size_t result) const override {
    return result == 0 && rounds() ? Narrow::Anyway : Narrow::No;
  }
  void set_narrow(const std::vector<bool>& inputs, const std::vector<bool>& outputs) override {
    x_is_narrow_ = inputs[0];
    residual_is_narrow_ = inputs.size() > kFront + 3 && inputs[kFront + 3];
    y_is_narrow_ = outputs[0];
  }
  void prepare(const Kernels& kernels, std::span<const Tensor* const> states) override {
    is_phased_ = is_rounded_ && may_be_split_ && PhasedConvolution::suits(without_images());
    // Floats in tiles are faster than floats in parts, and those slower than rounded ones.
    split_ = may_be_split_ && (is_rounded_ || tile_ == 0) &&
                     split_frame(forward_product(multiplied(without_images())), is_rounded_)
                 ? split_window_kernels(*parse_isa(kernels.isa), is_rounded_)
                 : nullptr;
    is_phased_ = is_phased_ && split_ != nullptr;
    if (split_ != nullptr) tile_ = 0;
    if (states[kWeight] == nullptr) return;
    const bool has_norm = !has_front_ && states.size() > kNorm && states[kNorm] != nullptr;
    std::vector<float> factors;
    if (has_norm) {
      const auto filters = static_cast<std::size_t>(weight_dims_[0]);
      factors.resize(filters);
      bias_.resize(filters);
      for (std::size_t f = 0; f < filters; ++f) {
        const double factor =
            states[kNorm]->data<float>()[f] / std::sqrt(states[kNorm + 3]->data<float>()[f] + eps_);
        const double bias = states[kBias] == nullptr ? 0.0 : states[kBias]->data<float>()[f];
        factors[f] = static_cast<float>(factor);
        bias_[f] = static_cast<float>((bias - states[kNorm + 2]->data<float>()[f]) * factor +
                                      states[kNorm + 1]->data<float>()[f]);
      }
    }
    const float* const weight = states[kWeight]->data<float>().data();
    if (tile_ != 0)
      tile_filters_.pack(kernels, tile_, weight_dims_[0], weight_dims_[1], weight, factors);
    else
      pack(kernels, weight, factors, filters_, split_filters_);
    is_prepared_ = true;
  }
  std::int64_t layout_bytes() const override {
    return filters_.bytes() + split_filters_.bytes() + tile_filters_.bytes();
  }
  bool reads_state(std::size_t operand) const override {
    return operand != kWeight && (has_front_ || operand < kNorm) &&
           (operand != kBias || bias_.empty());
  }

  bool is_by_images() const override { return !has_statistics_; }
  // Whether an image has enough to do for one thread.
  bool is_large() const {
    return split_frame(forward_product(without_images()), false).has_value();
  }
  KernelChoice choice() const override {
    if (tile_ != 0) return {fmt::format("Winograd, tiles of {0}x{0}", tile_), reason_};
    std::string way = weight_dims_[2] == 1 && weight_dims_[3] == 1
                          ? "pixels"
                          : fmt::format("{}x{} windows", weight_dims_[2], weight_dims_[3]);
    if (!x_is_last_) way += " of planes";
    if (!y_is_last_) way += " to planes";
    if (split_ != nullptr) way += is_rounded_ ? " in bfloat16" : " in parts";
    return {std::move(way), reason_};
  }

  void run_whole(const WholeCall& call) const override {
    const auto dims = [&](Value value) { return call.graph.type(value).dims(call.symbols); };
    const Convolution convolution{images_of(dims(call.graph.input(call.node, 0)), x_is_last_),
                                  images_of(dims({call.node, 0}), y_is_last_), groups_, window_};
    const auto operand = [&](std::size_t i) {
      return i < call.inputs.size() ? reinterpret_cast<const float*>(call.inputs[i]) : nullptr;
    };
    ImageOperands operands{.x = operand(0),
                           .bias = bias_.empty() ? operand(kBias) : bias_.data(),
                           .residual = has_statistics_ ? nullptr : operand(kResidual),
                           .y = reinterpret_cast<float*>(call.outputs[0]),
                           .activation = activation_};
    if (tile_ != 0 && !has_statistics_)
      return multiply_winograd(call.kernels, convolution, tile_filters_, operands, call.scratch,
                               call.parallel, cut_);
    PackedFilters packed;
    SplitFilters split_packed;
    if (!is_prepared_ && tile_ != 0)
      tile_filters_.pack(call.kernels, tile_, weight_dims_[0], weight_dims_[1], operand(kWeight),
                         {}, call.parallel);
    else if (!is_prepared_)
      pack(call.kernels, operand(kWeight), {}, packed, split_packed);
    const PackedFilters& filters = is_prepared_ ? filters_ : packed;
    const SplitFilters& in_parts = is_prepared_ ? split_filters_ : split_packed;
    const ImageProduct product = forward_product(multiplied(convolution));
    const Images &x = convolution.x, &y = convolution.y;
    const Lying given{operand(0), x_is_narrow_};
    const Lying residual{has_front_ ? operand(kFront + 3) : nullptr, residual_is_narrow_};
    std::vector<ChannelMoments> moments;
    if (has_statistics_)
      moments.assign(static_cast<std::size_t>(y.count), ChannelMoments(y.channels));
    const auto look_at = [&](std::int64_t image, const float* made) {
      if (has_statistics_)
        moments[static_cast<std::size_t>(image)].add(call.kernels, made, y.height * y.width);
    };
    const bool makes_x = has_front_ || is_phased_;
    if (makes_x) made_.resize(call.scratch.size());
    // What is multiplied of some images, where it is kept or in the thread's own memory.
    const auto make = [&](std::int64_t first, std::int64_t count, int thread) {
      float* to = nullptr;
      if (keeps_made_) {
        to = reinterpret_cast<float*>(call.outputs[kMade]) + first * x.size();
      } else {
        AlignedBuffer& own = made_[static_cast<std::size_t>(thread)];
        own.reserve(count * product.x.size() * static_cast<std::int64_t>(sizeof(float)));
        to = own.floats();
      }
      if (is_phased_) {
        const PhasedConvolution phased(convolution);
        for (std::int64_t i = 0; i < count; ++i)
          phased.put_image(operands.x + (first + i) * x.size(), to + i * product.x.size());
        return static_cast<const float*>(to);
      }
      std::vector<float> own_x, own_residual;
      call.kernels.scale_channels(
          {.rows = count * x.height * x.width,
           .n = x.channels,
           .x = as_floats(behind(given, first * x.size()), count * x.size(), own_x),
           .center = operand(kFront),
           .slope = operand(kFront + 1),
           .bias = operand(kFront + 2),
           .residual = residual.at == nullptr ? nullptr
                                              : as_floats(behind(residual, first * x.size()),
                                                          count * x.size(), own_residual),
           .has_relu = true,
           .y = to});
      return static_cast<const float*>(to);
    };
    if (tile_ != 0) {
      const std::int64_t at_once = winograd_images_at_once(convolution, tile_);
      // What nobody else reads is made where it is transformed.
      const bool reads_front = has_front_ && !keeps_made_ && residual.at == nullptr;
      const WinogradFront front =
          reads_front ? WinogradFront{operand(kFront), operand(kFront + 1), operand(kFront + 2)}
                      : WinogradFront{};
      call.parallel_by_rows((y.count + at_once - 1) / at_once, [&](std::int64_t task, int thread) {
        const std::int64_t first = task * at_once, count = std::min(at_once, y.count - first);
        ImageOperands some = operands;
        some.x =
            has_front_ && !reads_front ? make(first, count, thread) : operands.x + first * x.size();
        some.y += first * y.size();
        LinesAhead ahead;
        const std::int64_t next = first + count, more = std::min(at_once, y.count - next);
        const std::int64_t bytes = more * x.size() * static_cast<std::int64_t>(sizeof(float));
        ahead.add(operands.x + next * x.size(), bytes);
        if (residual.at != nullptr) ahead.add(behind(residual, next * x.size()).at, bytes);
        multiply_winograd_images(call.kernels, convolution, tile_filters_, some, count,
                                 call.scratch[static_cast<std::size_t>(thread)], front, ahead);
        for (std::int64_t image = first; image < first + count; ++image)
          look_at(image, operands.y + image * y.size());
      });
    } else if (split_ != nullptr) {
      ImageCalls calls{.make = {}, .made_from = x.size(), .done = look_at};
      calls.x_is_narrow = x_is_narrow_;
      calls.y_is_narrow = y_is_narrow_;
      if (has_statistics_)
        calls.take_moments = [&](std::int64_t image, const double* found) {
          moments[static_cast<std::size_t>(image)].join(static_cast<double>(y.height * y.width),
                                                        found, found + y.channels);
        };
      if (has_front_ && !is_phased_)
        calls.front = {
            .center = operand(kFront),
            .slope = operand(kFront + 1),
            .bias = operand(kFront + 2),
            .residual = residual,
            .made = keeps_made_ ? reinterpret_cast<float*>(call.outputs[kMade]) : nullptr};
      if (makes_x)
        calls.make = [&](std::int64_t image, int thread) { return make(image, 1, thread); };
      multiply_images_in_parts(call.kernels, *split_, product, *split_frame(product, is_rounded_),
                               filters, in_parts, operands, call.scratch, call.parallel_by_rows,
                               calls);
    } else if (makes_x || (has_statistics_ && y.count >= std::ssize(call.scratch))) {
      call.parallel_by_rows(y.count, [&](std::int64_t image, int thread) {
        ImageOperands alone = operands;
        alone.x = makes_x ? make(image, 1, thread) : operands.x + image * x.size();
        alone.y += image * y.size();
        multiply_image(call.kernels, product, filters, alone,
                       call.scratch[static_cast<std::size_t>(thread)]);
        look_at(image, alone.y);
      });
    } else {
      multiply_images(call.kernels, product, filters, operands, call.scratch, call.parallel, cut_);
      if (has_statistics_)
        call.parallel_by_rows(y.count, [&](std::int64_t image, int) {
          look_at(image, operands.y + image * y.size());
        });
    }
    if (!has_statistics_) return;
    if (y.count * y.height * y.width == 1)
      fail("one element a channel has no variance: expected more");
    const auto result = [&](std::size_t i) { return reinterpret_cast<float*>(call.outputs[i]); };
    put_statistics(moments, {operand(kNormWeight), static_cast<std::size_t>(y.channels)}, eps_,
                   {result(1), result(2), result(3)});
  }

 private:
  // Filters lie the same whatever the images.
  Convolution without_images() const {
    return {
        {.count = 0,
         .channels = weight_dims_[1] * groups_,
         .height = 0,
         .width = 0,
         .is_last = x_is_last_},
        {.count = 0, .channels = weight_dims_[0], .height = 0, .width = 0, .is_last = y_is_last_},
        groups_,
        window_};
  }
  // The convolution that is multiplied as windows, of the one that is asked for.
  Convolution multiplied(const Convolution& convolution) const {
    return is_phased_ ? PhasedConvolution(convolution).convolution() : convolution;
  }
  // Whether operands and results are rounded, known before `prepare`.
  bool rounds() const {
    const Convolution given = without_images();
    return has_rounded_results_ &&
           split_frame(forward_product(PhasedConvolution::suits(given)
                                           ? PhasedConvolution(given).convolution()
                                           : given),
                       true);
  }
  void pack(const Kernels& kernels, const float* weight, std::span<const float> factors,
            PackedFilters& filters, SplitFilters& in_parts) const {
    const Convolution convolution = multiplied(without_images());
    const ImageProduct product = forward_product(convolution);
    std::vector<float> phased;
    if (is_phased_) phased = PhasedConvolution(without_images()).put_weight(weight);
    filters.pack(kernels, product, is_phased_ ? phased.data() : weight, forward_places(convolution),
                 factors);
    if (split_ != nullptr)
      in_parts.pack(*split_, product, kernels.gemm_grain().columns, filters, is_rounded_);
  }

  Unary activation_;
  std::vector<std::int64_t> weight_dims_;
  std::int64_t groups_ = 1;
  ops::Window window_{};
  bool x_is_last_ = false, y_is_last_ = false;
  bool has_statistics_ = false;  // of the results, image by image and joined in their order
  bool has_front_ = false;       // a norm and relu, applied to x
  bool keeps_made_ = false;      // what they make of it
  double eps_ = 0;
  int tile_ = 0;  // of Winograd's products, or 0
  std::string reason_;
  bool is_prepared_ = false;
  PackedFilters filters_;
  // Floats in parts: only where weights are trained, because otherwise Winograd's products are as
  // fast.
  bool may_be_split_ = false, is_rounded_ = false;
  bool is_phased_ = false;  // windows more than a pixel apart, as such that are not
  bool has_rounded_results_ = false;
  bool x_is_narrow_ = false, residual_is_narrow_ = false, y_is_narrow_ = false;
  const SplitWindowKernels* split_ = nullptr;
  SplitFilters split_filters_;
  // A run is one at a time.
  mutable WinogradFilters tile_filters_;
  mutable std::vector<AlignedBuffer> made_;  // one for each thread
  mutable KnownCut cut_;
  std::vector<float> bias_;  // with a batch norm
};

bool is_state_or_none(const Graph& graph, Value value) {
  return value.is_none() || graph.is(value.node, "state");
}

std::unique_ptr<Step> make_conv2d(const Graph& graph, NodeId id) {
  if (graph.types(id)[0].dtype != DType::F32) return nullptr;
  for (const Size& size : graph.type(graph.input(id, kWeight)).shape)
    if (!size.is_constant()) return nullptr;
  Unary activation = Unary::None;
  if (graph.is(id, "image_conv2d")) {
    const std::string& name = graph.attribute(id).text("activation");
    const Activation* const fused = find_epilogue(name);
    if (fused == nullptr && name != "none") return nullptr;
    if (fused != nullptr) activation = fused->function;
    const std::vector<Value>& operands = graph.inputs(id);
    const bool has_norm = operands.size() > kNorm && !operands[kNorm].is_none();
    if (has_norm && !graph.is(operands[kWeight].node, "state")) return nullptr;
    if (has_norm && !is_state_or_none(graph, operands[kBias])) return nullptr;
    for (std::size_t i = kNorm; i < operands.size(); ++i)
      if (!is_state_or_none(graph, operands[i])) return nullptr;
    if (operands.size() > kResidual && !operands[kResidual].is_none() &&
        !graph.attribute(id).flag("y_last"))
      return nullptr;
  }
  auto step = std::make_unique<Conv2dStep>(graph, id, activation);
  if (graph.is(id, "image_normed_conv2d_statistics") && !step->is_large()) return nullptr;
  return step;
}

const Register conv2d{CpuKernel{"conv2d", make_conv2d}};
const Register image_conv2d{CpuKernel{"image_conv2d", make_conv2d}};
const Register image_conv2d_statistics{CpuKernel{"image_conv2d_statistics", make_conv2d}};
const Register image_normed_conv2d_statistics{
    CpuKernel{"image_normed_conv2d_statistics", make_conv2d}};

}  // namespace
}  // namespace lathe::engine
