#include "lathe/engine/cpu/image_product.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace lathe::engine {
namespace {

// The work is cut into blocks of rows of results, through all images, by blocks of filters.
struct ImageCut {
  std::int64_t rows;    // of a block
  std::int64_t panels;  // of filters
};

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Lines of x that so many rows of results read; one where there are no taps.
std::int64_t lines_of(const ImageProduct::Axis& axis, std::int64_t rows) {
  return (rows - 1) * axis.stride + (std::max<std::int64_t>(axis.taps, 1) - 1) * axis.dilation + 1;
}

bool is_inside(const ImageProduct::Axis& axis, std::int64_t size) {
  return axis.first >= 0 && axis.first + lines_of(axis, axis.places) <= size;
}

// Windows are read where x lies if its channels are side by side and no window is partly outside.
bool reads_in_place(const ImageProduct& product) {
  return product.x.is_last && is_inside(product.axes[0], product.x.height) &&
         is_inside(product.axes[1], product.x.width);
}

constexpr std::int64_t kMostWindowFloats = std::int64_t{1} << 18;

// Compares cuts by what the slowest thread does: multiply-adds, 32 a cycle, and moving what a block
// reads of x and of the filters into its caches, some floats a cycle. Only ratios matter.
ImageCut choose_cut(const Kernels& kernels, const ImageProduct& product, int threads) {
  const ProductGrain grain = kernels.gemm_grain();
  const ImageProduct::Axis &vertical = product.axes[0], &horizontal = product.axes[1];
  const std::int64_t rows = product.x.count * vertical.places;
  const std::int64_t panels = divide_up(product.group_filters(), grain.columns);
  const std::int64_t line = lines_of(horizontal, horizontal.places) * product.x.channels;
  const bool copies = !reads_in_place(product);
  ImageCut best{1, panels};
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t parts = 1; parts <= panels;
       parts = parts == panels ? panels + 1 : std::min(parts * 2, panels)) {
    const std::int64_t block_panels = divide_up(panels, parts);
    const std::int64_t columns = block_panels * grain.columns;
    for (std::int64_t block = 1; block <= rows; block += block < 8 ? 1 : block / 8) {
      const std::int64_t images = divide_up(block - 1, vertical.places) + 1;
      const std::int64_t lines = std::min(images * lines_of(vertical, vertical.places),
                                          lines_of(vertical, block) + images);
      if (block > 1 && lines * line > kMostWindowFloats) break;
      const std::int64_t tasks =
          divide_up(rows, block) * divide_up(panels, block_panels) * product.groups;
      const double multiplied = static_cast<double>(block * horizontal.places * columns) *
                                static_cast<double>(product.depth()) /
                                static_cast<double>(grain.columns);
      const double moved = static_cast<double>(product.depth() * columns) / 4 +
                           static_cast<double>(lines * line) / (copies ? 2 : 8);
      const double cost =
          static_cast<double>(divide_up(tasks, threads)) * (multiplied + moved + 500);
      // Of cuts that are as good, the first in rows: more tasks even out what else goes on.
      if (cost < least * 0.98) {
        least = cost;
        best = {block, block_panels};
      }
    }
  }
  return best;
}

// A product of single pixels has no rows: they are cut as fits the tiles.
ImageProduct without_rows(const ImageProduct& product, std::int64_t tile_rows) {
  const auto is_single = [](const ImageProduct::Axis& axis, std::int64_t size) {
    return axis.taps == 1 && axis.stride == 1 && axis.first == 0 && axis.places == size &&
           axis.out_step == 1 && axis.out_first == 0;
  };
  if (!product.x.is_last || !product.y.is_last || !is_single(product.axes[0], product.x.height) ||
      !is_single(product.axes[1], product.x.width))
    return product;
  const auto fill = [&](std::int64_t width) {
    return static_cast<double>(width) /
           static_cast<double>(divide_up(width, tile_rows) * tile_rows);
  };
  const std::int64_t pixels = product.x.count * product.x.height * product.x.width;
  std::int64_t width = product.x.width;
  for (std::int64_t divisor = 1; divisor <= std::min<std::int64_t>(pixels, 8 * tile_rows);
       ++divisor)
    if (pixels % divisor == 0 && fill(divisor) > fill(width)) width = divisor;
  ImageProduct flat = product;
  flat.x.count = flat.y.count = 1;
  flat.x.height = flat.y.height = flat.axes[0].places = pixels / width;
  flat.x.width = flat.y.width = flat.axes[1].places = width;
  return flat;
}

