#include "lathe/engine/cpu/step.h"
#include "lathe/ops/dropout_mask.h"

namespace lathe::engine {
namespace {

// random_dropout(x, random, examples, positions): which elements fall depends on the run's seed and
// step, the row's example and position, and the site; its gradient is the same op.
class RandomDropoutStep final : public Step {
 public:
  RandomDropoutStep(RowSpace space, std::uint32_t threshold, std::int64_t site)
      : space_(std::move(space)), threshold_(threshold), site_(site) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    const std::int64_t n = space_.output_widths[0];
    const auto* random = reinterpret_cast<const std::int32_t*>(call.inputs[1]);
    const ops::DropoutStream stream = ops::dropout_stream(random[0], random[1], random[2], site_);
    call.kernels.dropout_rows({.rows = call.rows,
                               .n = n,
                               .x = call.input(0),
                               .x_stride = n,
                               .residual = nullptr,
                               .residual_stride = 0,
                               .y = call.output(0),
                               .y_stride = n,
                               .dropout = {threshold_, stream.seed, stream.step, stream.site},
                               .positions = reinterpret_cast<const std::int32_t*>(call.inputs[3]),
                               .examples = reinterpret_cast<const std::int32_t*>(call.inputs[2])});
  }

 private:
  RowSpace space_;
  std::uint32_t threshold_;
  std::int64_t site_;
};

const Register random_dropout{CpuKernel{
    "random_dropout", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
      const std::optional<RowShape> x = row_shape(graph.types(id)[0]);
      if (!x) return nullptr;
      for (std::size_t i = 1; i < 4; ++i)
        if (graph.type(graph.input(id, i)).dtype != DType::I32) return nullptr;
      const AttributeReader attributes = graph.attribute(id);
      return std::make_unique<RandomDropoutStep>(RowSpace{x->rows, {x->width, 0, 1, 1}, {x->width}},
                                                 ops::dropout_threshold(attributes.real("rate")),
                                                 attributes.integer("site"));
    }}};

}  // namespace
}  // namespace lathe::engine
