#include <bit>
#include <cmath>

#include "lathe/core/number_format.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::engine {
namespace {

// Scales a row of a matrix brings along: 0 for those of the whole tensor, which are read whole.
std::int64_t scales_of_row(const FormatFacts& facts, std::int64_t columns) {
  switch (facts.granularity) {
    case Granularity::Tensor:
      return 0;
    case Granularity::Row:
      return 1;
    case Granularity::Block:
      break;
  }
  return (columns + facts.block_columns - 1) / facts.block_columns;
}

// quantize(x, scale?, zero?, mask?): a format's own kernel on the rows of a tile, in cache between
// the kernels before and after it.
class QuantizeStep final : public Step {
 public:
  QuantizeStep(RowSpace space, std::shared_ptr<const NumberFormat> format)
      : space_(std::move(space)), format_(std::move(format)) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    QuantizeArgs args;
    args.rows = call.rows;
    args.columns = space_.output_widths[0];
    args.x = call.input(0);
    args.y = call.output(0);
    if (call.inputs.size() > 1) args.scales = call.input(1);
    if (call.inputs.size() > 2) args.zeros = call.input(2);
    if (call.inputs.size() > 3) args.mask = call.input(3);
    args.isa = *parse_isa(call.kernels.isa);
    format_->quantize(args);
  }

 private:
  RowSpace space_;
  std::shared_ptr<const NumberFormat> format_;
};

class GateGradientStep final : public Step {
 public:
  GateGradientStep(RowSpace space, float minimum, float maximum)
      : space_(std::move(space)), minimum_(minimum), maximum_(maximum) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    call.kernels.gate(call.input(0), call.input(1), minimum_, maximum_,
                      call.rows * space_.output_widths[0], call.output(0));
  }

 private:
  RowSpace space_;
  float minimum_, maximum_;
};

class LearnedStepGradientStep final : public Step {
 public:
  LearnedStepGradientStep(RowSpace space, FormatFacts facts)
      : space_(std::move(space)), facts_(std::move(facts)), range_(ops::unclipped_places(facts_)) {}
  const RowSpace* rows() const override { return &space_; }

  void run_rows(const RowCall& call) const override {
    const std::int64_t n = space_.output_widths[0];
    const auto factor = static_cast<float>(ops::step_gradient_factor(facts_, n));
    const std::int64_t of_row = scales_of_row(facts_, n);
    float* const gradients = call.output(1);
    if (of_row == 0) {
      gradients[0] += factor * one_scale(call, 0, call.rows * n, 0);
      return;
    }
    const std::int64_t width = of_row == 1 ? n : facts_.block_columns;
    for (std::int64_t r = 0; r < call.rows; ++r)
      for (std::int64_t block = 0; block < of_row; ++block) {
        const std::int64_t first = block * width, scale = r * of_row + block;
        gradients[scale] =
            factor * one_scale(call, r * n + first, std::min(width, n - first), scale);
      }
  }

 private:
  float one_scale(const RowCall& call, std::int64_t first, std::int64_t count,
                  std::int64_t scale) const {
    const bool has_zero = call.inputs.size() > 4 && call.inputs[4] != nullptr;
    return call.kernels.learned_step(
        {.count = count,
         .dy = call.input(0) + first,
         .x = call.input(1) + first,
         .y = call.input(2) + first,
         .scale = static_cast<float>(ops::effective_scale(facts_, call.input(3)[scale])),
         .zero = has_zero ? call.input(4)[scale] : 0.0f,
         .minimum = static_cast<float>(range_.minimum),
         .maximum = static_cast<float>(range_.maximum),
         .dx = call.output(0) + first});
  }

  RowSpace space_;
  FormatFacts facts_;
  ops::PlaceRange range_;
};

using MadeStep = std::unique_ptr<Step>;

// The rows that a format sees; nullopt where they do not lie one after another.
std::optional<RowShape> format_rows(const Graph& graph, NodeId id) {
  const std::int64_t axis = graph.attribute(id).integer("axis");
  if (axis > 0) return std::nullopt;
  return row_shape(ops::matrix_type("quantize", graph.types(id)[0], axis));
}

MadeStep make_quantize(const Graph& graph, NodeId id) {
  const std::optional<RowShape> x = format_rows(graph, id);
  std::shared_ptr<const NumberFormat> format = ops::format_of(graph.attribute(id));
  if (!x || !format->facts().is_row_local) return nullptr;
  RowSpace space{x->rows, {x->width}, {x->width}};
  space.input_widths.resize(graph.inputs(id).size(), scales_of_row(format->facts(), x->width));
  if (space.input_widths.size() > 3) space.input_widths[3] = x->width;
  return std::make_unique<QuantizeStep>(std::move(space), std::move(format));
}

MadeStep make_gate_gradient(const Graph& graph, NodeId id) {
  const std::optional<RowShape> x = row_shape(graph.types(id)[0]);
  if (!x) return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  return std::make_unique<GateGradientStep>(RowSpace{x->rows, {x->width, x->width}, {x->width}},
                                            static_cast<float>(attributes.real("minimum")),
                                            static_cast<float>(attributes.real("maximum")));
}

MadeStep make_learned_step_gradient(const Graph& graph, NodeId id) {
  const std::optional<RowShape> x = format_rows(graph, id);
  if (!x) return nullptr;
  const FormatFacts facts = ops::format_of(graph.attribute(id))->facts();
  const std::int64_t of_row = scales_of_row(facts, x->width);
  RowSpace space{x->rows, {x->width, x->width, x->width}, {x->width, of_row}};
  space.input_widths.resize(graph.inputs(id).size(), of_row);
  return std::make_unique<LearnedStepGradientStep>(std::move(space), facts);
}

const Register quantize{CpuKernel{"quantize", make_quantize}};
const Register gate_gradient{CpuKernel{"gate_gradient", make_gate_gradient}};
const Register learned_step_gradient{
    CpuKernel{"learned_step_gradient", make_learned_step_gradient}};

}  // namespace
}  // namespace lathe::engine
