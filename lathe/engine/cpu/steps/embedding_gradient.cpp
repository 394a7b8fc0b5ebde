#include <algorithm>
#include <cstring>

#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// Table rows a task sums: few enough to balance frequent words over threads.
constexpr std::int64_t kMostRows = 64;
constexpr std::int64_t kLeastRows = 8;
// As many tasks as keep all threads busy. Where a table has fewer rows (two types of tokens, all of
// one), tasks share columns, of which none is summed in another order for that.
constexpr std::int64_t kTasks = 64;
constexpr std::int64_t kLeastColumns = 16;

// The places of each row of a table among `ids`, in their order, by a counting sort: then no two
// threads write one row, and no order depends on threads.
struct PlacesOfRows {
  std::vector<std::int32_t> used;    // rows that occur, ascending
  std::vector<std::int32_t> starts;  // of the places of each row, and their end
  std::vector<std::int32_t> order;   // places, row by row

  PlacesOfRows(const std::int32_t* ids, std::int64_t count, std::int64_t rows)
      : starts(static_cast<std::size_t>(rows) + 1), order(static_cast<std::size_t>(count)) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (ids[i] < 0 || ids[i] >= rows) fail("id {} is outside the table of {} rows", ids[i], rows);
      ++starts[static_cast<std::size_t>(ids[i]) + 1];
    }
    for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
      if (starts[r + 1] != 0) used.push_back(static_cast<std::int32_t>(r));
      starts[r + 1] += starts[r];
    }
    std::vector<std::int32_t> next(starts.begin(), starts.end() - 1);
    for (std::int64_t i = 0; i < count; ++i)
      order[static_cast<std::size_t>(next[static_cast<std::size_t>(ids[i])]++)] =
          static_cast<std::int32_t>(i);
  }

  // Sums the rows of `dy` that belong to each used row into `target(u)`, u counting used rows.
  template <typename Target>
  void sum(const WholeCall& call, const float* dy, std::int64_t n, bool accumulate,
           Target target) const {
    const auto num_used = static_cast<std::int64_t>(used.size());
    const std::int64_t grain = std::clamp(num_used / kTasks, kLeastRows, kMostRows);
    const std::int64_t row_tasks = (num_used + grain - 1) / grain;
    const std::int64_t column_tasks =
        std::clamp<std::int64_t>(kTasks / std::max<std::int64_t>(row_tasks, 1), 1,
                                 std::max<std::int64_t>(n / kLeastColumns, 1));
    call.parallel(row_tasks * column_tasks, [&](std::int64_t task, int) {
      const std::int64_t first = task / column_tasks * grain;
      const auto column = [&](std::int64_t part) {
        return part == column_tasks ? n : n / kLeastColumns * part / column_tasks * kLeastColumns;
      };
      const std::int64_t from = column(task % column_tasks);
      const std::int64_t columns = column(task % column_tasks + 1) - from;
      for (std::int64_t u = first; u < std::min(num_used, first + grain); ++u) {
        const auto row = static_cast<std::size_t>(used[static_cast<std::size_t>(u)]);
        call.kernels.sum_selected_rows(dy + from, n, order.data() + starts[row],
                                       starts[row + 1] - starts[row], columns, target(u) + from,
                                       accumulate);
      }
    });
  }
};

PlacesOfRows find_places(const WholeCall& call, std::int64_t rows) {
  return {reinterpret_cast<const std::int32_t*>(call.inputs[1]),
          call.graph.type(call.graph.input(call.node, 1)).num_elements().evaluate(call.symbols),
          rows};
}

// embedding_gradient(dy, ids) and gather_rows_gradient(dy, indices, x): row r of the result is the
// sum of the dy rows whose id is r, in their order. add_embedding_gradient(dy, ids, base) adds them
// to row r of `base`.
class EmbeddingGradientStep final : public Step {
 public:
  explicit EmbeddingGradientStep(bool has_base) : has_base_(has_base) {}

  void run_whole(const WholeCall& call) const override {
    const std::vector<std::int64_t> dims = call.graph.types(call.node)[0].dims(call.symbols);
    const std::int64_t rows = dims[0];
    std::int64_t n = 1;
    for (std::size_t axis = 1; axis < dims.size(); ++axis) n *= dims[axis];
    const PlacesOfRows places = find_places(call, rows);
    auto* const out = reinterpret_cast<float*>(call.outputs[0]);
    call.parallel((rows + 1023) / 1024, [&](std::int64_t task, int) {
      const std::int64_t begin = task * 1024, end = std::min(rows, begin + 1024);
      const auto bytes = static_cast<std::size_t>((end - begin) * n) * sizeof(float);
      if (has_base_)
        std::memcpy(out + begin * n, reinterpret_cast<const float*>(call.inputs[2]) + begin * n,
                    bytes);
      else
        std::memset(out + begin * n, 0, bytes);
    });
    places.sum(call, reinterpret_cast<const float*>(call.inputs[0]), n, has_base_,
               [&](std::int64_t u) { return out + places.used[static_cast<std::size_t>(u)] * n; });
  }

 private:
  bool has_base_;
};

// embedding_gradient_rows(dy, ids): the same sums one after another, and where each row went.
class EmbeddingGradientRowsStep final : public Step {
 public:
  void run_whole(const WholeCall& call) const override {
    const std::vector<Type>& types = call.graph.types(call.node);
    const std::int64_t n = types[0].dims(call.symbols)[1];
    const PlacesOfRows places = find_places(call, types[1].dims(call.symbols)[0]);
    auto* const out = reinterpret_cast<float*>(call.outputs[0]);
    places.sum(call, reinterpret_cast<const float*>(call.inputs[0]), n, false,
               [&](std::int64_t u) { return out + u * n; });
    auto* const place = reinterpret_cast<std::int32_t*>(call.outputs[1]);
    std::fill(place, place + types[1].dims(call.symbols)[0], -1);
    for (std::size_t u = 0; u < places.used.size(); ++u)
      place[places.used[u]] = static_cast<std::int32_t>(u);
    *reinterpret_cast<std::int32_t*>(call.outputs[2]) =
        static_cast<std::int32_t>(places.used.size());
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
  return std::make_unique<EmbeddingGradientStep>(graph.is(id, "add_embedding_gradient"));
}

const Register embedding_gradient{CpuKernel{"embedding_gradient", make_embedding_gradient}};
const Register add_embedding_gradient{CpuKernel{"add_embedding_gradient", make_embedding_gradient}};
const Register embedding_gradient_rows{
    CpuKernel{"embedding_gradient_rows", [](const Graph&, NodeId) -> std::unique_ptr<Step> {
                return std::make_unique<EmbeddingGradientRowsStep>();
              }}};
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
