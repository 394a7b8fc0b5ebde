#include "lathe/engine/cpu/winograd.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace lathe::engine {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// What the cost models count in: cycles of a core with AVX-512, whose tile of 14 rows by 32 columns
// takes a cycle for each of its rows and each of its depth. Only ratios matter.
constexpr std::int64_t kVector = 16, kPanel = 32;
constexpr std::int64_t kTaps = 9;
// Bytes of weights that a core gets a cycle from the third-level cache, while all cores read and
// while few do.
constexpr double kReadBytes = 5, kReadBytesOfFew = 10;
constexpr int kFewCores = 4;
// Weights are fetched ahead while those before them are multiplied: of the shorter of the two, what
// the longer does not hide.
constexpr double kNotHidden = 0.25;
// A tile of fewer rows has too few sums to hide an addition's latency.
constexpr std::int64_t kLeastRows = 6;
constexpr double kTaskCycles = 2000;

struct TransformCycles {
  double input, output;  // of a tile, for a vector of channels or filters
};
TransformCycles transform_cycles(int tile) {
  return tile == 4 ? TransformCycles{280, 270} : TransformCycles{90, 70};
}

double product_cycles(double multiplied, std::int64_t weights, double read_bytes = kReadBytes) {
  const double read = static_cast<double>(weights) * sizeof(float) / read_bytes;
  return std::max(multiplied, read) + kNotHidden * std::min(multiplied, read);
}

// One image, by all cores together.
double window_cycles(const Convolution& c) {
  const auto panels = static_cast<double>(divide_up(c.y.channels, kPanel));
  const auto depth = static_cast<double>(c.x.channels * c.taps());
  return product_cycles(static_cast<double>(c.y.height * c.y.width) * depth * panels,
                        c.num_weights());
}

double tile_cycles(const Convolution& c, int tile) {
  const std::int64_t tiles = divide_up(c.y.height, tile) * divide_up(c.y.width, tile);
  const std::int64_t points = winograd_points(tile);
  const auto [input, output] = transform_cycles(tile);
  const std::int64_t multiplied =
      std::max(tiles, kLeastRows) * points * c.x.channels * divide_up(c.y.channels, kPanel);
  return product_cycles(static_cast<double>(multiplied), points * c.x.channels * c.y.channels) +
         static_cast<double>(tiles) *
             (input * static_cast<double>(divide_up(c.x.channels, kVector)) +
              output * static_cast<double>(divide_up(c.y.channels, kVector)));
}

// Tiles of all images by panels of filters.
struct TileCut {
  std::int64_t blocks, panels;
};

// What the points of a block of tiles may take of the second-level cache, beside a panel's results
// and the filters that pass by. Where all filters stay there from block to block, they need room.
std::int64_t most_point_floats(std::int64_t filter_floats) {
  constexpr std::int64_t kFiltersThatStay = std::int64_t{1} << 18;
  return filter_floats <= kFiltersThatStay ? std::int64_t{5} << 14 : std::int64_t{5} << 16;
}

TileCut choose_cut(const Convolution& c, int tile, std::int64_t tiles, const ProductGrain& grain,
                   int threads) {
  const std::int64_t points = winograd_points(tile), all_panels = divide_up(c.y.channels, kPanel);
  const auto [input, output] = transform_cycles(tile);
  const std::int64_t most = std::max(
      grain.rows, most_point_floats(points * c.x.channels * c.y.channels) /
                      (points * std::max<std::int64_t>(1, c.x.channels)) / grain.rows * grain.rows);
  const std::int64_t fewest = divide_up(tiles, most);
  TileCut best{fewest, all_panels};
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t parts = 1; parts <= all_panels;
       parts = parts == all_panels ? all_panels + 1 : std::min(parts * 2, all_panels)) {
    const std::int64_t panels = divide_up(all_panels, parts);
    for (std::int64_t blocks = fewest; blocks <= std::min(tiles, fewest + 2 * threads); ++blocks) {
      const std::int64_t rows = divide_up(tiles, blocks), count = divide_up(rows, grain.rows);
      const std::int64_t multiplied =
          std::max(rows, count * kLeastRows) * points * c.x.channels * panels;
      const double task =
          product_cycles(static_cast<double>(multiplied), points * c.x.channels * panels * kPanel,
                         threads <= kFewCores ? kReadBytesOfFew : kReadBytes) +
          static_cast<double>(rows) *
              (input * static_cast<double>(divide_up(c.x.channels, kVector)) +
               output * static_cast<double>(panels * kPanel / kVector)) +
          kTaskCycles;
      const double cost =
          static_cast<double>(divide_up(blocks * divide_up(all_panels, panels), threads)) * task;
      if (cost >= least * 0.98) continue;
      least = cost;
      best = {blocks, panels};
    }
  }
  return best;
}

