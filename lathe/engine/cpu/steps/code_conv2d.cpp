#include <algorithm>
#include <cmath>
#include <cstring>

#include "lathe/engine/cpu/activations.h"
#include "lathe/engine/cpu/code_weight.h"
#include "lathe/engine/cpu/convolution.h"
#include "lathe/engine/cpu/encode_args.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/ops/code_convolution.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::engine {
namespace {

constexpr std::size_t kCodeResidual = ops::kNumConvolutionOperands;

// The bytes under the windows of a block, and of its results in a block of few: what stays in the
// second-level cache, and what fills the tiles.
constexpr std::int64_t kMostWindowBytes = std::int64_t{1} << 18;
constexpr std::int64_t kLeastPixels = 48;

// code_conv2d and image_code_conv2d: lines of x are rounded to bytes, and windows multiplied with a
// weight that is packed ahead: where the bytes lie, or gathered into a row for each.
class CodeConv2dStep final : public Step {
 public:
  CodeConv2dStep(const Graph& graph, NodeId id, EncodeArgs encoding, Unary activation)
      : format_(parse_format(graph.attribute(id).text("format"))),
        x_format_(parse_format(graph.attribute(id).text("x_format"))),
        encoding_(encoding),
        activation_(activation),
        depth_(graph.attribute(id).integer("columns")) {
    const AttributeReader attributes = graph.attribute(id);
    const std::vector<std::int64_t>& kernel = attributes.integers("kernel");
    window_ = ops::read_window("conv2d", kernel[0], kernel[1], attributes, true);
    if (graph.is(id, "code_conv2d")) return;
    x_is_last_ = attributes.flag("x_last");
    y_is_last_ = attributes.flag("y_last");
  }

  void prepare(const Kernels& kernels, std::span<const Tensor* const> states) override {
    const auto state = [&](std::size_t i) { return i < states.size() ? states[i] : nullptr; };
    numerics::RowCodes weight = ops::read_weight(
        *format_, depth_, *states[ops::kConvolutionCodes], state(ops::kConvolutionLocal),
        state(ops::kConvolutionScale), state(ops::kConvolutionZero));
    const CodeKernels& code = code_kernels(*parse_isa(kernels.isa));
    const ops::CodeBlocks blocks = *ops::code_blocks(x_format_->facts(), format_->facts(), depth_);
    const std::int64_t taps = window_.kernel[0] * window_.kernel[1];
    channels_ = depth_ / taps;
    is_lying_ = code.multiply_windows != nullptr && blocks.blocks == 1 && window_.dilations[1] == 1;
    if (is_lying_) {
      // Channels in fours, behind which are zeros.
      const std::int64_t padded = (channels_ + kWindowStep - 1) / kWindowStep * kWindowStep;
      pack(code, weight, taps, padded, {taps * padded, 1, taps * padded, false, false, false});
      const std::int64_t step = weight_.cut().has_nibbles ? 2 * kWindowStep : kWindowStep;
      if (window_.kernel[1] * padded % step == 0) return;
      is_lying_ = false;
    }
    pack(code, weight, taps, channels_,
         {depth_, blocks.blocks, blocks.width, blocks.x_has_blocks, blocks.weight_has_blocks,
          false});
  }
  std::int64_t layout_bytes() const override { return weight_.bytes(); }
  bool reads_state(std::size_t operand) const override {
    return operand < ops::kConvolutionCodes || operand > ops::kConvolutionZero;
  }
  KernelChoice choice() const override {
    std::string way = fmt::format("{}, {}x{} windows{}", weight_.kernels().name, window_.kernel[0],
                                  window_.kernel[1], is_lying_ ? "" : " gathered");
    if (!x_is_last_) way += " of planes";
    if (!y_is_last_) way += " to planes";
    return {std::move(way), "codes"};
  }

