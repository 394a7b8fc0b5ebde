#include <algorithm>

#include "lathe/engine/cuda/cuda_step.h"
#include "lathe/numerics/scaled_format.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::engine {
namespace {

// quantize(x, scale?, zero?) and learned_step_gradient(dy, x, y, scale, zero?), of formats that are
// an element codec with scales by rows or blocks of them, or one for all. Formats of terms, scales
// of several rows and MASE's own have no kernel yet.

using numerics::ScaledSpec;

// The rows that a format sees; nullopt where they do not lie one after another.
std::optional<CudaRows> format_rows(const Graph& graph, NodeId id) {
  const std::int64_t axis = graph.attribute(id).integer("axis");
  if (axis > 0) return std::nullopt;
  return cuda_rows(ops::matrix_type("quantize", graph.types(id)[0], axis));
}

std::int64_t block_columns(const FormatFacts& facts, std::int64_t columns) {
  const bool is_block = facts.granularity == Granularity::Block && facts.block_columns > 0;
  return is_block ? std::min(facts.block_columns, columns) : columns;
}

bool has_operand(const Graph& graph, NodeId id, std::size_t operand) {
  return operand < graph.inputs(id).size() && !graph.input(id, operand).is_none();
}

cuda::QuantizeArgs args_of(const ScaledSpec& spec, std::int64_t columns) {
  cuda::QuantizeArgs args;
  if (const auto* integer = std::get_if<numerics::IntegerCodec>(&spec.codec)) {
    args.codec = cuda::Codec::Integer;
    args.bits = integer->bits;
    args.low = integer->low;
    args.high = integer->high;
    args.zero = integer->zero;
  } else if (const auto* minifloat = std::get_if<numerics::MinifloatCodec>(&spec.codec)) {
    args.codec = cuda::Codec::Minifloat;
    args.exponent_bits = minifloat->exponent_bits;
    args.mantissa_bits = minifloat->mantissa_bits;
    args.bias = minifloat->bias;
    args.specials = static_cast<std::int32_t>(minifloat->specials);
    args.overflows = minifloat->overflows;
  } else {
    const auto& levels = std::get<numerics::LevelCodec>(spec.codec);
    args.codec = cuda::Codec::Levels;
    std::copy_n(levels.levels, numerics::LevelCodec::kLevels, args.levels);
    std::copy_n(levels.thresholds, numerics::LevelCodec::kLevels - 1, args.thresholds);
  }
  static_assert(static_cast<int>(cuda::ScaleBy::Range) ==
                static_cast<int>(numerics::ScaleRule::Range));
  args.rule = static_cast<cuda::ScaleBy>(spec.rule);
  args.element_step = spec.element_step;
  args.divisor = spec.divisor;
  args.by_reciprocal = spec.by_reciprocal;
  args.highest_exponent = spec.exponent.highest_exponent;
  args.lowest_code = spec.exponent.lowest_code;
  args.round_up = spec.exponent.round_up;
  args.has_one_scale = spec.facts.granularity == Granularity::Tensor;
  args.block = block_columns(spec.facts, columns);
  args.columns = columns;
  return args;
}

std::unique_ptr<CudaStep> make_quantize(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> x = format_rows(graph, id);
  const std::shared_ptr<const NumberFormat> format = ops::format_of(graph.attribute(id));
  const ScaledSpec* const spec = numerics::find_scaled_spec(*format);
  if (!x || spec == nullptr || !spec->facts.is_row_local || has_operand(graph, id, 3))
    return nullptr;
  cuda::QuantizeArgs args = args_of(*spec, x->width);
  return cuda_step([args, rows = x->rows](const CudaCall& call) {
    cuda::QuantizeArgs now = args;
    now.scales = call.input(1);
    now.zeros = call.input(2);
    now.x = call.input(0);
    now.y = call.output(0);
    now.rows = call.extent(rows);
    call.kernels.quantize(now, call.stream);
  });
}

std::unique_ptr<CudaStep> make_learned_step(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> x = format_rows(graph, id);
  if (!x) return nullptr;
  const FormatFacts facts = ops::format_of(graph.attribute(id))->facts();
  const ops::PlaceRange range = ops::unclipped_places(facts);
  const std::int64_t block = block_columns(facts, x->width), n = x->width;
  const Size rows = x->rows;
  return cuda_step_with_scratch(
      [=](const Graph&, NodeId, const CudaSizes& sizes) {
        return (sizes.capacity(rows) * ((n + block - 1) / block) + 1) *
               static_cast<std::int64_t>(sizeof(double));
      },
      [=](const CudaCall& call) {
        call.kernels.learned_step({.dy = call.input(0),
                                   .x = call.input(1),
                                   .y = call.input(2),
                                   .scales = call.input(3),
                                   .zeros = call.input(4),
                                   .is_power_of_two = facts.is_scale_power_of_two,
                                   .has_one_scale = facts.granularity == Granularity::Tensor,
                                   .minimum = range.minimum,
                                   .maximum = range.maximum,
                                   .factor = ops::step_gradient_factor(facts, n),
                                   .block = block,
                                   .columns = n,
                                   .dx = call.output(0),
                                   .dscale = call.output(1),
                                   .parts = reinterpret_cast<double*>(call.scratch),
                                   .rows = call.extent(rows)},
                                  call.stream);
      });
}

// A format sees the first axis as its rows, unless its channels are another axis.
bool takes_padding(const Graph& graph, NodeId id) {
  const std::int64_t axis = graph.attribute(id).integer("axis");
  return axis < 0 && graph.types(id)[0].rank() > 1;
}

const Register quantize{CudaKernel{"quantize", make_quantize, takes_padding}};
const Register learned_step{CudaKernel{"learned_step_gradient", make_learned_step, takes_padding}};

}  // namespace
}  // namespace lathe::engine
