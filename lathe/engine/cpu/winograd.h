#pragma once

#include <span>
#include <string>

#include "lathe/engine/cpu/convolution.h"
#include "lathe/engine/cpu/lines_ahead.h"

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

/// Writes what is chosen for each image_conv2d of a lowered graph into its attribute `tile`; where
/// states are updated, for the convolutions with statistics and the gradients.
void use_winograd(Graph& graph);

/// The filters of a convolution at the points of a tile, packed for `gemm`: for each panel of
/// filters, point after point.
class WinogradFilters {
 public:
  /// A weight [O,C,3,3], filter by filter times a factor, where there are some. By the calling
  /// thread alone, unless it says how tasks are run.
  void pack(const Kernels& kernels, int tile, std::int64_t filters, std::int64_t channels,
            const float* weight, std::span<const float> factors = {},
            const ParallelTasks& parallel = {});
  /// The filters of the way back through a convolution of that weight, whose windows are turned
  /// around: as many as it has channels.
  void pack_backward(const Kernels& kernels, int tile, std::int64_t filters, std::int64_t channels,
                     const float* weight, const ParallelTasks& parallel = {});
  int tile() const { return tile_; }
  const float* panel(std::int64_t index) const { return buffer_.floats() + index * panel_size_; }
  std::int64_t bytes() const { return buffer_.size(); }

 private:
  struct Source;
  void pack(const Kernels& kernels, int tile, const Source& source, const ParallelTasks& parallel);

  AlignedBuffer buffer_;
  std::int64_t panel_size_ = 0;
  int tile_ = 0;
};

/// Whether tiles can be: 3 x 3 windows one pixel apart, of images whose channels lie last and fill
/// a vector.
bool suits_winograd(const Convolution& convolution);

/// The tiles of a convolution's results, counted through image by image.
class WinogradGrid {
 public:
  WinogradGrid(const Convolution& convolution, int tile);
  std::int64_t tiles_of_image() const { return rows_ * columns_; }

  /// Neighbouring tiles of a row: their number, where the first one's first result lies, and how
  /// many lines and pixels of results they have inside the image.
  struct Run {
    std::int64_t tiles;
    std::int64_t image, line, pixel;
    std::int64_t lines, pixels;
  };
  /// Of `count` tiles from `first` on, calls run(tiles before it, Run) for every row.
  template <typename F>
  void over_rows(std::int64_t first, std::int64_t count, F&& run) const {
    for (std::int64_t done = 0; done < count;) {
      const Run next = run_at(first + done, count - done);
      run(done, next);
      done += next.tiles;
    }
  }
  /// The pixels of all images' x under `count` tiles from `first` on, at their points:
  /// points[tile * tile_step + p * step + channel].
  void transform_input(const Kernels& kernels, const float* x, const WinogradFront& front,
                       std::int64_t first, std::int64_t count, float* points,
                       std::int64_t tile_step, std::int64_t step) const;

 private:
  Run run_at(std::int64_t tile, std::int64_t most) const;

  const Convolution& c_;
  int tile_;
  std::int64_t rows_, columns_;
};

/// y = activation(conv2d(x) + bias + residual) of images whose channels lie last, 3 x 3 windows of
/// stride 1. Any cut into tasks gives the same bits.
void multiply_winograd(const Kernels& kernels, const Convolution& convolution,
                       const WinogradFilters& filters, const ImageOperands& operands,
                       std::span<AlignedBuffer> scratch, const ParallelTasks& parallel,
                       KnownCut& known);

/// How many images one thread multiplies at a time, so that filters are read for enough tiles.
std::int64_t winograd_images_at_once(const Convolution& convolution, int tile);
/// The same as multiply_winograd of `count` images that are the first ones, by the calling thread,
/// of what `front` makes of them; `ahead` is asked for meanwhile.
void multiply_winograd_images(const Kernels& kernels, const Convolution& convolution,
                              const WinogradFilters& filters, const ImageOperands& operands,
                              std::int64_t count, AlignedBuffer& scratch,
                              const WinogradFront& front = {}, const LinesAhead& ahead = {});

}  // namespace lathe::engine