// The tiles of some images, which are counted through: what is done to a range of them.
class WinogradTiles {
 public:
  WinogradTiles(const Kernels& kernels, const Convolution& convolution,
                const WinogradFilters& filters, const ImageOperands& operands,
                const WinogradFront& front = {})
      : kernels_(kernels),
        c_(convolution),
        filters_(filters),
        operands_(operands),
        front_(front),
        tile_(filters.tile()),
        points_(winograd_points(tile_)),
        grid_(c_, tile_),
        panel_(kernels.gemm_grain().columns),
        panels_(divide_up(c_.y.channels, panel_)),
        width_(std::min(panel_, divide_up(c_.y.channels, kVector) * kVector)),
        // A line more than the points take keeps tiles apart in the sets of a cache.
        point_stride_(points_ * c_.x.channels + 16),
        sum_stride_(points_ * width_ + 16) {}

  std::int64_t panels() const { return panels_; }
  std::int64_t scratch_bytes(std::int64_t tiles) const {
    return tiles * (point_stride_ + sum_stride_) * static_cast<std::int64_t>(sizeof(float));
  }

  // `count` tiles by the panels of filters from `first` to `last`.
  void run(std::int64_t begin, std::int64_t count, std::int64_t first, std::int64_t last,
           float* scratch, const LinesAhead& ahead = {}) const {
    float* const sums = scratch + count * point_stride_;
    grid_.transform_input(kernels_, operands_.x, front_, begin, count, scratch, point_stride_,
                          c_.x.channels);
    for (std::int64_t panel = first; panel < last; ++panel) {
      for (std::int64_t point = 0; point < points_; ++point) {
        multiply_point(count, panel, point, scratch, sums, panel > first || point > 0,
                       panel + 1 < last || point + 1 < points_);
        ahead.ask((panel - first) * points_ + point, (last - first) * points_);
      }
      grid_.over_rows(begin, count, [&](std::int64_t done, const WinogradGrid::Run& tiles) {
        transform_output(tiles, panel * panel_, sums + done * sum_stride_);
      });
    }
  }

 private:
  // The tiles' pixels at a point are the windows of a row of results, whose filters come point
  // after point and panel after panel.
  void multiply_point(std::int64_t tiles, std::int64_t panel, std::int64_t point,
                      const float* points, float* sums, bool is_near, bool goes_on) const {
    const float* const x = points + point * c_.x.channels;
    const std::int64_t first = 0;
    kernels_.convolve({.rows = 1,
                       .pixels = tiles,
                       .n = std::min(panel_, c_.y.channels - panel * panel_),
                       .x = &x,
                       .x_step = point_stride_,
                       .lines = 1,
                       .line_step = 0,
                       .pieces = 1,
                       .piece_step = 0,
                       .length = c_.x.channels,
                       .packed = filters_.panel(panel) + point * c_.x.channels * panel_,
                       .bias = nullptr,
                       .residual = nullptr,
                       .y = sums + point * width_,
                       .y_rows = &first,
                       .y_step = sum_stride_,
                       .activation = static_cast<int>(Unary::None),
                       .is_near = is_near,
                       .goes_on = goes_on});
  }

  void transform_output(const WinogradGrid::Run& tiles, std::int64_t filter,
                        const float* sums) const {
    const std::int64_t at =
        ((tiles.image * c_.y.height + tiles.line) * c_.y.width + tiles.pixel) * c_.y.channels +
        filter;
    kernels_.winograd_output({.tile = tile_,
                              .tiles = tiles.tiles,
                              .n = std::min(panel_, c_.y.channels - filter),
                              .points = sums,
                              .tile_step = sum_stride_,
                              .step = width_,
                              .bias = operands_.bias ? operands_.bias + filter : nullptr,
                              .residual = operands_.residual ? operands_.residual + at : nullptr,
                              .y = operands_.y + at,
                              .line = c_.y.width * c_.y.channels,
                              .pixel = c_.y.channels,
                              .lines = tiles.lines,
                              .pixels = tiles.pixels,
                              .activation = static_cast<int>(operands_.activation)});
  }

  const Kernels& kernels_;
  const Convolution& c_;
  const WinogradFilters& filters_;
  const ImageOperands& operands_;
  WinogradFront front_;
  int tile_;
  std::int64_t points_;
  WinogradGrid grid_;
  std::int64_t panel_, panels_;
  std::int64_t width_;  // of a panel's sums
  std::int64_t point_stride_, sum_stride_;
};