  bool is_by_images() const override { return true; }
  void run_whole(const WholeCall& call) const override {
    const Run run(*this, call);
    if (run.rows == 0) return;
    for (AlignedBuffer& buffer : call.scratch) buffer.reserve(run.scratch_bytes());
    call.parallel(run.row_blocks * run.column_blocks, [&](std::int64_t task, int thread) {
      run.compute(task / run.column_blocks, task % run.column_blocks,
                  call.scratch[static_cast<std::size_t>(thread)].data());
    });
  }

 private:
  // Channels behind taps, as windows have them.
  void pack(const CodeKernels& code, numerics::RowCodes weight, std::int64_t taps,
            std::int64_t padded, const CodeCut& cut) {
    std::vector<std::int8_t> turned(static_cast<std::size_t>(weight.rows * taps * padded));
    for (std::int64_t f = 0; f < weight.rows; ++f)
      for (std::int64_t c = 0; c < channels_; ++c)
        for (std::int64_t t = 0; t < taps; ++t)
          turned[static_cast<std::size_t>((f * taps + t) * padded + c)] =
              weight.numbers[static_cast<std::size_t>((f * channels_ + c) * taps + t)];
    weight.numbers = std::move(turned);
    weight.columns = cut.k;
    weight.width = cut.width;
    weight_.pack(code, weight, cut, false);
    padded_ = padded;
  }

  // One run: its sizes and how they are cut.
  struct Run {
    const CodeConv2dStep& step;
    const WholeCall& call;
    Images x, y;
    std::int64_t rows, row_blocks, column_blocks, block_rows, block_columns;
    std::int64_t line_pixels, line;  // of a line with its padding, and its bytes
    float scale = 1;

    Run(const CodeConv2dStep& owner, const WholeCall& whole)
        : step(owner),
          call(whole),
          x(images_of(whole.graph.type(whole.graph.input(whole.node, 0)).dims(whole.symbols),
                      owner.x_is_last_)),
          y(images_of(whole.graph.types(whole.node)[0].dims(whole.symbols), owner.y_is_last_)) {
      rows = y.count * y.height;
      if (y.width * y.channels == 0) rows = 0;
      const std::int64_t row_bytes = std::max<std::int64_t>(1, y.width * step.depth_);
      const std::int64_t threads = std::ssize(call.scratch);
      const std::int64_t grain = step.weight_.kernels().grain().columns;
      const std::int64_t least = (kLeastPixels + y.width - 1) / std::max<std::int64_t>(1, y.width);
      block_rows = std::clamp<std::int64_t>(rows / (2 * threads), least,
                                            std::max(least, kMostWindowBytes / row_bytes));
      block_rows = std::clamp<std::int64_t>(block_rows, 1, std::max<std::int64_t>(1, rows));
      row_blocks = (rows + block_rows - 1) / block_rows;
      const std::int64_t panels = (y.channels + grain - 1) / grain;
      const std::int64_t parts = std::clamp<std::int64_t>(
          row_blocks >= threads
              ? 1
              : (threads + row_blocks - 1) / std::max<std::int64_t>(1, row_blocks),
          1, std::max<std::int64_t>(1, panels));
      block_columns = (panels + parts - 1) / parts * grain;
      column_blocks = (y.channels + block_columns - 1) / block_columns;
      line_pixels = (y.width - 1) * step.window_.strides[1] +
                    (step.window_.kernel[1] - 1) * step.window_.dilations[1] + 1;
      line = line_pixels * step.padded_;
      const auto* const given = reinterpret_cast<const float*>(call.inputs[ops::kXScale]);
      scale = static_cast<float>(ops::effective_scale(step.x_format_->facts(), *given));
    }

