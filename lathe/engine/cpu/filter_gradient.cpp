#include "lathe/engine/cpu/filter_gradient.h"

#include <algorithm>

#include "lathe/engine/cpu/split_images.h"
#include "lathe/engine/cpu/winograd.h"

namespace lathe::engine {
namespace {

constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
// All parts together: they are written and read once more, which costs as much as some images.
constexpr std::int64_t kMostFloats = std::int64_t{1} << 19;

constexpr std::int64_t kRoundedPixels = 512;

// Numbers at the points of tiles. A line more keeps tiles, and the points of a filter's gradient,
// apart in the sets of a cache.
struct TilePoints {
  std::int64_t count;
  std::int64_t x, dy;           // of a tile
  std::int64_t at_point, size;  // of all filters' gradients: at one point, and at all
  TilePoints(const Convolution& c, int tile)
      : count(winograd_points(tile)),
        x(count * c.x.channels + 16),
        dy(count * c.y.channels + 16),
        at_point(c.x.channels * c.y.channels + 16),
        size(count * at_point) {}
};

}  // namespace

FilterGradient::FilterGradient(const Convolution& convolution, const Kernels& kernels,
                               bool is_rounded, int tile)
    : c_(convolution),
      kernels_(kernels),
      is_rounded_(is_rounded),
      split_(split_window_kernels(*parse_isa(kernels.isa), is_rounded)),
      frame_(split_ != nullptr && (is_rounded || tile == 0)
                 ? split_frame(forward_product(convolution), is_rounded)
                 : std::nullopt),
      tile_(frame_ ? 0 : tile),
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
  if (tile_ != 0) {
    const std::int64_t tiles = images_at_once() * WinogradGrid(c_, tile_).tiles_of_image();
    const TilePoints points(c_, tile_);
    return tiles * (points.x + points.dy) * kFloat;
  }
  const std::int64_t floats = lines_ * columns_ * c_.x.channels + (c_.y.is_last ? 0 : c_.y.size());
  if (!frame_) return floats * kFloat;
  return std::max(floats * kFloat,
                  images_at_once() * split_->gradient_scratch_bytes(*frame_, c_.y.channels));
}

std::int64_t FilterGradient::images_at_once() const {
  if (tile_ != 0) return winograd_images_at_once(c_, tile_);
  // Rounded images are multiplied so fast that sums had better not be written for each small one.
  return frame_ && is_rounded_
             ? std::max<std::int64_t>(
                   1, kRoundedPixels / std::max<std::int64_t>(1, c_.y.height * c_.y.width))
             : 1;
}

void FilterGradient::run(float* result, AlignedBuffer& sums, std::span<AlignedBuffer> scratch,
                         const ParallelTasks& parallel, const SomeImages& images,
                         const AddImages& add_images) const {
  const std::int64_t parts = num_parts(), weights = c_.num_weights(), at_once = images_at_once();
  // Behind the sums of parts those of a thread's part at the points of tiles.
  const std::int64_t points = tile_ != 0 ? TilePoints(c_, tile_).size : 0;
  sums.reserve(std::max<std::int64_t>(1, parts * weights + std::ssize(scratch) * points) * kFloat);
  parallel(parts, [&](std::int64_t part, int thread) {
    const std::int64_t first = part * c_.x.count / parts, end = (part + 1) * c_.x.count / parts;
    float* const total = sums.floats() + part * weights;
    AlignedBuffer& own = scratch[static_cast<std::size_t>(thread)];
    if (first == end) return void(std::fill_n(total, weights, 0.0f));
    float* const at_points = sums.floats() + parts * weights + thread * points;
    for (std::int64_t index = first; index < end;) {
      std::int64_t count = std::min(at_once, end - index);
      if (frame_ && add_images) {
        const std::int64_t done =
            add_images(window_args(count, total, index > first), index, thread);
        index += done, count -= done;
        if (count == 0) continue;
      }
      const Some some = images(index, count, thread);
      own.reserve(std::max<std::int64_t>(1, scratch_bytes()));
      if (tile_ != 0)
        add_tiles(some, count, own.floats(), at_points, index > first);
      else
        add(some, count, own.floats(), total, index > first);
      index += count;
    }
    if (tile_ != 0) put_taps(at_points, total);
  });
  put(sums.floats(), parts, result, parallel);
}