// For how many tiles at least the filters are read from the second-level cache.
constexpr std::int64_t kTilesAtOnce = 32;

// Sizes, of one image for any number of them; empty where others are not known.
std::vector<std::int64_t> dims_of_one(const Type& type) {
  std::vector<std::int64_t> dims;
  for (std::size_t axis = 0; axis < type.shape.size(); ++axis) {
    if (!type.shape[axis].is_constant() && axis > 0) return {};
    dims.push_back(type.shape[axis].is_constant() ? type.shape[axis].constant() : 1);
  }
  return dims;
}

// The sizes of an image_conv2d whose weight is a state, of one image for any number of them.
std::optional<Convolution> convolution_at(const Graph& graph, NodeId id) {
  const Value weight = graph.input(id, 1);
  if (!graph.is(weight.node, "state")) return std::nullopt;
  std::vector<std::int64_t> x = dims_of_one(graph.type(graph.input(id, 0)));
  std::vector<std::int64_t> y = dims_of_one(graph.types(id)[0]);
  if (x.empty() || y.empty()) return std::nullopt;
  x[0] = y[0] = 1;
  const AttributeReader attributes = graph.attribute(id);
  return convolution_of(attributes, images_of(x, attributes.flag("x_last")),
                        images_of(y, attributes.flag("y_last")), dims_of_one(graph.type(weight)));
}

// A convolution that is trained, and its gradients: with all images of a batch weights are read for
// many tiles, and those of 4 are the fastest.
constexpr int kTrainedTile = 4;

struct TrainedImages {
  Value x, y;
  Type weight;
  bool x_is_last, y_is_last;
};
bool suits_training(const Graph& graph, NodeId id, const TrainedImages& images) {
  const std::vector<std::int64_t> x = dims_of_one(graph.type(images.x));
  const std::vector<std::int64_t> y = dims_of_one(graph.type(images.y));
  const std::vector<std::int64_t> weight = dims_of_one(images.weight);
  return !x.empty() && !y.empty() && !weight.empty() &&
         suits_winograd(convolution_of(graph.attribute(id), images_of(x, images.x_is_last),
                                       images_of(y, images.y_is_last), weight));
}

void use_tiles_in_training(Graph& graph) {
  const auto use = [&](const char* op, auto images) {
    for (const NodeId id : graph.nodes_of(op))
      if (suits_training(graph, id, images(id)))
        graph.set_attribute(id, "tile", std::int64_t{kTrainedTile});
  };
  const auto of_statistics = [&](NodeId id) -> TrainedImages {
    return {graph.input(id, 0),
            {id, 0},
            graph.type(graph.input(id, 1)),
            graph.attribute(id).flag("x_last"),
            true};
  };
  use("image_conv2d_statistics", of_statistics);
  use("image_normed_conv2d_statistics", of_statistics);
  const auto of_norm = [&](NodeId id) -> TrainedImages {
    return {graph.input(id, 1), graph.input(id, 0), graph.type(graph.input(id, 2)), true, true};
  };
  use("image_normed_conv2d_gradients", of_norm);
  use("image_relu_normed_conv2d_gradients", of_norm);
  use("image_conv2d_weight_gradient", [&](NodeId id) -> TrainedImages {
    return {graph.input(id, 1), graph.input(id, 0), graph.types(id)[0],
            graph.attribute(id).flag("x_last"), graph.attribute(id).flag("dy_last")};
  });
}

}  // namespace

bool suits_winograd(const Convolution& c) {
  const ops::Window& window = c.window;
  const auto is_plain = [&](int axis) {
    return window.kernel[axis] == 3 && window.strides[axis] == 1 && window.dilations[axis] == 1;
  };
  // Few channels leave lanes of the transforms empty, and their time is not the products'.
  constexpr std::int64_t kFewest = 16;
  return c.groups == 1 && is_plain(0) && is_plain(1) && c.x.is_last && c.y.is_last &&
         c.x.channels >= kFewest && c.y.channels >= kFewest;
}

WinogradGrid::WinogradGrid(const Convolution& convolution, int tile)
    : c_(convolution),
      tile_(tile),
      rows_(divide_up(c_.y.height, tile)),
      columns_(divide_up(c_.y.width, tile)) {}

