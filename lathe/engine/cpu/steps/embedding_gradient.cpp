#include <cstring>

#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// Table rows a task sums: few enough to balance frequent words over threads.
constexpr std::int64_t kGrain = 64;

// embedding_gradient(dy, ids) and gather_rows_gradient(dy, indices, x): row r of the result is the
// sum of the dy rows whose id is r, in their order. A counting sort brings them together, so that
// no two threads write one row and no order depends on threads.
class EmbeddingGradientStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const Type& result = call.graph.types(call.node)[0];
    const std::vector<std::int64_t> dims = result.dims(call.symbols);
    const std::int64_t rows = dims[0];
    std::int64_t n = 1;
    for (std::size_t axis = 1; axis < dims.size(); ++axis) n *= dims[axis];
    const std::int64_t count =
        call.graph.type(call.graph.input(call.node, 1)).num_elements().evaluate(call.symbols);
    const auto* ids = reinterpret_cast<const std::int32_t*>(call.inputs[1]);
    const auto* dy = reinterpret_cast<const float*>(call.inputs[0]);
    auto* const out = reinterpret_cast<float*>(call.outputs[0]);

    std::vector<std::int32_t> starts(static_cast<std::size_t>(rows) + 1);
    for (std::int64_t i = 0; i < count; ++i) {
      if (ids[i] < 0 || ids[i] >= rows) fail("id {} is outside the table of {} rows", ids[i], rows);
      ++starts[static_cast<std::size_t>(ids[i]) + 1];
    }
    std::vector<std::int32_t> used;
    for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
      if (starts[r + 1] != 0) used.push_back(static_cast<std::int32_t>(r));
      starts[r + 1] += starts[r];
    }
    std::vector<std::int32_t> order(static_cast<std::size_t>(count));
    std::vector<std::int32_t> next(starts.begin(), starts.end() - 1);
    for (std::int64_t i = 0; i < count; ++i)
      order[static_cast<std::size_t>(next[static_cast<std::size_t>(ids[i])]++)] =
          static_cast<std::int32_t>(i);

    const std::int64_t zero_tasks = (rows + 1023) / 1024;
    call.parallel(zero_tasks, [&](std::int64_t task, int) {
      const std::int64_t begin = task * 1024, end = std::min(rows, begin + 1024);
      std::memset(out + begin * n, 0, static_cast<std::size_t>((end - begin) * n) * sizeof(float));
    });
    const auto num_used = static_cast<std::int64_t>(used.size());
    call.parallel((num_used + kGrain - 1) / kGrain, [&](std::int64_t task, int) {
      const std::int64_t end = std::min(num_used, (task + 1) * kGrain);
      for (std::int64_t u = task * kGrain; u < end; ++u) {
        const auto row = static_cast<std::size_t>(used[static_cast<std::size_t>(u)]);
        call.kernels.sum_selected_rows(dy, n, order.data() + starts[row],
                                       starts[row + 1] - starts[row], n,
                                       out + static_cast<std::int64_t>(row) * n, false);
      }
    });
  }
};

class GatherRowsStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const std::vector<std::int64_t> x =
        call.graph.type(call.graph.input(call.node, 0)).dims(call.symbols);
    std::int64_t bytes = sizeof(float);
    for (std::size_t axis = 1; axis < x.size(); ++axis) bytes *= x[axis];
    const std::int64_t count =
        call.graph.type(call.graph.input(call.node, 1)).num_elements().evaluate(call.symbols);
    const auto* indices = reinterpret_cast<const std::int32_t*>(call.inputs[1]);
    for (std::int64_t i = 0; i < count; ++i) {
      if (indices[i] < 0 || indices[i] >= x[0])
        fail("index {} is outside the {} rows", indices[i], x[0]);
      std::memcpy(call.outputs[0] + i * bytes, call.inputs[0] + indices[i] * bytes,
                  static_cast<std::size_t>(bytes));
    }
  }
};

std::unique_ptr<Step> make_embedding_gradient(const Graph& graph, NodeId id) {
  if (graph.types(id)[0].dtype != DType::F32 || graph.types(id)[0].rank() < 1 ||
      graph.type(graph.input(id, 1)).dtype != DType::I32)
    return nullptr;
  return std::make_unique<EmbeddingGradientStep>();
}

const Register embedding_gradient{CpuKernel{"embedding_gradient", make_embedding_gradient}};
const Register gather_rows_gradient{CpuKernel{"gather_rows_gradient", make_embedding_gradient}};
const Register gather_rows{
    CpuKernel{"gather_rows", [](const Graph& graph, NodeId id) -> std::unique_ptr<Step> {
                if (graph.types(id)[0].dtype != DType::F32 ||
                    graph.type(graph.input(id, 1)).dtype != DType::I32)
                  return nullptr;
                return std::make_unique<GatherRowsStep>();
              }}};

}  // namespace
}  // namespace lathe::engine
