#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

constexpr std::int64_t kGrain = 16;

// cross_entropy(logits, labels) and its gradient, by rows. Each task sums its rows in double and
// the tasks' sums are added in order.
class CrossEntropyStep final : public Step {
 public:
  CrossEntropyStep(std::int64_t ignore_index, bool is_gradient)
      : ignore_index_(ignore_index), is_gradient_(is_gradient) {}

  void run_whole(const WholeCall& call) const override {
    const std::size_t first = is_gradient_ ? 1 : 0;
    const Type& type = call.graph.type(call.graph.input(call.node, first));
    const std::int64_t classes = type.shape.back().constant();
    const std::int64_t rows = type.num_elements().evaluate(call.symbols) / classes;
    const auto* logits = reinterpret_cast<const float*>(call.inputs[first]);
    const auto* labels = reinterpret_cast<const std::int32_t*>(call.inputs[first + 1]);
    for (std::int64_t r = 0; r < rows; ++r)
      if (labels[r] != ignore_index_ && (labels[r] < 0 || labels[r] >= classes))
        fail("label {} of row {} is outside 0 to {}", labels[r], r, classes - 1);
    const std::int64_t tasks = (rows + kGrain - 1) / kGrain;
    if (is_gradient_) {
      const float dsum = *reinterpret_cast<const float*>(call.inputs[0]);
      auto* const out = reinterpret_cast<float*>(call.outputs[0]);
      call.parallel(tasks, [&](std::int64_t task, int) {
        const std::int64_t begin = task * kGrain;
        call.kernels.cross_entropy_backward_rows({.rows = std::min(kGrain, rows - begin),
                                                  .classes = classes,
                                                  .logits = logits + begin * classes,
                                                  .logits_stride = classes,
                                                  .labels = labels + begin,
                                                  .ignore_index = ignore_index_,
                                                  .dsum = dsum,
                                                  .dlogits = out + begin * classes,
                                                  .dlogits_stride = classes});
      });
      return;
    }
    std::vector<double> sums(static_cast<std::size_t>(tasks));
    std::vector<std::int64_t> counts(static_cast<std::size_t>(tasks));
    call.parallel(tasks, [&](std::int64_t task, int) {
      const std::int64_t begin = task * kGrain;
      call.kernels.cross_entropy_rows({.rows = std::min(kGrain, rows - begin),
                                       .classes = classes,
                                       .logits = logits + begin * classes,
                                       .logits_stride = classes,
                                       .labels = labels + begin,
                                       .ignore_index = ignore_index_,
                                       .sum = &sums[static_cast<std::size_t>(task)],
                                       .count = &counts[static_cast<std::size_t>(task)]});
    });
    double sum = 0;
    std::int64_t count = 0;
    for (std::size_t task = 0; task < sums.size(); ++task) {
      sum += sums[task];
      count += counts[task];
    }
    *reinterpret_cast<float*>(call.outputs[0]) = static_cast<float>(sum);
    *reinterpret_cast<float*>(call.outputs[1]) = static_cast<float>(count);
  }

 private:
  std::int64_t ignore_index_;
  bool is_gradient_;
};

std::unique_ptr<Step> make_cross_entropy(const Graph& graph, NodeId id, bool is_gradient) {
  const std::size_t first = is_gradient ? 1 : 0;
  const Type& logits = graph.type(graph.input(id, first));
  if (!row_shape(logits) || graph.type(graph.input(id, first + 1)).dtype != DType::I32)
    return nullptr;
  return std::make_unique<CrossEntropyStep>(graph.attribute(id).integer("ignore_index"),
                                            is_gradient);
}

const Register cross_entropy{CpuKernel{"cross_entropy", [](const Graph& graph, NodeId id) {
                                         return make_cross_entropy(graph, id, false);
                                       }}};
const Register cross_entropy_gradient{
    CpuKernel{"cross_entropy_gradient",
              [](const Graph& graph, NodeId id) { return make_cross_entropy(graph, id, true); }}};

}  // namespace
}  // namespace lathe::engine