WinogradGrid::Run WinogradGrid::run_at(std::int64_t tile, std::int64_t most) const {
  const std::int64_t column = tile % columns_, tiles = std::min(most, columns_ - column);
  const std::int64_t line = tile / columns_ % rows_ * tile_, pixel = column * tile_;
  return {.tiles = tiles,
          .image = tile / (rows_ * columns_),
          .line = line,
          .pixel = pixel,
          .lines = std::min<std::int64_t>(tile_, c_.y.height - line),
          .pixels = std::min(tiles * tile_, c_.y.width - pixel)};
}

void WinogradGrid::transform_input(const Kernels& kernels, const float* x,
                                   const WinogradFront& front, std::int64_t first,
                                   std::int64_t count, float* points, std::int64_t tile_step,
                                   std::int64_t step) const {
  const std::int64_t channels = c_.x.channels;
  over_rows(first, count, [&](std::int64_t done, const Run& run) {
    const std::int64_t top = run.line - c_.window.pads[0], left = run.pixel - c_.window.pads[1];
    const auto end = [](std::int64_t from, std::int64_t length, std::int64_t size) {
      return std::clamp<std::int64_t>(length - from, 0, size);
    };
    // Where a tile begins outside, nothing is read before its first pixel inside.
    const std::int64_t from = (run.image * c_.x.height + top) * c_.x.width + left;
    kernels.winograd_input({.tile = tile_,
                            .tiles = run.tiles,
                            .channels = channels,
                            .x = x + from * channels,
                            .front = front,
                            .line = c_.x.width * channels,
                            .pixel = channels,
                            .top = std::max<std::int64_t>(0, -top),
                            .bottom = end(top, c_.x.height, tile_ + 2),
                            .left = std::max<std::int64_t>(0, -left),
                            .right = end(left, c_.x.width, run.tiles * tile_ + 2),
                            .points = points + done * tile_step,
                            .tile_step = tile_step,
                            .step = step});
  });
}

WinogradChoice choose_winograd(const Graph& graph, NodeId id) {
  const std::optional<Convolution> convolution = convolution_at(graph, id);
  if (!convolution || !suits_winograd(*convolution)) return {};
  const double windows = window_cycles(*convolution);
  const double small = windows / tile_cycles(*convolution, 2);
  const double large = windows / tile_cycles(*convolution, 4);
  const int tile = small > large ? 2 : 4;
  const double speed = std::max(small, large);
  constexpr double kLeastSpeed = 1.05;  // what is hardly faster is not worth its rounding
  if (speed < kLeastSpeed)
    return {0, fmt::format("tiles of {0}x{0} {1:.1f}x expected", tile, speed)};
  return {tile, fmt::format("{:.1f}x expected", speed)};
}

void use_winograd(Graph& graph) {
  if (!graph.state_updates().empty()) return use_tiles_in_training(graph);
  for (const NodeId id : graph.nodes_of("image_conv2d"))
    if (const WinogradChoice choice = choose_winograd(graph, id); choice.tile != 0)
      graph.set_attribute(id, "tile", std::int64_t{choice.tile});
}

// Taps of a weight, which are floats `filter` and `channel` apart from those of the next one.
struct WinogradFilters::Source {
  const float* weight;
  std::int64_t filters, channels;
  std::int64_t filter, channel;
  bool is_turned = false;  // the last tap is the first
  std::span<const float> factors = {};
};

void WinogradFilters::pack(const Kernels& kernels, int tile, std::int64_t filters,
                           std::int64_t channels, const float* weight,
                           std::span<const float> factors, const ParallelTasks& parallel) {
  pack(kernels, tile,
       Source{.weight = weight,
              .filters = filters,
              .channels = channels,
              .filter = channels * kTaps,
              .channel = kTaps,
              .factors = factors},
       parallel);
}

void WinogradFilters::pack_backward(const Kernels& kernels, int tile, std::int64_t filters,
                                    std::int64_t channels, const float* weight,
                                    const ParallelTasks& parallel) {
  pack(kernels, tile,
       Source{.weight = weight,
              .filters = channels,
              .channels = filters,
              .filter = kTaps,
              .channel = channels * kTaps,
              .is_turned = true},
       parallel);
}

