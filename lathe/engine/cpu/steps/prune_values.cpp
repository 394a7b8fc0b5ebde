#include "lathe/engine/cpu/step.h"
#include "lathe/ops/prune_row.h"

namespace lathe::engine {
namespace {

// prune_values(x) and prune_values_gradient(dy, x): x is the last operand, and what is copied where
// it is kept the first.
class PruneValuesStep final : public Step {
 public:
  PruneValuesStep(RowSpace space, double sparsity)
      : space_(std::move(space)), count_(ops::num_pruned(sparsity, space_.output_widths[0])) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    const std::int64_t columns = space_.output_widths[0];
    std::vector<float> room;
    for (std::int64_t row = 0; row < call.rows; ++row)
      ops::prune_row(call.input(call.inputs.size() - 1) + row * columns,
                     call.input(0) + row * columns, columns, count_, call.output(0) + row * columns,
                     room);
  }

 private:
  RowSpace space_;
  std::int64_t count_;
};

std::unique_ptr<Step> make(const Graph& graph, NodeId id) {
  const Type& type = graph.types(id)[0];
  const std::optional<RowShape> x = row_shape(type);
  if (!x || type.dtype != DType::F32) return nullptr;
  RowSpace space{x->rows, {}, {x->width}};
  space.input_widths.resize(graph.inputs(id).size(), x->width);
  return std::make_unique<PruneValuesStep>(std::move(space), graph.attribute(id).real("sparsity"));
}

const Register prune_values{CpuKernel{"prune_values", make}};
const Register prune_values_gradient{CpuKernel{"prune_values_gradient", make}};

}  // namespace
}  // namespace lathe::engine
