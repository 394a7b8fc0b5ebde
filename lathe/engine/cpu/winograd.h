#pragma once

#include <span>
#include <string>

#include "lathe/engine/cpu/convolution.h"

namespace lathe::engine {

/// How a convolution of 3 x 3 windows is expected to be fastest: by Winograd's products on tiles of
/// 2 x 2 or 4 x 4 results, or window by window.
struct WinogradChoice {
  int tile = 0;             ///< 0 for windows
  std::string reason = {};  ///< how many times as fast as windows; empty where it does not suit
};

/// Chooses for an image_conv2d by the sizes of its layer alone: neither the number of images nor
/// that of threads may change the bits of a result. Weights count as read once for one image.
WinogradChoice choose_winograd(const Graph& graph, NodeId id);

/// Writes what is chosen for each image_conv2d of a lowered graph into its attribute `tile`.
void use_winograd(Graph& graph);

/// The filters of a convolution at the points of a tile, packed for `gemm`: for each panel of
/// filters, point after point.
class WinogradFilters {
 public:
  /// A weight [O,C,3,3], filter by filter times a factor, where there are some.
  void pack(const Kernels& kernels, int tile, std::int64_t filters, std::int64_t channels,
            const float* weight, std::span<const float> factors = {});
  int tile() const { return tile_; }
  const float* panel(std::int64_t index) const { return buffer_.floats() + index * panel_size_; }
  std::int64_t bytes() const { return buffer_.size(); }

 private:
  AlignedBuffer buffer_;
  std::int64_t panel_size_ = 0;
  int tile_ = 0;
};

/// y = activation(conv2d(x) + bias + residual) of images whose channels lie last, 3 x 3 windows of
/// stride 1. Any cut into tasks gives the same bits.
void multiply_winograd(const Kernels& kernels, const Convolution& convolution,
                       const WinogradFilters& filters, const ImageOperands& operands,
                       std::span<AlignedBuffer> scratch, const ParallelTasks& parallel,
                       KnownCut& known);

}  // namespace lathe::engine
