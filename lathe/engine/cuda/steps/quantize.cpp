#include "lathe/engine/cuda/cuda_format.h"
#include "lathe/engine/cuda/cuda_row_program.h"
#include "lathe/engine/cuda/cuda_walks.h"
#include "lathe/numerics/codecs/sum_order.h"
#include "lathe/numerics/mase/simulated_format.h"
#include "lathe/numerics/term_format.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::engine {
namespace {

// quantize(x, scale?, zero?, mask?) and learned_step_gradient(dy, x, y, scale, zero?): an element
// codec with scales, terms made of means, or one of MASE's own.

using numerics::ScaledSpec;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// The matrix that a format sees of a tensor. Where its rows do not lie one after another, operands
// are moved to such a matrix in scratch, and results back.
struct FormatMatrix {
  CudaRows rows;
  bool is_moved = false;
  std::int64_t before = 1, after = 1;

  std::int64_t bytes() const {  // of a moved one, whose size is constant
    return is_moved ? aligned(rows.rows.constant() * rows.width * 4) : 0;
  }
  void move(const CudaCall& call, const float* from, float* to, bool is_result) const {
    const std::int64_t count = rows.rows.constant();
    cuda::CopyArgs args;
    args.x = from;
    args.y = to;
    set_dims({before, count, after}, args.rank, args.dims);
    const cuda::Walk in_tensor = to_walk({count * after, after, 1});
    const cuda::Walk in_matrix = to_walk({after, before * after, 1});
    args.x_walk = is_result ? in_matrix : in_tensor;
    args.y_walk = is_result ? in_tensor : in_matrix;
    args.count.capacity = before * count * after;
    call.kernels.copy(args, call.stream);
  }
  /// An operand as the matrix; `room` is then used up by bytes().
  const float* operand(const CudaCall& call, std::size_t i, std::byte*& room) const {
    if (!is_moved || !call.has(i)) return call.input(i);
    auto* const to = reinterpret_cast<float*>(room);
    room += bytes();
    move(call, call.input(i), to, false);
    return to;
  }
  float* result(const CudaCall& call, std::size_t i, std::byte*& room) const {
    if (!is_moved) return call.output(i);
    auto* const to = reinterpret_cast<float*>(room);
    room += bytes();
    return to;
  }
  void finish(const CudaCall& call, std::size_t i, const float* made) const {
    if (is_moved) move(call, made, call.output(i), true);
  }
};

std::optional<FormatMatrix> format_matrix(const Graph& graph, NodeId id) {
  const std::int64_t axis = graph.attribute(id).integer("axis");
  const Type& type = graph.types(id)[0];
  const std::optional<CudaRows> rows = cuda_rows(ops::matrix_type("quantize", type, axis));
  if (!rows) return std::nullopt;
  FormatMatrix result{*rows, axis > 0};
  for (std::size_t i = 0; i < type.rank() && result.is_moved; ++i) {
    if (static_cast<std::int64_t>(i) < axis) result.before *= type.shape[i].constant();
    if (static_cast<std::int64_t>(i) > axis) result.after *= type.shape[i].constant();
  }
  return result;
}

// What a format is to the kernels: one of these, without operands.
struct FormatKernel {
  std::optional<cuda::QuantizeArgs> scaled;
  std::optional<cuda::TermArgs> terms;
  std::optional<cuda::MaseArgs> mase;