    static std::int64_t rounded(std::int64_t bytes) { return (bytes + 127) / 64 * 64; }
    // Lines of x that the rows of a block read; an image begins anew.
    std::int64_t most_lines() const {
      const std::int64_t images = (block_rows - 1 + y.height - 1) / y.height + 1;
      return block_rows * step.window_.strides[0] +
             images * step.window_.kernel[0] * step.window_.dilations[0];
    }
    std::int64_t floats_bytes() const { return rounded(4 * x.width * x.channels); }
    std::int64_t lines_bytes() const { return rounded(most_lines() * line); }
    std::int64_t windows_bytes() const {
      return step.is_lying_ ? 0 : rounded(block_rows * y.width * step.depth_);
    }
    std::int64_t sums_bytes() const {
      return step.is_lying_ ? rounded(4 * (most_lines() * line_pixels + block_rows * y.width)) : 0;
    }
    std::int64_t scales_bytes() const { return rounded(4 * (block_rows * y.width + 2)); }
    std::int64_t results_bytes() const {
      return y.is_last ? 0 : rounded(4 * block_rows * y.width * block_columns);
    }
    std::int64_t scratch_bytes() const {
      return floats_bytes() + lines_bytes() + windows_bytes() + sums_bytes() + scales_bytes() +
             results_bytes() +
             step.weight_.kernels().scratch_bytes(block_rows * y.width, step.weight_.cut());
    }

    // Rounds a line of x; false where it holds a NaN.
    bool encode(std::int64_t image, std::int64_t at, float* floats, std::int8_t* to) const {
      std::memset(to, 0, static_cast<std::size_t>(line));
      if (at < 0 || at >= x.height) return true;
      const auto* from = reinterpret_cast<const float*>(call.inputs[0]) + image * x.size();
      if (x.is_last) {
        from += at * x.width * x.channels;
      } else {
        copy_line(call.kernels, x, from, at, 0, x.width, floats);
        from = floats;
      }
      const std::int64_t left = step.window_.pads[1];
      const std::int64_t end = std::min(x.width, line_pixels - left);
      // All of the line is looked at for NaN, even what no window reads.
      float scale_of_line = 0;
      std::int32_t zero = 0;
      EncodeArgs args = step.encoding_;
      args.rows = 1;
      args.columns = args.block = x.width * x.channels;
      args.x = from;
      args.scale = scale;
      args.scales = &scale_of_line;
      args.zeros = &zero;
      std::vector<std::int8_t> whole;
      const bool is_padded = step.padded_ != x.channels, is_whole = end == x.width;
      if (is_padded || !is_whole) whole.resize(static_cast<std::size_t>(args.columns));
      args.numbers = whole.empty() ? to + left * x.channels : whole.data();
      step.weight_.kernels().encode(args);
      if (is_padded)
        for (std::int64_t pixel = 0; pixel < end; ++pixel)
          for (std::int64_t c = 0; c < x.channels; ++c)
            to[(left + pixel) * step.padded_ + c] =
                whole[static_cast<std::size_t>(pixel * x.channels + c)];
      else if (!is_whole && end > 0)
        std::memcpy(to + left * x.channels, whole.data(),
                    static_cast<std::size_t>(end * x.channels));
      return !std::isnan(scale_of_line);
    }

    void compute(std::int64_t row_block, std::int64_t column_block, std::byte* scratch) const {
      const auto take = [&](std::int64_t bytes) {
        std::byte* const place = scratch;
        scratch += bytes;
        return place;
      };
      auto* const floats = reinterpret_cast<float*>(take(floats_bytes()));
      auto* lines = reinterpret_cast<std::int8_t*>(take(lines_bytes()));
      auto* const windows = reinterpret_cast<std::int8_t*>(take(windows_bytes()));
      auto* const sums = reinterpret_cast<std::int32_t*>(take(sums_bytes()));
      auto* const scales = reinterpret_cast<float*>(take(scales_bytes()));
      auto* const results = reinterpret_cast<float*>(take(results_bytes()));
      const std::int64_t begin = row_block * rows / row_blocks;
      const std::int64_t end = (row_block + 1) * rows / row_blocks;
      std::vector<const std::int8_t*> places;
      for (std::int64_t row = begin; row < end;) {
        const std::int64_t image = row / y.height, place = row % y.height;
        const std::int64_t count = std::min(end - row, y.height - place);
        encode_lines(image, place, count, floats, lines, scales + (row - begin) * y.width);
        if (step.is_lying_) {
          std::int32_t* const own = sums + (row - begin) * y.width;
          place_windows(count, lines, places, own, sums + block_rows * y.width);
          lines += num_lines(count) * line;
        } else {
          gather(count, lines, windows + (row - begin) * y.width * step.depth_);
        }
        row += count;
      }
      multiply(begin, end, column_block * block_columns, {windows, places.data(), sums}, scales,
               results, scratch);
    }

