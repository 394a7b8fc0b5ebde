#include "lathe/engine/cpu/split_images.h"

#include <algorithm>
#include <cmath>

#include "lathe/engine/cpu/lying_floats.h"
#include "lathe/engine/cpu/split_table.h"
#include "lathe/engine/cpu/tile_registers.h"

namespace lathe::engine {

namespace split_window_amx {
extern const SplitWindowKernels split_window_table;
}
namespace split_window_tiles {
extern const SplitWindowKernels split_window_table;
}
namespace split_window_dots {
extern const SplitWindowKernels split_window_table;
}

namespace {

// Each number of x is split for so many taps.
constexpr std::int64_t kLeastTaps = 4;

// An image or filters that are too large for tiles; where results would be rounded, they are.
void multiply_as_floats(const Kernels& kernels, const ImageProduct& product,
                        const PackedFilters& filters, const SplitFilters& split_filters,
                        const ImageOperands& operands, AlignedBuffer& scratch) {
  multiply_image(kernels, product, filters, operands, scratch);
  if (split_filters.is_rounded()) round_floats(operands.y, product.y.size());
}

// Of one image.
SplitWindowArgs window_args(const ImageProduct& product, const SplitFrame& frame,
                            const SplitFilters& filters, const ImageOperands& operands,
                            AlignedBuffer& scratch, const SplitWindowKernels& split) {
  scratch.reserve(split.scratch_bytes(frame, product.y.channels));
  return {.frame = frame,
          .n = product.y.channels,
          .is_rounded = filters.is_rounded(),
          .x = {operands.x, false},
          .filters = filters.filters(),
          .bias = operands.bias,
          .y = {operands.y, false},
          .next = nullptr,
          .scratch = scratch.data()};
}

}  // namespace

const SplitWindowKernels* split_window_kernels(Isa isa, bool is_rounded) {
  if (isa != Isa::Avx512 || !has_bf16_conversion()) return nullptr;
  if (has_bf16_tiles()) return &split_window_amx::split_window_table;
  return is_rounded ? &split_window_dots::split_window_table : nullptr;
}

void round_convolutions(Graph& lowered, Isa isa) {
  if (split_window_kernels(isa, true) == nullptr) return;
  for (const char* const op :
       {"image_conv2d_statistics", "image_normed_conv2d_statistics",
        "image_normed_conv2d_gradients", "image_relu_normed_conv2d_gradients"})
    for (const NodeId id : lowered.nodes_of(op)) lowered.set_attribute(id, "rounded", true);
}

std::vector<const SplitWindowKernels*> every_split_window_kernels() {
  std::vector<const SplitWindowKernels*> result;
  if (!has_bf16_conversion()) return {};
  result.push_back(&split_window_tiles::split_window_table);
  result.push_back(&split_window_dots::split_window_table);
  if (has_bf16_tiles()) result.push_back(&split_window_amx::split_window_table);
  return result;
}

std::optional<SplitFrame> split_frame(const ImageProduct& product, bool is_rounded) {
  const ImageProduct::Axis &rows = product.axes[0], &columns = product.axes[1];
  for (const ImageProduct::Axis& axis : product.axes)
    if (axis.stride != 1 || axis.dilation != 1 || axis.out_first != 0 || axis.out_step != 1 ||
        axis.first > 0 || axis.first <= -axis.taps)
      return std::nullopt;
  if (product.groups != 1 || !product.x.is_last || !product.y.is_last ||
      product.x.channels % kWindowGrain != 0 || product.y.channels % kWindowGrain != 0 ||
      (!is_rounded && rows.taps * columns.taps < kLeastTaps))
    return std::nullopt;
  const std::int64_t right = columns.places - 1 + columns.first + columns.taps - product.x.width;
  return SplitFrame{.height = product.x.height,
                    .width = product.x.width,
                    .channels = product.x.channels,
                    .rows = rows.taps,
                    .columns = columns.taps,
                    .top = -rows.first,
                    .left = -columns.first,
                    .out_height = rows.places,
                    .out_width = columns.places,
                    .line = product.x.width + std::max(-columns.first, right)};
}

void SplitFilters::pack(const SplitWindowKernels& split, const ImageProduct& product,
                        std::int64_t panel, const PackedFilters& filters, bool is_rounded) {
  const std::int64_t taps = product.axes[0].taps * product.axes[1].taps;
  const std::int64_t channels = product.x.channels, n = product.y.channels;
  const float* const panels = filters.group(0);
  is_packed_ = std::all_of(panels, panels + (n + panel - 1) / panel * panel * taps * channels,
                           [](float a) { return std::abs(a) < kMostSplitWeight; });
  is_rounded_ = is_rounded;
  if (!is_packed_) return;
  buffer_.reserve(split.filters_size(taps, channels, n) *
                  static_cast<std::int64_t>(sizeof(std::uint16_t)));
  split.pack({.taps = taps,
              .channels = channels,
              .n = n,
              .columns = product.axes[1].taps,
              .is_rounded = is_rounded,
              .panel = panel,
              .panels = panels,
              .filters = reinterpret_cast<std::uint16_t*>(buffer_.data())});
}

void multiply_image_in_parts(const Kernels& kernels, const SplitWindowKernels& split,
                             const ImageProduct& product, const SplitFrame& frame,
                             const PackedFilters& filters, const SplitFilters& split_filters,
                             const ImageOperands& operands, const float* next,
                             AlignedBuffer& scratch) {
  SplitWindowArgs args = window_args(product, frame, split_filters, operands, scratch, split);
  args.next = next;
  if (split_filters.is_packed() && split.multiply(args)) return;
  multiply_as_floats(kernels, product, filters, split_filters, operands, scratch);
}

void multiply_images_in_parts(const Kernels& kernels, const SplitWindowKernels& split,
                              const ImageProduct& product, const SplitFrame& frame,
                              const PackedFilters& filters, const SplitFilters& split_filters,
                              const ImageOperands& operands, std::span<AlignedBuffer> scratch,
                              const ParallelTasks& parallel, const ImageCalls& calls) {
  if (product.x.count * frame.out_height * frame.out_width == 0) return;
  // Some images a task, so that a thread knows which comes next; any cut gives the same bits.
  const std::int64_t count = product.x.count, threads = std::ssize(scratch);
  const std::int64_t of_task = std::clamp<std::int64_t>(count / (4 * threads), 1, 8);
  const std::int64_t step = calls.make ? calls.made_from : product.x.size();
  const bool has_front = split_filters.is_rounded() && calls.front.center != nullptr;
  const bool takes_moments = split_filters.is_rounded() && calls.take_moments;
  parallel((count + of_task - 1) / of_task, [&](std::int64_t task, int thread) {
    AlignedBuffer& own = scratch[static_cast<std::size_t>(thread)];
    std::vector<double> moments(
        static_cast<std::size_t>(takes_moments ? 2 * product.y.channels : 0));
    const std::int64_t end = std::min(count, (task + 1) * of_task);
    for (std::int64_t image = task * of_task; image < end; ++image) {
      const Lying x = behind(Lying{operands.x, calls.x_is_narrow}, image * step);
      const Written y = behind(Written{operands.y, calls.y_is_narrow}, image * product.y.size());
      ImageOperands alone = operands;
      SplitWindowArgs args = window_args(product, frame, split_filters, alone, own, split);
      args.x = calls.make && !has_front ? Lying{calls.make(image, thread), false} : x;
      args.y = y;
      if (image + 1 < end) args.next = behind(x, step).at;
      if (has_front) {
        args.front = calls.front;
        if (args.front.residual.at != nullptr)
          args.front.residual = behind(args.front.residual, image * step);
        if (args.front.made != nullptr) args.front.made += image * step;
      }
      if (takes_moments) args.moments = moments.data();
      const bool is_done = split_filters.is_packed() && split.multiply(args);
      if (is_done && takes_moments) {
        calls.take_moments(image, moments.data());
        continue;
      }
      std::vector<float> widened, results;
      alone.y = static_cast<float*>(y.at);
      if (!is_done) {
        alone.x =
            has_front ? calls.make(image, thread) : as_floats(args.x, product.x.size(), widened);
        if (y.is_narrow) {
          results.resize(static_cast<std::size_t>(product.y.size()));
          alone.y = results.data();
        }
        multiply_as_floats(kernels, product, filters, split_filters, alone, own);
        if (y.is_narrow) put_floats(results.data(), product.y.size(), y);
      }
      if (calls.done) calls.done(image, alone.y);
    }
  });
}

}  // namespace lathe::engine
