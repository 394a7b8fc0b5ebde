#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lathe/engine/aligned_buffer.h"
#include "lathe/engine/cpu/kernels.h"
#include "lathe/engine/cpu/parallel_tasks.h"

namespace lathe::engine {

/// How a batch of images lies in memory.
struct Images {
  std::int64_t count, channels, height, width;
  bool is_last = false;  ///< [N,H,W,C], channels side by side; else [N,C,H,W]

  std::int64_t size() const { return channels * height * width; }
  bool operator==(const Images&) const = default;
};

/// A sum of products over windows: a convolution, or a part of the gradient of one.
///
/// Place i of an axis has its tap t at row (column) i * stride + first + t * dilation of x; what is
/// outside is 0. Its result is row (column) out_first + i * out_step of y.
struct ImageProduct {
  struct Axis {
    std::int64_t places, taps, stride, first, dilation;
    std::int64_t out_first = 0, out_step = 1;
  };
  Images x, y;
  std::int64_t groups = 1;
  Axis axes[2];  ///< rows, columns

  std::int64_t group_channels() const { return x.channels / groups; }
  std::int64_t group_filters() const { return y.channels / groups; }
  /// Numbers under a window.
  std::int64_t depth() const { return group_channels() * axes[0].taps * axes[1].taps; }
};

/// Where the numbers of a product's filters lie in a weight.
struct FilterPlaces {
  std::int64_t group, filter, channel;      ///< distances
  std::vector<std::int64_t> rows, columns;  ///< of each tap
};

/// The weights of an image product, packed for its kernel: filters of a group, taps by rows and
/// columns, then channels.
class PackedFilters {
 public:
  /// Filter by filter times a factor, where there are some.
  void pack(const Kernels& kernels, const ImageProduct& product, const float* weight,
            const FilterPlaces& places, std::span<const float> factors = {});
  const float* group(std::int64_t index) const { return buffer_.floats() + index * group_size_; }
  std::int64_t bytes() const { return buffer_.size(); }

 private:
  AlignedBuffer buffer_;
  std::int64_t group_size_ = 0;
};

struct ImageOperands {
  const float* x = nullptr;
  const float* bias = nullptr;      ///< or null
  const float* residual = nullptr;  ///< or null; lies as y does
  float* y = nullptr;
  Unary activation = Unary::None;
};

/// How a convolution was cut into tasks for the sizes it had last: to compare all cuts takes
/// microseconds, and a network has a convolution for each of a few tens of them.
class KnownCut {
 public:
  /// The blocks of two axes that `choose` gives, asked again when images or threads are others.
  template <typename Choose>
  std::array<std::int64_t, 2> cut(const Images& x, const Images& y, int threads,
                                  const Choose& choose) {
    if (threads != threads_ || x != x_ || y != y_) {
      cut_ = choose();
      x_ = x;
      y_ = y;
      threads_ = threads;
    }
    return cut_;
  }

 private:
  Images x_{}, y_{};
  int threads_ = 0;
  std::array<std::int64_t, 2> cut_{};
};

/// y = activation(windows of x . filters + bias + residual), where the results of the product lie;
/// other elements of y stay as they are. Any cut into tasks gives the same bits.
void multiply_images(const Kernels& kernels, const ImageProduct& product,
                     const PackedFilters& filters, const ImageOperands& operands,
                     std::span<AlignedBuffer> scratch, const ParallelTasks& parallel,
                     KnownCut& known);

/// The same of one image, whose operands are given, by the calling thread.
void multiply_image(const Kernels& kernels, const ImageProduct& product,
                    const PackedFilters& filters, const ImageOperands& operands,
                    AlignedBuffer& scratch);

/// Copies a line of images with channels side by side: `columns` pixels from `first` on, of a line
/// that may be outside, as any of its pixels; zeros there.
void copy_line(const Kernels& kernels, const Images& images, const float* image, std::int64_t line,
               std::int64_t first, std::int64_t columns, float* to);

}  // namespace lathe::engine