ImageCut known_cut(const Kernels& kernels, const ImageProduct& product, int threads,
                   KnownCut& known) {
  const auto [rows, panels] = known.cut(product.x, product.y, threads, [&] {
    const ImageCut cut = choose_cut(kernels, product, threads);
    return std::array{cut.rows, cut.panels};
  });
  return {rows, panels};
}

// One run of an image product: what its blocks share.
class ImageRun {
 public:
  ImageRun(const Kernels& kernels, const ImageProduct& product, const PackedFilters& filters,
           const ImageOperands& operands, int threads, KnownCut& known)
      : kernels_(kernels),
        product_(without_rows(product, kernels.gemm_grain().rows)),
        filters_(filters),
        operands_(operands),
        cut_(known_cut(kernels, product_, threads, known)),
        copies_(!reads_in_place(product_)),
        panel_(kernels.gemm_grain().columns),
        rows_(product_.x.count * product_.axes[0].places),
        row_blocks_(divide_up(rows_, cut_.rows)),
        filter_blocks_(divide_up(product_.group_filters(), cut_.panels * panel_)),
        line_(lines_of(product_.axes[1], product_.axes[1].places) * product_.x.channels) {}

  std::int64_t num_tasks() const { return row_blocks_ * filter_blocks_ * product_.groups; }

  std::int64_t scratch_bytes() const {
    return (x_floats() + (product_.y.is_last ? 0 : y_floats())) *
           static_cast<std::int64_t>(sizeof(float));
  }

  void run(std::int64_t task, float* scratch) const {
    const std::int64_t group = task % product_.groups;
    const std::int64_t filter_block = task / product_.groups % filter_blocks_;
    const std::int64_t row_block = task / product_.groups / filter_blocks_;
    const std::int64_t begin = row_block * rows_ / row_blocks_;
    const std::int64_t end = (row_block + 1) * rows_ / row_blocks_;
    std::vector<const float*> x;
    std::vector<std::int64_t> y;
    place_windows(begin, end, scratch, x);
    const std::int64_t filters = product_.group_filters();
    const std::int64_t first = filter_block * cut_.panels * panel_;
    const std::int64_t count = std::min(cut_.panels * panel_, filters - first);
    const std::int64_t pixels = product_.axes[1].places;
    for (std::int64_t& row : y = std::vector<std::int64_t>(x.size()))
      row = product_.y.is_last ? row_of_result(begin + (&row - y.data()))
                               : (&row - y.data()) * pixels * count;
    const bool is_split = product_.groups > 1 || product_.axes[1].dilation != 1;
    const std::int64_t channels = product_.group_channels();
    for (const float*& window : x) window += group * channels;
    const std::int64_t out = group * filters + first;
    const std::int64_t line_step = copies_ ? line_ : product_.x.width * product_.x.channels;
    float* const results = product_.y.is_last ? operands_.y + out : scratch + x_floats();
    kernels_.convolve(
        {.rows = end - begin,
         .pixels = pixels,
         .n = count,
         .x = x.data(),
         .x_step = product_.axes[1].stride * product_.x.channels,
         .lines = product_.axes[0].taps,
         .line_step = product_.axes[0].dilation * line_step,
         .pieces = is_split ? product_.axes[1].taps : 1,
         .piece_step = product_.axes[1].dilation * product_.x.channels,
         .length = is_split ? channels : channels * product_.axes[1].taps,
         .packed = filters_.group(group) + first * product_.depth(),
         .bias = operands_.bias ? operands_.bias + out : nullptr,
         .residual = operands_.residual ? operands_.residual + out : nullptr,
         .y = results,
         .y_rows = y.data(),
         .y_step = product_.y.is_last ? product_.axes[1].out_step * product_.y.channels : count,
         .activation = static_cast<int>(operands_.activation)});
    if (!product_.y.is_last)
      for (std::int64_t row = begin; row < end; ++row)
        put_planes(results + (row - begin) * pixels * count, row, out, count);
  }