// Adds the products of some images at the points of their tiles to sums[points, filters, channels].
void FilterGradient::add_tiles(const Some& images, std::int64_t count, float* scratch, float* sums,
                               bool accumulate) const {
  const WinogradGrid grid(c_, tile_);
  const TilePoints points(c_, tile_);
  const std::int64_t tiles = count * grid.tiles_of_image();
  float* const of_dy = scratch + tiles * points.x;
  grid.transform_input(kernels_, images.x, images.front, 0, tiles, scratch, points.x,
                       c_.x.channels);
  grid.over_rows(0, tiles, [&](std::int64_t done, const WinogradGrid::Run& run) {
    const std::int64_t at = (run.image * c_.y.height + run.line) * c_.y.width + run.pixel;
    kernels_.winograd_gradient({.tiles = run.tiles,
                                .n = c_.y.channels,
                                .dy = images.dy + at * c_.y.channels,
                                .line = c_.y.width * c_.y.channels,
                                .pixel = c_.y.channels,
                                .lines = run.lines,
                                .pixels = run.pixels,
                                .points = of_dy + done * points.dy,
                                .tile_step = points.dy,
                                .step = c_.y.channels});
  });
  for (std::int64_t point = 0; point < points.count; ++point) {
    images.ahead.ask(point, points.count);
    kernels_.convolve_gradient({.lines = 1,
                                .pixels = tiles,
                                .n = c_.y.channels,
                                .k = c_.x.channels,
                                .dy = of_dy + point * c_.y.channels,
                                .dy_line = 0,
                                .dy_step = points.dy,
                                .x = scratch + point * c_.x.channels,
                                .x_line = 0,
                                .x_step = points.x,
                                .dw = sums + point * points.at_point,
                                .dw_stride = c_.x.channels,
                                .accumulate = accumulate});
  }
}

void FilterGradient::put_taps(const float* sums, float* total) const {
  const std::int64_t channels = c_.x.channels;
  for (std::int64_t f = 0; f < c_.y.channels; ++f)
    kernels_.winograd_taps({.channels = channels,
                            .points = sums + f * channels,
                            .step = TilePoints(c_, tile_).at_point,
                            .dw = total + f * channels * c_.taps(),
                            .tap_step = channels});
}

SplitWindowGradientArgs FilterGradient::window_args(std::int64_t count, float* total,
                                                    bool accumulate) const {
  return {.frame = *frame_,
          .n = c_.y.channels,
          .images = count,
          .is_rounded = is_rounded_,
          .x = {},
          .dy = {},
          .dw = total,
          .dw_stride = c_.x.channels * c_.taps(),
          .accumulate = accumulate,
          .scratch = nullptr};
}

// A part's sums are the gradient of a weight [O, kh, kw, C/groups]: taps before channels, as
// windows have them.
void FilterGradient::add(const Some& images, std::int64_t count, float* scratch, float* total,
                         bool accumulate) const {
  if (frame_) {
    SplitWindowGradientArgs args = window_args(count, total, accumulate);
    args.x = {images.x, false};
    args.dy = {images.dy, false};
    args.scratch = scratch;
    // In parts, but where a number is too large for it.
    if (split_->add_gradient(args)) return;
  }
  for (std::int64_t i = 0; i < count; ++i)
    add_floats(images.x + i * c_.x.size(), images.dy + i * c_.y.size(), scratch, total,
               accumulate || i > 0);
}

void FilterGradient::add_floats(const float* x, const float* dy, float* scratch, float* total,
                                bool accumulate) const {
  for (std::int64_t line = 0; line < lines_; ++line)
    copy_line(kernels_, c_.x, x, line - c_.window.pads[0], -c_.window.pads[1], columns_,
              scratch + line * columns_ * c_.x.channels);
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