  std::int64_t scratch_bytes() const {
    if (scaled && scaled->block_rows == 0) return cuda::kScaleParts * sizeof(cuda::ScalePart);
    return terms && terms->is_whole ? cuda::term_scratch(terms->num_chunks) : 0;
  }
};

cuda::TermArgs args_of(const numerics::TermSpec& spec) {
  cuda::TermArgs args;
  static_assert(cuda::kMostTermAlphas == numerics::kMostTerms);
  args.kind = spec.threshold != 0 ? cuda::TermArgs::Kind::Ternary : cuda::TermArgs::Kind::Signs;
  args.terms = spec.terms;
  args.is_unit = spec.is_unit;
  args.threshold = spec.threshold;
  args.num_phases = spec.is_unit ? 0 : spec.threshold != 0 ? 2 : spec.terms;
  args.is_whole = !spec.is_unit && spec.facts.granularity == Granularity::Tensor;
  return args;
}

// Of those whose numbers are signs or means of rows.
cuda::TermArgs args_of(numerics::SimulatedSpec::Kind kind) {
  using Kind = numerics::SimulatedSpec::Kind;
  cuda::TermArgs args;
  args.is_unit = kind == Kind::Sign;
  if (args.is_unit) return args;
  args.kind = kind == Kind::Positive ? cuda::TermArgs::Kind::MasePositive
                                     : cuda::TermArgs::Kind::MaseTernary;
  args.threshold = numerics::kMaseTernaryThreshold;
  args.num_phases = kind == Kind::ScaledTernary ? 2 : 1;
  return args;
}

FormatKernel kernel_of(const NumberFormat& format, const CudaRows& matrix) {
  FormatKernel result;
  if (const ScaledSpec* const spec = numerics::find_scaled_spec(format)) {
    result.scaled = cuda_format(*spec, matrix.width);
  } else if (const numerics::TermSpec* const term = numerics::find_term_spec(format)) {
    result.terms = args_of(*term);
    result.terms->columns = matrix.width;
    if (result.terms->is_whole)
      result.terms->num_chunks =
          (matrix.rows.constant() * matrix.width + numerics::SumOrder::kChunk - 1) /
          numerics::SumOrder::kChunk;
  } else if (const numerics::SimulatedSpec* const mase = numerics::find_simulated_spec(format)) {
    if (mase->kind != numerics::SimulatedSpec::Kind::Table) {
      result.terms = args_of(mase->kind);
      result.terms->columns = matrix.width;
    } else {
      result.mase.emplace();
      result.mase->table = mase->table;
      result.mase->has_blocks = mase->needs_largest;
      result.mase->block_rows = mase->facts.block_rows;
      result.mase->block = block_columns(mase->facts, matrix.width);
      result.mase->columns = matrix.width;
    }
  }
  return result;
}

// Rows that are rounded one by one. Those of a batch go through row programs, with the steps that
// make them; tensors of constant size, such as weights, share a launch.
class RowFormatStep final : public CudaStep {
 public:
  RowFormatStep(CudaRowFacts facts, cuda::QuantizeArgs format)
      : facts_(std::move(facts)), format_(format) {}
  CudaGroup group() const override { return is_of_batch() ? CudaGroup::Rows : CudaGroup::Formats; }
  const CudaRowFacts* rows() const override { return is_of_batch() ? &facts_ : nullptr; }
  bool has_format() const override { return true; }
  bool can_write_half(std::size_t) const override { return is_of_batch(); }
  void add_to(CudaRowProgram& program, const CudaCall& call) const override {
    const int x = program.operand(call, 0);
    program.add(call,
                {.kind = cuda::RowInstruction::Kind::Quantize,
                 .a = x,
                 .format = program.add_format(args_for(call))},
                0);
  }
  void add_to(CudaGroupTable& table, const CudaCall& call) const override {
    cuda::QuantizeArgs args = args_for(call);
    args.first_block = table.num_blocks;
    const std::int64_t blocks = args.rows.capacity * ((args.columns + args.block - 1) / args.block);
    table.num_blocks += (blocks + cuda::kQuantizeBlock - 1) / cuda::kQuantizeBlock;
    table.formats.push_back(args);
  }

 private:
  bool is_of_batch() const { return !facts_.rows.is_constant() && fits_row_program(facts_.width); }
  cuda::QuantizeArgs args_for(const CudaCall& call) const {
    cuda::QuantizeArgs args = format_;
    args.scales = call.input(1);
    args.zeros = call.input(2);
    args.x = call.input(0);
    args.y = call.output(0);
    args.rows = call.extent(facts_.rows);
    return args;
  }
  CudaRowFacts facts_;
  cuda::QuantizeArgs format_;
};

std::unique_ptr<CudaStep> make_quantize(const Graph& graph, NodeId id) {
  const std::optional<FormatMatrix> x = format_matrix(graph, id);
  if (!x) return nullptr;
  const FormatKernel kernel = kernel_of(*ops::format_of(graph.attribute(id)), x->rows);
  if (!kernel.scaled && !kernel.terms && !kernel.mase) return nullptr;
  const bool is_by_rows = kernel.scaled && kernel.scaled->block_rows == 1 && !x->is_moved;
  if (is_by_rows && (x->rows.rows.is_constant() || fits_row_program(x->rows.width)))
    return std::make_unique<RowFormatStep>(CudaRowFacts{x->rows.rows, x->rows.width, {0}},
                                           *kernel.scaled);
  const std::int64_t own_bytes = aligned(kernel.scratch_bytes());
  return cuda_step_with_scratch([bytes = own_bytes + 3 * x->bytes()](
                                    const Graph&, NodeId, const CudaSizes&) { return bytes; },
                                [kernel, own_bytes, matrix = *x](const CudaCall& call) {
                                  std::byte* room = call.scratch + own_bytes;
                                  const float* const from = matrix.operand(call, 0, room);
                                  const float* const mask = matrix.operand(call, 3, room);
                                  float* const to = matrix.result(call, 0, room);
                                  const cuda::Extent rows = call.extent(matrix.rows.rows);
                                  if (kernel.scaled) {
                                    cuda::QuantizeArgs args = *kernel.scaled;
                                    args.scales = call.input(1);
                                    args.zeros = call.input(2);
                                    args.parts = reinterpret_cast<cuda::ScalePart*>(call.scratch);
                                    args.x = from;
                                    args.y = to;
                                    args.rows = rows;
                                    call.kernels.quantize(args, call.stream);
                                  } else if (kernel.terms) {
                                    cuda::TermArgs args = *kernel.terms;
                                    args.scratch = call.scratch;
                                    args.x = from;
                                    args.mask = mask;
                                    args.y = to;
                                    args.rows = rows;
                                    call.kernels.quantize_terms(args, call.stream);
                                  } else {
                                    cuda::MaseArgs args = *kernel.mase;
                                    args.x = from;
                                    args.y = to;
                                    args.rows = rows;
                                    call.kernels.quantize_mase(args, call.stream);
                                  }
                                  matrix.finish(call, 0, to);
                                });
}

// learned_step_gradient of rows that lie one after another, `args` without operands.
cuda::LearnedStepArgs learned_step_args(const CudaCall& call, cuda::LearnedStepArgs args,
                                        const Size& rows) {
  args.dy = call.input(0);
  args.x = call.input(1);
  args.y = call.input(2);
  args.scales = call.input(3);
  args.zeros = call.input(4);
  args.dx = call.output(0);
  args.dscale = call.output(1);
  args.rows = call.extent(rows);
  return args;
}

// Of tensors of constant size with a scale for each block, such as weights: they share a launch.
class LearnedStepsStep final : public CudaStep {
 public:
  LearnedStepsStep(Size rows, cuda::LearnedStepArgs args) : rows_(std::move(rows)), args_(args) {}
  CudaGroup group() const override { return CudaGroup::LearnedSteps; }
  void add_to(CudaGroupTable& table, const CudaCall& call) const override {
    cuda::LearnedStepArgs args = learned_step_args(call, args_, rows_);
    args.first_block = table.num_blocks;
    const std::int64_t blocks = args.rows.capacity * ((args.columns + args.block - 1) / args.block);
    table.num_blocks += (blocks + cuda::kQuantizeBlock - 1) / cuda::kQuantizeBlock;
    table.learned_steps.push_back(args);
  }

