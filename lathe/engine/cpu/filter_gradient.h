#pragma once

#include <functional>
#include <optional>
#include <span>

#include "lathe/engine/cpu/convolution.h"
#include "lathe/engine/cpu/lines_ahead.h"
#include "lathe/engine/cpu/split_window_table.h"

namespace lathe::engine {

/// The gradient of a convolution's weight: dy[pixels, filters] transposed times the lines of the
/// windows, image by image, or as floats by Winograd's tiles. Summed by parts of the batch whose
/// number follows from its size, and then in their order.
class FilterGradient {
 public:
  /// What is multiplied of some images that lie behind each other.
  struct Some {
    const float* x;
    const float* dy;
    WinogradFront front = {};  ///< of x, where it goes by tiles
    LinesAhead ahead = {};     ///< asked for meanwhile
  };
  /// Some of them, of which the first and the number are said, for the thread that will multiply
  /// them.
  using SomeImages = std::function<Some(std::int64_t, std::int64_t, int)>;
  /// Adds the gradients of the images from `first` on by itself, for rounded numbers: `args` lacks
  /// what is multiplied and scratch. How many it did; the rest are asked for.
  using AddImages =
      std::function<std::int64_t(SplitWindowGradientArgs args, std::int64_t first, int thread)>;

  /// Where `is_rounded`, images in parts are rounded to bfloat16 instead; others go by Winograd's
  /// tiles of that side, unless it is 0.
  FilterGradient(const Convolution& convolution, const Kernels& kernels, bool is_rounded, int tile);

  /// Writes the gradient [O,C/groups,kh,kw]. `images` is asked for images when their turn comes, at
  /// most images_at_once; what it gives lasts until it is asked again. Scratch is the thread's own
  /// meanwhile.
  void run(float* result, AlignedBuffer& sums, std::span<AlignedBuffer> scratch,
           const ParallelTasks& parallel, const SomeImages& images,
           const AddImages& add_images = {}) const;
  std::int64_t images_at_once() const;

 private:
  SplitWindowGradientArgs window_args(std::int64_t count, float* total, bool accumulate) const;
  std::int64_t num_parts() const;
  std::int64_t scratch_bytes() const;
  void add(const Some& images, std::int64_t count, float* scratch, float* total,
           bool accumulate) const;
  void add_floats(const float* x, const float* dy, float* scratch, float* total,
                  bool accumulate) const;
  void add_tiles(const Some& images, std::int64_t count, float* scratch, float* sums,
                 bool accumulate) const;
  void put_taps(const float* sums, float* total) const;
  void put(const float* totals, std::int64_t parts, float* result,
           const ParallelTasks& parallel) const;

  const Convolution& c_;
  const Kernels& kernels_;
  bool is_rounded_;
  const SplitWindowKernels* split_;
  std::optional<SplitFrame> frame_;  // where it is computed in parts
  int tile_;                         // where it is not
  std::int64_t columns_, lines_;     // of an image with its padding
};

}  // namespace lathe::engine
