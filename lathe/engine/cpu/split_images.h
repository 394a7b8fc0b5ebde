#pragma once

#include <optional>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/isa.h"
#include "lathe/engine/cpu/convolution.h"
#include "lathe/engine/cpu/split_window_table.h"

namespace lathe::engine {

/// The way to convolve floats in parts, or rounded numbers, that is faster than convolving floats
/// on this processor and with `isa`, or null where none is: AMX counts as AVX-512.
const SplitWindowKernels* split_window_kernels(Isa isa, bool is_rounded);

/// Marks the convolutions with statistics, and the gradients with norms, whose operands and results
/// will be rounded to bfloat16 in that precision: those that such a way multiplies.
void round_convolutions(Graph& lowered, Isa isa);

/// Every way that this processor has, and AMX's code without its instructions.
std::vector<const SplitWindowKernels*> every_split_window_kernels();

/// The windows of a product that can be computed so: one pixel apart, of images whose channels lie
/// side by side and, as filters do, come in sixteens. Fewer taps than four are not worth splitting
/// numbers, but rounding them.
std::optional<SplitFrame> split_frame(const ImageProduct& product, bool is_rounded);

/// The filters of such a product in parts.
class SplitFilters {
 public:
  /// Nothing where one of them is too large to be split.
  void pack(const SplitWindowKernels& split, const ImageProduct& product, std::int64_t panel,
            const PackedFilters& filters, bool is_rounded);
  bool is_packed() const { return is_packed_; }
  /// Whether they, and what is multiplied with them, are rounded to bfloat16 instead.
  bool is_rounded() const { return is_rounded_; }
  const std::uint16_t* filters() const {
    return reinterpret_cast<const std::uint16_t*>(buffer_.data());
  }
  std::int64_t bytes() const { return buffer_.size(); }

 private:
  AlignedBuffer buffer_;
  bool is_packed_ = false, is_rounded_ = false;
};

/// y = windows of x . filters + bias of one image, whose operands are given. An image with a number
/// that is too large to be split is multiplied as floats, and so is every image where one of the
/// filters is; what would be rounded is. `next` is the image that will be multiplied after this
/// one, or null.
void multiply_image_in_parts(const Kernels& kernels, const SplitWindowKernels& split,
                             const ImageProduct& product, const SplitFrame& frame,
                             const PackedFilters& filters, const SplitFilters& split_filters,
                             const ImageOperands& operands, const float* next,
                             AlignedBuffer& scratch);

/// What else is done to an image by the thread that multiplies it.
struct ImageCalls {
  /// Makes what is multiplied of image `image` of x, for thread `thread`, when its turn comes.
  std::function<const float*(std::int64_t image, int thread)> make;
  std::int64_t made_from = 0;  ///< numbers of an image of x, where one is made of it
  /// While its results are near, which are given.
  std::function<void(std::int64_t image, const float* y)> done;
  // Where numbers are rounded and can be, without the two above:
  bool x_is_narrow = false, y_is_narrow = false;  ///< as bfloat16 numbers
  WindowFront front = {};                         ///< what `make` does, of the first image
  /// Takes the moments of an image's results, as SplitWindowArgs has them.
  std::function<void(std::int64_t image, const double* moments)> take_moments = {};
};

/// The same of all images, one after another.
void multiply_images_in_parts(const Kernels& kernels, const SplitWindowKernels& split,
                              const ImageProduct& product, const SplitFrame& frame,
                              const PackedFilters& filters, const SplitFilters& split_filters,
                              const ImageOperands& operands, std::span<AlignedBuffer> scratch,
                              const ParallelTasks& parallel, const ImageCalls& calls = {});

}  // namespace lathe::engine