 private:
  std::int64_t x_floats() const {
    if (!copies_) return 0;
    const ImageProduct::Axis& axis = product_.axes[0];
    const std::int64_t images = divide_up(cut_.rows - 1, axis.places) + 1;
    // A block of so many rows begins anew in each image it touches.
    return (cut_.rows * axis.stride + images * axis.taps * axis.dilation + images) * line_;
  }
  std::int64_t y_floats() const {
    return cut_.rows * product_.axes[1].places * cut_.panels * panel_;
  }

  // Where the window of the first pixel of each row begins.
  void place_windows(std::int64_t begin, std::int64_t end, float* scratch,
                     std::vector<const float*>& x) const {
    const ImageProduct::Axis &vertical = product_.axes[0], &horizontal = product_.axes[1];
    x.reserve(static_cast<std::size_t>(end - begin));
    for (std::int64_t row = begin; row < end;) {
      const std::int64_t image = row / vertical.places, place = row % vertical.places;
      const std::int64_t rows = std::min(end - row, vertical.places - place);
      const float* const from = operands_.x + image * product_.x.size();
      const std::int64_t top = place * vertical.stride + vertical.first;
      if (copies_) {
        const std::int64_t lines = lines_of(vertical, rows);
        for (std::int64_t line = 0; line < lines; ++line)
          copy_line(kernels_, product_.x, from, top + line, horizontal.first,
                    line_ / product_.x.channels, scratch + line * line_);
        for (std::int64_t i = 0; i < rows; ++i) x.push_back(scratch + i * vertical.stride * line_);
        scratch += lines * line_;
      } else {
        for (std::int64_t i = 0; i < rows; ++i)
          x.push_back(from + ((top + i * vertical.stride) * product_.x.width + horizontal.first) *
                                 product_.x.channels);
      }
      row += rows;
    }
  }

  // The line of y that a row of results belongs to: image and line.
  std::pair<std::int64_t, std::int64_t> line_of_result(std::int64_t row) const {
    const ImageProduct::Axis& axis = product_.axes[0];
    return {row / axis.places, axis.out_first + row % axis.places * axis.out_step};
  }
  std::int64_t row_of_result(std::int64_t row) const {
    const auto [image, line] = line_of_result(row);
    return ((image * product_.y.height + line) * product_.y.width + product_.axes[1].out_first) *
           product_.y.channels;
  }

  // Writes a row of results, filters side by side, into the planes of y.
  void put_planes(const float* results, std::int64_t row, std::int64_t first,
                  std::int64_t count) const {
    const ImageProduct::Axis& axis = product_.axes[1];
    const auto [image, line] = line_of_result(row);
    const std::int64_t plane = product_.y.height * product_.y.width;
    float* const y = operands_.y + (image * product_.y.channels + first) * plane +
                     line * product_.y.width + axis.out_first;
    if (axis.out_step == 1) {
      kernels_.transpose_matrix({.rows = axis.places,
                                 .columns = count,
                                 .x = results,
                                 .x_stride = count,
                                 .y = y,
                                 .y_stride = plane});
      return;
    }
    for (std::int64_t f = 0; f < count; ++f)
      for (std::int64_t i = 0; i < axis.places; ++i)
        y[f * plane + i * axis.out_step] = results[i * count + f];
  }

  const Kernels& kernels_;
  ImageProduct product_;
  const PackedFilters& filters_;
  const ImageOperands& operands_;
  ImageCut cut_;
  bool copies_;
  std::int64_t panel_, rows_, row_blocks_, filter_blocks_;
  std::int64_t line_;  // floats of a line that is copied
};

}  // namespace