    // Lines of x under so many rows of windows.
    std::int64_t num_lines(std::int64_t count) const {
      const ops::Window& window = step.window_;
      return (count - 1) * window.strides[0] + (window.kernel[0] - 1) * window.dilations[0] + 1;
    }
    // Rounds those of some rows of an image, and writes the scale of each window.
    void encode_lines(std::int64_t image, std::int64_t place, std::int64_t count, float* floats,
                      std::int8_t* lines, float* scales) const {
      const ops::Window& window = step.window_;
      const std::int64_t top = window.position(0, place, 0);
      std::vector<bool> is_good(static_cast<std::size_t>(num_lines(count)));
      for (std::int64_t i = 0; i < num_lines(count); ++i)
        is_good[static_cast<std::size_t>(i)] = encode(image, top + i, floats, lines + i * line);
      for (std::int64_t i = 0; i < count; ++i) {
        bool good = true;
        for (std::int64_t p = 0; p < window.kernel[0]; ++p)
          good = good &&
                 is_good[static_cast<std::size_t>(i * window.strides[0] + p * window.dilations[0])];
        scales = std::fill_n(scales, y.width, good ? scale : std::nanf(""));
      }
    }

    // The bytes under the windows of some rows.
    void gather(std::int64_t count, const std::int8_t* lines, std::int8_t* windows) const {
      const ops::Window& window = step.window_;
      const bool is_run = window.dilations[1] == 1;
      const std::int64_t pieces = is_run ? 1 : window.kernel[1];
      const std::int64_t length = is_run ? window.kernel[1] * x.channels : x.channels;
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t j = 0; j < y.width; ++j)
          for (std::int64_t p = 0; p < window.kernel[0]; ++p)
            for (std::int64_t q = 0; q < pieces; ++q, windows += length)
              std::memcpy(windows,
                          lines + (i * window.strides[0] + p * window.dilations[0]) * line +
                              (j * window.strides[1] + q * window.dilations[1]) * x.channels,
                          static_cast<std::size_t>(length));
    }

    // Where the windows of some rows lie, and the sums of what is under each, by way of those of
    // pixels and of what is above each other.
    void place_windows(std::int64_t count, const std::int8_t* lines,
                       std::vector<const std::int8_t*>& places, std::int32_t* sums,
                       std::int32_t* of_pixels) const {
      const ops::Window& window = step.window_;
      step.weight_.kernels().sum_pixels(lines, num_lines(count) * line_pixels, step.padded_,
                                        of_pixels);
      std::vector<std::int32_t> columns(static_cast<std::size_t>(line_pixels));
      for (std::int64_t i = 0; i < count; ++i, sums += y.width) {
        places.push_back(lines + i * window.strides[0] * line);
        std::ranges::fill(columns, 0);
        for (std::int64_t p = 0; p < window.kernel[0]; ++p) {
          const std::int32_t* const of_line =
              of_pixels + (i * window.strides[0] + p * window.dilations[0]) * line_pixels;
          for (std::size_t c = 0; c < columns.size(); ++c) columns[c] += of_line[c];
        }
        std::fill_n(sums, y.width, 0);
        for (std::int64_t q = 0; q < window.kernel[1]; ++q)
          for (std::int64_t j = 0; j < y.width; ++j)
            sums[j] += columns[static_cast<std::size_t>(j * window.strides[1] + q)];
      }
    }