void WinogradFilters::pack(const Kernels& kernels, int tile, const Source& source,
                           const ParallelTasks& parallel) {
  constexpr std::int64_t kChannels = 16;  // of a task
  const std::int64_t panel = kernels.gemm_grain().columns, points = winograd_points(tile);
  const std::int64_t channels = source.channels;
  const std::int64_t panels = divide_up(source.filters, panel);
  const std::int64_t blocks = divide_up(channels, kChannels);
  tile_ = tile;
  panel_size_ = points * channels * panel;
  buffer_.reserve(panels * panel_size_ * static_cast<std::int64_t>(sizeof(float)));
  const auto pack_block = [&](std::int64_t task, int) {
    const std::int64_t p = task / blocks, c = task % blocks * kChannels;
    const std::int64_t some = std::min(kChannels, channels - c);
    const std::int64_t first = p * panel, count = std::min(panel, source.filters - first);
    std::vector<float> turned(static_cast<std::size_t>(some * kTaps * panel), 0.0f);
    // The taps of channels that lie behind each other are turned around together.
    const bool is_run = source.channel == kTaps;
    for (std::int64_t i = 0; i < (is_run ? 1 : some); ++i)
      kernels.transpose_matrix(
          {.rows = count,
           .columns = is_run ? some * kTaps : kTaps,
           .x = source.weight + first * source.filter + (c + i) * source.channel,
           .x_stride = source.filter,
           .y = turned.data() + i * kTaps * panel,
           .y_stride = panel});
    if (!source.factors.empty())
      for (std::int64_t row = 0; row < some * kTaps; ++row)
        for (std::int64_t f = 0; f < count; ++f)
          turned[static_cast<std::size_t>(row * panel + f)] *=
              source.factors[static_cast<std::size_t>(first + f)];
    for (std::int64_t i = 0; i < some; ++i) {
      const float* const taps = turned.data() + i * kTaps * panel;
      kernels.winograd_filter({.tile = tile,
                               .n = panel,
                               .taps = source.is_turned ? taps + (kTaps - 1) * panel : taps,
                               .tap_step = source.is_turned ? -panel : panel,
                               .points = buffer_.floats() + p * panel_size_ + (c + i) * panel,
                               .step = channels * panel});
    }
  };
  if (parallel) return parallel(panels * blocks, pack_block);
  for (std::int64_t task = 0; task < panels * blocks; ++task) pack_block(task, 0);
}

void multiply_winograd(const Kernels& kernels, const Convolution& convolution,
                       const WinogradFilters& filters, const ImageOperands& operands,
                       std::span<AlignedBuffer> scratch, const ParallelTasks& parallel,
                       KnownCut& known) {
  if (convolution.y.count * convolution.y.size() == 0) return;
  const WinogradTiles run(kernels, convolution, filters, operands);
  const std::int64_t tiles =
      convolution.x.count * WinogradGrid(convolution, filters.tile()).tiles_of_image();
  const int threads = static_cast<int>(scratch.size());
  const auto [blocks, wide_panels] = known.cut(convolution.x, convolution.y, threads, [&] {
    const TileCut cut =
        choose_cut(convolution, filters.tile(), tiles, kernels.gemm_grain(), threads);
    return std::array{cut.blocks, cut.panels};
  });
  const std::int64_t of_task =
      std::max<std::int64_t>(1, wide_panels * kPanel / kernels.gemm_grain().columns);
  const std::int64_t panel_blocks = divide_up(run.panels(), of_task);
  for (AlignedBuffer& buffer : scratch) buffer.reserve(run.scratch_bytes(divide_up(tiles, blocks)));
  parallel(blocks * panel_blocks, [&](std::int64_t task, int thread) {
    // Neighbours in order read the same filters.
    const std::int64_t block = task % blocks, panel_block = task / blocks;
    const std::int64_t begin = block * tiles / blocks;
    run.run(begin, (block + 1) * tiles / blocks - begin, panel_block * run.panels() / panel_blocks,
            (panel_block + 1) * run.panels() / panel_blocks,
            scratch[static_cast<std::size_t>(thread)].floats());
  });
}

std::int64_t winograd_images_at_once(const Convolution& convolution, int tile) {
  const std::int64_t tiles = WinogradGrid(convolution, tile).tiles_of_image();
  return std::max<std::int64_t>(1, kTilesAtOnce / std::max<std::int64_t>(1, tiles));
}

void multiply_winograd_images(const Kernels& kernels, const Convolution& convolution,
                              const WinogradFilters& filters, const ImageOperands& operands,
                              std::int64_t count, AlignedBuffer& scratch,
                              const WinogradFront& front, const LinesAhead& ahead) {
  const std::int64_t tiles = count * WinogradGrid(convolution, filters.tile()).tiles_of_image();
  const WinogradTiles run(kernels, convolution, filters, operands, front);
  scratch.reserve(run.scratch_bytes(tiles));
  run.run(0, tiles, 0, run.panels(), scratch.floats(), ahead);
}

}  // namespace lathe::engine
