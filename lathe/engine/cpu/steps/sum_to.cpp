#include <algorithm>
#include <cstring>

#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// sum_to(x): x summed over the axes that broadcasting stretched, where those lie side by side: x is
// then [outer, summed, inner]. Leading axes alone are a sum over rows, as sum_rows(x) is, which the
// plan adds up group by group.

class SumLeadingStep final : public Step {
 public:
  explicit SumLeadingStep(RowSpace space) : space_(std::move(space)) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    const std::int64_t n = space_.input_widths[0];
    call.kernels.sum_rows_accumulate(call.input(0), call.rows, n, n, call.output(0));
  }

 private:
  RowSpace space_;
};

// The first and the last axis of x that are summed; nullopt where others lie between them.
struct SummedAxes {
  std::size_t first, last;
};
std::optional<SummedAxes> summed_axes(const Type& x, const Type& y) {
  const std::size_t added = x.rank() - y.rank();
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < x.rank(); ++axis)
    if (axis < added || y.shape[axis - added] != x.shape[axis]) axes.push_back(axis);
  if (axes.empty()) return std::nullopt;
  for (std::size_t axis = axes.front(); axis <= axes.back(); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end() && x.shape[axis] != Size(1))
      return std::nullopt;
  return SummedAxes{axes.front(), axes.back()};
}

Size product(const Shape& shape, std::size_t first, std::size_t end) {
  Size result(1);
  for (std::size_t axis = first; axis < end; ++axis) result *= shape[axis];
  return result;
}

class SumToStep final : public Step {
 public:
  SumToStep(Size outer, Size summed, Size inner)
      : outer_(std::move(outer)), summed_(std::move(summed)), inner_(std::move(inner)) {}

  void run_whole(const WholeCall& call) const override {
    const std::int64_t outer = outer_.evaluate(call.symbols);
    const std::int64_t summed = summed_.evaluate(call.symbols);
    const std::int64_t inner = inner_.evaluate(call.symbols);
    const auto* const x = reinterpret_cast<const float*>(call.inputs[0]);
    auto* const y = reinterpret_cast<float*>(call.outputs[0]);
    constexpr std::int64_t kTaskElements = 1 << 14;
    const std::int64_t grain =
        std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(1, summed * inner));
    call.parallel((outer + grain - 1) / grain, [&](std::int64_t task, int) {
      const std::int64_t end = std::min(outer, (task + 1) * grain);
      for (std::int64_t o = task * grain; o < end; ++o) {
        const float* const from = x + o * summed * inner;
        if (inner == 1) {
          double sum = 0;
          for (std::int64_t i = 0; i < summed; ++i) sum += double{from[i]};
          y[o] = static_cast<float>(sum);
          continue;
        }
        std::memset(y + o * inner, 0, static_cast<std::size_t>(inner) * sizeof(float));
        call.kernels.sum_rows_accumulate(from, summed, inner, inner, y + o * inner);
      }
    });
  }

 private:
  Size outer_, summed_, inner_;
};

std::unique_ptr<Step> make_sum_to(const Graph& graph, NodeId id) {
  const Type& x = graph.type(graph.input(id, 0));
  const Type& y = graph.types(id)[0];
  if (x.dtype != DType::F32) return nullptr;
  const std::optional<SummedAxes> axes = summed_axes(x, y);
  if (!axes) return nullptr;
  Size outer = product(x.shape, 0, axes->first);
  Size summed = product(x.shape, axes->first, axes->last + 1);
  Size inner = product(x.shape, axes->last + 1, x.rank());
  if (outer == Size(1) && inner.is_constant() && inner.constant() > 1)
    return std::make_unique<SumLeadingStep>(RowSpace{summed, {inner.constant()}, {0}});
  return std::make_unique<SumToStep>(std::move(outer), std::move(summed), std::move(inner));
}

std::unique_ptr<Step> make_sum_rows(const Graph& graph, NodeId id) {
  const std::optional<RowShape> x = row_shape(graph.type(graph.input(id, 0)));
  if (!x) return nullptr;
  return std::make_unique<SumLeadingStep>(RowSpace{x->rows, {x->width}, {0}});
}

const Register sum_to{CpuKernel{"sum_to", make_sum_to}};
const Register sum_rows{CpuKernel{"sum_rows", make_sum_rows}};

}  // namespace
}  // namespace lathe::engine