    // What is multiplied: rows of bytes, or windows where they lie.
    struct Left {
      const std::int8_t* rows;
      const std::int8_t* const* places;
      const std::int32_t* sums;
    };
    void multiply(std::int64_t begin, std::int64_t end, std::int64_t column, const Left& left,
                  const float* scales, float* results, std::byte* scratch) const {
      const auto operand = [&](std::size_t i) {
        return i < call.inputs.size() ? reinterpret_cast<const float*>(call.inputs[i]) : nullptr;
      };
      const float *const bias = operand(ops::kConvolutionBias), *const residual =
                                                                    operand(kCodeResidual);
      auto* const out = reinterpret_cast<float*>(call.outputs[0]);
      const std::int64_t at = begin * y.width * y.channels + column;
      CodeArgs args{};
      args.rows = (end - begin) * y.width;
      args.n = std::min(block_columns, y.channels - column);
      args.x = left.rows;
      args.x_stride = step.depth_;
      args.x_scales = scales;
      args.bias = bias != nullptr ? bias + column : nullptr;
      // A residual is added before the activation, so that this one comes later.
      args.activation = residual != nullptr ? Unary::None : step.activation_;
      args.residual = residual != nullptr ? residual + at : nullptr;
      args.residual_stride = y.channels;
      args.y = y.is_last ? out + at : results;
      args.y_stride = y.is_last ? y.channels : args.n;
      args.scratch = scratch;
      step.weight_.set_operands(args, column);
      if (step.is_lying_)
        step.weight_.kernels().multiply_windows({.product = args,
                                                 .pixels = y.width,
                                                 .x = left.places,
                                                 .x_step = step.window_.strides[1] * step.padded_,
                                                 .lines = step.window_.kernel[0],
                                                 .line_step = step.window_.dilations[0] * line,
                                                 .length = step.window_.kernel[1] * step.padded_,
                                                 .sums = left.sums});
      else
        step.weight_.kernels().multiply(args);
      if (residual != nullptr && step.activation_ != Unary::None)
        for (std::int64_t i = 0; i < args.rows; ++i)
          call.kernels.unary(step.activation_, args.y + i * args.y_stride, args.n,
                             args.y + i * args.y_stride);
      if (y.is_last) return;
      const std::int64_t plane = y.height * y.width;
      for (std::int64_t row = begin; row < end; ++row)
        call.kernels.transpose_matrix(
            {.rows = y.width,
             .columns = args.n,
             .x = results + (row - begin) * y.width * args.n,
             .x_stride = args.n,
             .y = out + (row / y.height * y.channels + column) * plane + row % y.height * y.width,
             .y_stride = plane});
    }
  };

  std::shared_ptr<const NumberFormat> format_, x_format_;
  EncodeArgs encoding_;
  Unary activation_;
  std::int64_t depth_, channels_ = 0, padded_ = 0;  // those of bytes
  bool is_lying_ = false;                           // windows are multiplied where they lie
  ops::Window window_{};
  bool x_is_last_ = false, y_is_last_ = false;
  CodeWeight weight_;
};

std::unique_ptr<Step> make_code_conv2d(const Graph& graph, NodeId id) {
  for (std::size_t i = ops::kConvolutionCodes; i <= ops::kConvolutionZero; ++i)
    if (i < graph.inputs(id).size() && !graph.input(id, i).is_none() &&
        !graph.is(graph.input(id, i).node, "state"))
      return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  const std::optional<EncodeArgs> encoding =
      encode_args(*parse_format(attributes.text("x_format")), 1);
  if (!encoding || encoding->rule != CodeScale::Given || encoding->offset != 0) return nullptr;
  Unary activation = Unary::None;
  if (graph.is(id, "image_code_conv2d")) {
    const std::string& name = attributes.text("activation");
    const Activation* const fused = find_epilogue(name);
    if (fused == nullptr && name != "none") return nullptr;
    if (fused != nullptr) activation = fused->function;
    if (graph.inputs(id).size() > kCodeResidual && !graph.input(id, kCodeResidual).is_none() &&
        !attributes.flag("y_last"))
      return nullptr;
  }
  return std::make_unique<CodeConv2dStep>(graph, id, *encoding, activation);
}

const Register code_conv2d{CpuKernel{"code_conv2d", make_code_conv2d}};
const Register image_code_conv2d{CpuKernel{"image_code_conv2d", make_code_conv2d}};

}  // namespace
}  // namespace lathe::engine