 private:
  Size rows_;
  cuda::LearnedStepArgs args_;
};

std::unique_ptr<CudaStep> make_learned_step(const Graph& graph, NodeId id) {
  const std::optional<FormatMatrix> found = format_matrix(graph, id);
  if (!found) return nullptr;
  const FormatMatrix matrix = *found;
  const CudaRows& rows = matrix.rows;
  const FormatFacts facts = ops::format_of(graph.attribute(id))->facts();
  const ops::PlaceRange range = ops::unclipped_places(facts);
  const cuda::LearnedStepArgs own{.is_power_of_two = facts.is_scale_power_of_two,
                                  .has_one_scale = facts.granularity == Granularity::Tensor,
                                  .minimum = range.minimum,
                                  .maximum = range.maximum,
                                  .factor = ops::step_gradient_factor(facts, rows.width),
                                  .block = block_columns(facts, rows.width),
                                  .columns = rows.width,
                                  .rows = {}};
  if (!matrix.is_moved && !own.has_one_scale && rows.rows.is_constant())
    return std::make_unique<LearnedStepsStep>(rows.rows, own);
  if (!matrix.is_moved && own.has_one_scale && fits_row_program(rows.width))
    return cuda_row_step(
        {.rows = rows.rows,
         .width = rows.width,
         .operands = {0, 1, 2},
         .sums = 1,
         .learned_steps = 1},
        [=, all = rows.rows](CudaRowProgram& program, const CudaCall& call) {
          cuda::RowInstruction instruction{
              .kind = cuda::RowInstruction::Kind::LearnedStep,
              .a = program.operand(call, 0),
              .b = program.operand(call, 1),
              .c = program.operand(call, 2),
              .format = program.add_learned_step(learned_step_args(call, own, all))};
          program.add_sums(call, instruction, 1, 1);
          program.add(call, instruction, 0);
        },
        {row_parts_of(1, rows)});
  const auto parts_bytes = [=](const CudaSizes& sizes) {
    const std::int64_t blocks = (own.columns + own.block - 1) / own.block;
    return aligned((sizes.capacity(matrix.rows.rows) * blocks + 1) *
                   static_cast<std::int64_t>(sizeof(double)));
  };
  return cuda_step_with_scratch(
      [=](const Graph&, NodeId, const CudaSizes& sizes) {
        return parts_bytes(sizes) + 4 * matrix.bytes();
      },
      [=](const CudaCall& call) {
        std::byte* room = call.scratch + parts_bytes(call.sizes);
        cuda::LearnedStepArgs args = learned_step_args(call, own, matrix.rows.rows);
        args.dy = matrix.operand(call, 0, room);
        args.x = matrix.operand(call, 1, room);
        args.y = matrix.operand(call, 2, room);
        args.dx = matrix.result(call, 0, room);
        args.parts = reinterpret_cast<double*>(call.scratch);
        call.kernels.learned_step(args, call.stream);
        matrix.finish(call, 0, args.dx);
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
