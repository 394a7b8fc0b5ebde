#include "lathe/engine/cpu/filter_gradient.h"

#include <algorithm>

#include "lathe/engine/cpu/split_images.h"

namespace lathe::engine {
namespace {

constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
// All parts together: they are written and read once more, which costs as much as some images.
constexpr std::int64_t kMostFloats = std::int64_t{1} << 19;

}  // namespace

FilterGradient::FilterGradient(const Convolution& convolution, const Kernels& kernels,
                               bool is_rounded)
    : c_(convolution),
      kernels_(kernels),
      is_rounded_(is_rounded),
      split_(split_window_kernels(*parse_isa(kernels.isa))),
      frame_(split_ != nullptr ? split_frame(forward_product(convolution)) : std::nullopt),
      columns_((c_.y.width - 1) * c_.window.strides[1] +
               (c_.window.kernel[1] - 1) * c_.window.dilations[1] + 1),
      lines_((c_.y.height - 1) * c_.window.strides[0] +
             (c_.window.kernel[0] - 1) * c_.window.dilations[0] + 1) {}

// More parts even out what else the cores do, while they are small.
std::int64_t FilterGradient::num_parts() const {
  std::int64_t most = 64;
  while (most > 16 && most * c_.num_weights() > kMostFloats) most /= 2;
  return std::clamp<std::int64_t>(c_.x.count, 1, most);
}

std::int64_t FilterGradient::scratch_bytes() const {
  const std::int64_t floats = lines_ * columns_ * c_.x.channels + (c_.y.is_last ? 0 : c_.y.size());
  if (!frame_) return floats * kFloat;
  return std::max(floats * kFloat, split_->gradient_scratch_bytes(*frame_, c_.y.channels));
}

void FilterGradient::run(float* result, AlignedBuffer& sums, std::span<AlignedBuffer> scratch,
                         const ParallelTasks& parallel,
                         const std::function<Image(std::int64_t, int)>& images) const {
  const std::int64_t parts = num_parts(), weights = c_.num_weights();
  sums.reserve(std::max<std::int64_t>(1, parts * weights) * kFloat);
  parallel(parts, [&](std::int64_t part, int thread) {
    const std::int64_t first = part * c_.x.count / parts, end = (part + 1) * c_.x.count / parts;
    float* const total = sums.floats() + part * weights;
    AlignedBuffer& own = scratch[static_cast<std::size_t>(thread)];
    if (first == end) std::fill_n(total, weights, 0.0f);
    for (std::int64_t index = first; index < end; ++index) {
      const Image image = images(index, thread);
      own.reserve(std::max<std::int64_t>(1, scratch_bytes()));
      add(image, own.floats(), total, index > first);
    }
  });
  put(sums.floats(), parts, result, parallel);
}

// A part's sums are the gradient of a weight [O, kh, kw, C/groups]: taps before channels, as
// windows have them.
void FilterGradient::add(const Image& image, float* scratch, float* total, bool accumulate) const {
  // In parts, but where a number is too large for it.
  if (frame_ && split_->add_gradient({.frame = *frame_,
                                      .n = c_.y.channels,
                                      .is_rounded = is_rounded_,
                                      .x = image.x,
                                      .dy = image.dy,
                                      .dw = total,
                                      .dw_stride = c_.x.channels * c_.taps(),
                                      .accumulate = accumulate,
                                      .scratch = scratch}))
    return;
  for (std::int64_t line = 0; line < lines_; ++line)
    copy_line(kernels_, c_.x, image.x, line - c_.window.pads[0], -c_.window.pads[1], columns_,
              scratch + line * columns_ * c_.x.channels);
  const float* dy = image.dy;
  if (!c_.y.is_last) {
    float* const turned = scratch + lines_ * columns_ * c_.x.channels;
    const std::int64_t plane = c_.y.height * c_.y.width;
    kernels_.transpose_matrix({.rows = c_.y.channels,
                               .columns = plane,
                               .x = dy,
                               .x_stride = plane,
                               .y = turned,
                               .y_stride = c_.y.channels});
    dy = turned;
  }
  const bool is_split = c_.groups > 1 || c_.window.dilations[1] != 1;
  const std::int64_t pieces = is_split ? c_.window.kernel[1] : 1;
  const std::int64_t channels = c_.group_channels();
  const std::int64_t length = is_split ? channels : channels * c_.window.kernel[1];
  const std::int64_t depth = channels * c_.taps(), filters = c_.group_filters();
  for (std::int64_t group = 0; group < c_.groups; ++group)
    for (std::int64_t p = 0; p < c_.window.kernel[0]; ++p)
      for (std::int64_t q = 0; q < pieces; ++q)
        kernels_.convolve_gradient(
            {.lines = c_.y.height,
             .pixels = c_.y.width,
             .n = filters,
             .k = length,
             .dy = dy + group * filters,
             .dy_line = c_.y.width * c_.y.channels,
             .dy_step = c_.y.channels,
             .x = scratch +
                  (p * c_.window.dilations[0] * columns_ + q * c_.window.dilations[1]) *
                      c_.x.channels +
                  group * channels,
             .x_line = c_.window.strides[0] * columns_ * c_.x.channels,
             .x_step = c_.window.strides[1] * c_.x.channels,
             .dw = total + group * filters * depth + (p * pieces + q) * length,
             .dw_stride = depth,
             .accumulate = accumulate});
}

// Adds the parts and turns each filter's [taps, channels] around.
void FilterGradient::put(const float* totals, std::int64_t parts, float* result,
                         const ParallelTasks& parallel) const {
  const std::int64_t channels = c_.group_channels(), taps = c_.taps();
  const std::int64_t depth = channels * taps;
  parallel(c_.y.channels, [&](std::int64_t filter, int) {
    std::vector<float> sums(static_cast<std::size_t>(depth), 0.0f);
    kernels_.sum_rows_accumulate(totals + filter * depth, parts, depth, c_.num_weights(),
                                 sums.data());
    kernels_.transpose_matrix({.rows = taps,
                               .columns = channels,
                               .x = sums.data(),
                               .x_stride = channels,
                               .y = result + filter * depth,
                               .y_stride = taps});
  });
}

}  // namespace lathe::engine