void copy_line(const Kernels& kernels, const Images& images, const float* image, std::int64_t line,
               std::int64_t first, std::int64_t columns, float* to) {
  const std::int64_t channels = images.channels;
  const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, columns);
  const std::int64_t end = std::clamp(images.width - first, begin, columns);
  if (line < 0 || line >= images.height || begin == end) {
    std::fill_n(to, columns * channels, 0.0f);
    return;
  }
  std::fill_n(to, begin * channels, 0.0f);
  if (images.is_last)
    std::memcpy(to + begin * channels, image + (line * images.width + first + begin) * channels,
                static_cast<std::size_t>((end - begin) * channels) * sizeof(float));
  else
    kernels.transpose_matrix({.rows = channels,
                              .columns = end - begin,
                              .x = image + line * images.width + first + begin,
                              .x_stride = images.height * images.width,
                              .y = to + begin * channels,
                              .y_stride = channels});
  std::fill_n(to + end * channels, (columns - end) * channels, 0.0f);
}

void PackedFilters::pack(const Kernels& kernels, const ImageProduct& product, const float* weight,
                         const FilterPlaces& places, std::span<const float> factors) {
  const std::int64_t channels = product.group_channels(), filters = product.group_filters();
  const std::int64_t depth = product.depth(), panel = kernels.gemm_grain().columns;
  group_size_ = kernels.packed_size(filters, depth);
  buffer_.reserve(std::max<std::int64_t>(1, product.groups * group_size_) *
                  static_cast<std::int64_t>(sizeof(float)));
  // First the filters side by side for each channel and tap of the weight, which lie next to each
  // other in one of its two layouts; then a row of a panel is a copy.
  const std::int64_t taps = std::min(places.filter, places.channel);
  const std::int64_t across = divide_up(filters, panel) * panel;
  std::vector<float> turned(static_cast<std::size_t>(channels * taps * across));
  for (std::int64_t g = 0; g < product.groups; ++g) {
    const bool is_one_run = places.channel == taps;
    for (std::int64_t c = 0; c < (is_one_run ? 1 : channels); ++c)
      kernels.transpose_matrix({.rows = filters,
                                .columns = is_one_run ? channels * taps : taps,
                                .x = weight + g * places.group + c * places.channel,
                                .x_stride = places.filter,
                                .y = turned.data() + c * taps * across,
                                .y_stride = across});
    float* to = buffer_.floats() + g * group_size_;
    for (std::int64_t first = 0; first < filters; first += panel)
      for (const std::int64_t row : places.rows)
        for (const std::int64_t column : places.columns)
          for (std::int64_t c = 0; c < channels; ++c, to += panel) {
            std::memcpy(to, turned.data() + (c * taps + row + column) * across + first,
                        static_cast<std::size_t>(panel) * sizeof(float));
            if (factors.empty()) continue;
            for (std::int64_t f = 0; f < std::min(panel, filters - first); ++f)
              to[f] *= factors[static_cast<std::size_t>(g * filters + first + f)];
          }
  }
}

void multiply_image(const Kernels& kernels, const ImageProduct& product,
                    const PackedFilters& filters, const ImageOperands& operands,
                    AlignedBuffer& scratch) {
  ImageProduct one = product;
  one.x.count = one.y.count = 1;
  KnownCut cut;
  multiply_images(
      kernels, one, filters, operands, {&scratch, 1},
      [](std::int64_t tasks, const std::function<void(std::int64_t, int)>& task) {
        for (std::int64_t t = 0; t < tasks; ++t) task(t, 0);
      },
      cut);
}

void multiply_images(const Kernels& kernels, const ImageProduct& product,
                     const PackedFilters& filters, const ImageOperands& operands,
                     std::span<AlignedBuffer> scratch, const ParallelTasks& parallel,
                     KnownCut& known) {
  if (product.x.count * product.axes[0].places * product.axes[1].places == 0) return;
  const ImageRun run(kernels, product, filters, operands, static_cast<int>(scratch.size()), known);
  for (AlignedBuffer& buffer : scratch)
    buffer.reserve(std::max<std::int64_t>(64, run.scratch_bytes()));
  parallel(run.num_tasks(), [&](std::int64_t task, int thread) {
    run.run(task, scratch[static_cast<std::size_t>(thread)].floats());
  });
}

}  // namespace lathe::engine
