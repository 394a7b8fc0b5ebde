#include <cmath>

#include "lathe/core/number_format.h"
#include "lathe/engine/cpu/code_kernels.h"
#include "lathe/engine/cpu/encode_args.h"
#include "lathe/engine/cpu/step.h"
#include "lathe/numerics/row_codes.h"
#include "lathe/ops/quantized_operands.h"

namespace lathe::engine {
namespace {

// encode(x, scale?, zero?): rounds a tile's rows to bytes while they are near.
class EncodeStep final : public Step {
 public:
  EncodeStep(RowSpace space, std::shared_ptr<const NumberFormat> format, EncodeArgs args)
      : space_(std::move(space)), format_(std::move(format)), args_(args) {}
  const RowSpace* rows() const override { return &space_; }

  void run_rows(const RowCall& call) const override {
    EncodeArgs args = args_;
    args.rows = call.rows;
    args.x = call.input(0);
    args.numbers = reinterpret_cast<std::int8_t*>(call.outputs[0]);
    args.scales = call.output(1);
    args.zeros = reinterpret_cast<std::int32_t*>(call.outputs[2]);
    if (call.inputs.size() > 1 && call.inputs[1] != nullptr)
      args.scale = static_cast<float>(ops::effective_scale(format_->facts(), call.input(1)[0]));
    if (call.inputs.size() > 2 && call.inputs[2] != nullptr)
      args.zero = static_cast<float>(std::lrint(call.input(2)[0]));
    code_kernels(*parse_isa(call.kernels.isa)).encode(args);
  }

 private:
  RowSpace space_;
  std::shared_ptr<const NumberFormat> format_;
  EncodeArgs args_;
};

std::unique_ptr<Step> make_encode(const Graph& graph, NodeId id) {
  const std::optional<RowShape> x = row_shape(graph.type(graph.input(id, 0)));
  std::shared_ptr<const NumberFormat> format = ops::format_of(graph.attribute(id));
  if (!x || x->width == 0 || graph.attribute(id).integer("axis") >= 0) return nullptr;
  const std::optional<EncodeArgs> args = encode_args(*format, x->width);
  if (!args) return nullptr;
  const std::int64_t blocks = numerics::blocks_of_row(format->facts(), x->width);
  RowSpace space{x->rows, {x->width}, {x->width, blocks, blocks}};
  space.input_widths.resize(graph.inputs(id).size(), 0);
  return std::make_unique<EncodeStep>(std::move(space), std::move(format), *args);
}

const Register encode{CpuKernel{"encode", make_encode}};

}  // namespace
}  // namespace lathe::engine
