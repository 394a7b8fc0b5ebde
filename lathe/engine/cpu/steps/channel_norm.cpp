#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/engine/cpu/channel_gradients.h"
#include "lathe/engine/cpu/channel_moments.h"
#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// The parts of normalize_batch and its gradient for images whose channels lie side by side.
//
// What is summed over all pixels is summed in floats over kChannelRows of them and then in double,
// by blocks whose number follows from the extents, and then in their order.

constexpr std::int64_t kMostBlocks = 64;

const float* floats_at(const WholeCall& call, std::size_t operand) {
  return reinterpret_cast<const float*>(call.inputs[operand]);
}
float* results_at(const WholeCall& call, std::size_t result) {
  return reinterpret_cast<float*>(call.outputs[result]);
}

// The pixels of all images in blocks.
struct PixelBlocks {
  std::int64_t rows, channels, block_rows, count;

  explicit PixelBlocks(const WholeCall& call) {
    const std::vector<std::int64_t> dims =
        call.graph.type(call.graph.input(call.node, 0)).dims(call.symbols);
    channels = dims.back();
    rows = channels == 0 ? 0 : num_elements(dims) / channels;
    const std::int64_t parts = (rows + kChannelRows - 1) / kChannelRows;
    block_rows = std::max<std::int64_t>(1, (parts + kMostBlocks - 1) / kMostBlocks) * kChannelRows;
    count = (rows + block_rows - 1) / block_rows;
  }
};

class ChannelStatisticsStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const PixelBlocks blocks(call);
    if (blocks.rows == 1) fail("one element a channel has no variance: expected more");
    const std::int64_t channels = blocks.channels;
    std::vector<ChannelMoments> moments(static_cast<std::size_t>(blocks.count),
                                        ChannelMoments(channels));
    call.parallel_by_rows(blocks.count, [&](std::int64_t block, int) {
      const std::int64_t first = block * blocks.block_rows;
      moments[static_cast<std::size_t>(block)].add(
          call.kernels, floats_at(call, 0) + first * channels,
          std::min(blocks.rows - first, blocks.block_rows));
    });
    put_statistics(moments, {floats_at(call, 1), static_cast<std::size_t>(channels)},
                   call.graph.attribute(call.node).real("eps"),
                   {results_at(call, 0), results_at(call, 1), results_at(call, 2)});
  }
};

// channel_gradients, or relu_channel_gradients, which makes the dy of it on the way.
template <bool HasRelu>
class ChannelGradientsStep final : public Step {
 public:
  std::vector<InPlace> in_place() const override {
    if (!HasRelu) return {};
    return {{.output = 0, .input = 0}};
  }
  void run_whole(const WholeCall& call) const override {
    const PixelBlocks blocks(call);
    const std::int64_t channels = blocks.channels;
    constexpr std::size_t kX = HasRelu ? 3 : 1;  // x, weight, mean and variance
    const auto at = [&](const float* values, std::int64_t row) {
      return values == nullptr ? nullptr : values + row * channels;
    };
    // Of each block, the sums of dy and those of dy (x - mean).
    std::vector<double> sums(static_cast<std::size_t>(blocks.count * 2 * channels), 0.0);
    call.parallel_by_rows(blocks.count, [&](std::int64_t block, int) {
      const std::int64_t first = block * blocks.block_rows;
      add_channel_products(call.kernels,
                           {.rows = std::min(blocks.rows - first, blocks.block_rows),
                            .n = channels,
                            .dy = at(floats_at(call, 0), first),
                            .more = HasRelu ? at(floats_at(call, 1), first) : nullptr,
                            .relu = HasRelu ? at(floats_at(call, 2), first) : nullptr,
                            .slope = nullptr,
                            .bias = nullptr,
                            .g = HasRelu ? results_at(call, 0) + first * channels : nullptr,
                            .x = at(floats_at(call, kX), first),
                            .center = floats_at(call, kX + 2),
                            .sums = nullptr},
                           sums.data() + block * 2 * channels);
    });
    const auto result = [&](std::size_t index) { return results_at(call, index + HasRelu); };
    put_channel_gradients({.parts = sums,
                           .n = channels,
                           .count = static_cast<double>(blocks.rows),
                           .eps = call.graph.attribute(call.node).real("eps"),
                           .weight = floats_at(call, kX + 1),
                           .variance = floats_at(call, kX + 3)},
                          {result(0), result(1), result(2), result(3), result(4)});
  }
};

class NormalizeChannelsStep final : public Step {
 public:
  NormalizeChannelsStep(const RowShape& x, bool has_relu)
      : space_{x.rows, {x.width, 0, 0, 0, x.width}, {x.width}}, has_relu_(has_relu) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    call.kernels.scale_channels({.rows = call.rows,
                                 .n = space_.output_widths[0],
                                 .x = call.input(0),
                                 .center = call.input(1),
                                 .slope = call.input(2),
                                 .bias = call.input(3),
                                 .residual = call.inputs.size() > 4 ? call.input(4) : nullptr,
                                 .has_relu = has_relu_,
                                 .y = call.output(0)});
  }

 private:
  RowSpace space_;
  bool has_relu_;
};

class NormalizeChannelsGradientStep final : public Step {
 public:
  explicit NormalizeChannelsGradientStep(const RowShape& x)
      : space_{x.rows, {x.width, x.width, 0, 0, 0, 0}, {x.width}} {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    call.kernels.scale_channels_backward({.rows = call.rows,
                                          .n = space_.output_widths[0],
                                          .dy = call.input(0),
                                          .x = call.input(1),
                                          .center = call.input(2),
                                          .factor = call.input(3),
                                          .shift = call.input(4),
                                          .slope = call.input(5),
                                          .dx = call.output(0)});
  }

 private:
  RowSpace space_;
};

bool are_floats(const Graph& graph, NodeId id) {
  return std::ranges::all_of(graph.inputs(id), [&](const Value& value) {
    return value.is_none() || graph.type(value).dtype == DType::F32;
  });
}

template <typename WholeStep>
std::unique_ptr<Step> make_sums(const Graph& graph, NodeId id) {
  if (!are_floats(graph, id)) return nullptr;
  return std::make_unique<WholeStep>();
}

std::unique_ptr<Step> make_normalize(const Graph& graph, NodeId id) {
  const std::optional<RowShape> x = row_shape(graph.types(id)[0]);
  if (!x || !are_floats(graph, id)) return nullptr;
  return std::make_unique<NormalizeChannelsStep>(
      *x, graph.is(id, "fused_normalize_channels") && graph.attribute(id).flag("relu"));
}

std::unique_ptr<Step> make_gradient(const Graph& graph, NodeId id) {
  const std::optional<RowShape> x = row_shape(graph.types(id)[0]);
  if (!x || !are_floats(graph, id)) return nullptr;
  return std::make_unique<NormalizeChannelsGradientStep>(*x);
}

const Register channel_statistics{
    CpuKernel{"channel_statistics", make_sums<ChannelStatisticsStep>}};
const Register channel_gradients{
    CpuKernel{"channel_gradients", make_sums<ChannelGradientsStep<false>>}};
const Register relu_channel_gradients{
    CpuKernel{"relu_channel_gradients", make_sums<ChannelGradientsStep<true>>}};
const Register normalize_channels{CpuKernel{"normalize_channels", make_normalize}};
const Register fused_normalize_channels{CpuKernel{"fused_normalize_channels", make_normalize}};
const Register normalize_channels_gradient{CpuKernel{"normalize_channels_gradient", make_gradient}};

}  // namespace
}  // namespace lathe::engine
