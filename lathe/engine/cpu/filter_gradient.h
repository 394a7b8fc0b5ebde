#pragma once

#include <functional>
#include <optional>
#include <span>

#include "lathe/engine/cpu/convolution.h"
#include "lathe/engine/cpu/split_window_table.h"

namespace lathe::engine {

/// The gradient of a convolution's weight: dy[pixels, filters] transposed times the lines of the
/// windows, image by image. Summed by parts of the batch whose number follows from its size, and
/// then in their order.
class FilterGradient {
 public:
  /// What is multiplied of an image.
  struct Image {
    const float* x;
    const float* dy;
  };

  /// Where `is_rounded`, images in parts are rounded to bfloat16 instead.
  FilterGradient(const Convolution& convolution, const Kernels& kernels, bool is_rounded);

  /// Writes the gradient [O,C/groups,kh,kw]. `images` is asked for each image when its turn comes,
  /// with the thread that will multiply it; what it gives lasts until it is asked again. Scratch is
  /// the thread's own meanwhile.
  void run(float* result, AlignedBuffer& sums, std::span<AlignedBuffer> scratch,
           const ParallelTasks& parallel,
           const std::function<Image(std::int64_t, int)>& images) const;

 private:
  std::int64_t num_parts() const;
  std::int64_t scratch_bytes() const;
  void add(const Image& image, float* scratch, float* total, bool accumulate) const;
  void put(const float* totals, std::int64_t parts, float* result,
           const ParallelTasks& parallel) const;

  const Convolution& c_;
  const Kernels& kernels_;
  bool is_rounded_;
  const SplitWindowKernels* split_;
  std::optional<SplitFrame> frame_;  // where it can be computed in parts
  std::int64_t columns_, lines_;     // of an image with its padding
};

}  // namespace lathe::engine
