#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

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
// threads write one row, and no order depends on threads. Every thread sorts for a range of rows,
// because all of them wait for it.
class PlacesOfRows {
 public:
  // Rows of the table one behind another.
  struct Range {
    std::int64_t begin = 0, end = 0;
    std::int64_t num_used = 0, first_used = 0;  // rows that occur, here and before it
    const std::int32_t* used = nullptr;         // those rows, ascending
    const std::int32_t* starts = nullptr;       // of the places of each row, and their end
    const std::int32_t* order = nullptr;        // places, row by row
  };

  // Lies in the scratch of the first thread.
  PlacesOfRows(const WholeCall& call, std::span<const std::int32_t> ids, std::int64_t rows)
      : ranges_(
            static_cast<std::size_t>(std::clamp<std::int64_t>(rows, 1, std::ssize(call.scratch)))) {
    const auto count = std::ssize(ranges_);
    const std::int64_t room = 2 * std::ssize(ids) + 2 * (rows / count + 2);  // of a range
    call.scratch[0].reserve(count * room * static_cast<std::int64_t>(sizeof(std::int32_t)));
    auto* const memory = reinterpret_cast<std::int32_t*>(call.scratch[0].data());
    call.parallel(count, [&](std::int64_t index, int) {
      ranges_[static_cast<std::size_t>(index)] =
          sort_range(ids, rows * index / count, rows * (index + 1) / count, memory + index * room);
    });
    std::int64_t num_places = 0;
    for (Range& range : ranges_) {
      range.first_used = num_used_;
      num_used_ += range.num_used;
      num_places += range.starts[range.end - range.begin];
    }
    if (num_places == std::ssize(ids)) return;
    for (const std::int32_t id : ids)
      if (id < 0 || id >= rows) fail("id {} is outside the table of {} rows", id, rows);
  }

  std::int64_t num_used() const { return num_used_; }
  const std::vector<Range>& ranges() const { return ranges_; }

  // Sums the rows of `dy` that belong to each used row into `target(u, row)`, u counting used rows.
  template <typename Target>
  void sum(const WholeCall& call, const float* dy, std::int64_t n, bool accumulate,
           Target target) const {
    struct Part {
      const Range* range;
      std::int64_t first, end;  // of the range's used rows
    };
    const std::int64_t grain = std::clamp(num_used_ / kTasks, kLeastRows, kMostRows);
    std::vector<Part> parts;
    for (const Range& range : ranges_)
      for (std::int64_t u = 0; u < range.num_used; u += grain)
        parts.push_back({&range, u, std::min(range.num_used, u + grain)});
    const std::int64_t column_tasks =
        std::clamp<std::int64_t>(kTasks / std::max<std::int64_t>(std::ssize(parts), 1), 1,
                                 std::max<std::int64_t>(n / kLeastColumns, 1));
    call.parallel(std::ssize(parts) * column_tasks, [&](std::int64_t task, int) {
      const auto& [range, first, end] = parts[static_cast<std::size_t>(task / column_tasks)];
      const auto column = [&](std::int64_t part) {
        return part == column_tasks ? n : n / kLeastColumns * part / column_tasks * kLeastColumns;
      };
      const std::int64_t from = column(task % column_tasks);
      const std::int64_t columns = column(task % column_tasks + 1) - from;
      for (std::int64_t u = first; u < end; ++u) {
        const std::int32_t row = range->used[u];
        const std::int32_t* const starts = range->starts + (row - range->begin);
        call.kernels.sum_selected_rows(dy + from, n, range->order + starts[0],
                                       starts[1] - starts[0], columns,
                                       target(range->first_used + u, row) + from, accumulate);
      }
    });
  }

 private:
  // `memory` has room for twice the ids and for twice the rows and one more.
  static Range sort_range(std::span<const std::int32_t> ids, std::int64_t begin, std::int64_t end,
                          std::int32_t* memory) {
    const auto rows = static_cast<std::uint32_t>(end - begin);
    std::int32_t* const places = memory;
    std::int32_t* const order = places + ids.size();
    std::int32_t* const used = order + ids.size();
    std::int32_t* const starts = used + rows;
    const auto row_of = [&](std::int32_t place) {  // at least `rows` where it is none of the range
      return static_cast<std::uint32_t>(ids[static_cast<std::size_t>(place)]) -
             static_cast<std::uint32_t>(begin);
    };
    std::fill(starts, starts + rows + 1, 0);
    std::int64_t count = 0;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(ids.size()); ++i) {
      places[count] = i;
      count += row_of(i) < rows ? 1 : 0;
    }
    for (std::int64_t i = 0; i < count; ++i) ++starts[row_of(places[i])];
    // From how many places a row has to where they end. Given out from the last one on, they leave
    // where they begin.
    std::int64_t num_used = 0;
    std::int32_t before = 0;
    for (std::uint32_t row = 0; row < rows; ++row) {
      used[num_used] = static_cast<std::int32_t>(begin + row);
      num_used += starts[row] != 0 ? 1 : 0;
      starts[row] = before += starts[row];
    }
    starts[rows] = before;
    for (std::int64_t i = count - 1; i >= 0; --i) order[--starts[row_of(places[i])]] = places[i];
    return {begin, end, num_used, 0, used, starts, order};
  }

  std::vector<Range> ranges_;
  std::int64_t num_used_ = 0;
};

PlacesOfRows find_places(const WholeCall& call, std::int64_t rows) {
  const std::int64_t count =
      call.graph.type(call.graph.input(call.node, 1)).num_elements().evaluate(call.symbols);
  return {call,
          {reinterpret_cast<const std::int32_t*>(call.inputs[1]), static_cast<std::size_t>(count)},
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
               [&](std::int64_t, std::int64_t row) { return out + row * n; });
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
               [&](std::int64_t u, std::int64_t) { return out + u * n; });
    auto* const place = reinterpret_cast<std::int32_t*>(call.outputs[1]);
    call.parallel(std::ssize(places.ranges()), [&](std::int64_t index, int) {
      const PlacesOfRows::Range& range = places.ranges()[static_cast<std::size_t>(index)];
      std::fill(place + range.begin, place + range.end, -1);
      for (std::int64_t u = 0; u < range.num_used; ++u)
        place[range.used[u]] = static_cast<std::int32_t>(range.first_used + u);
    });
    *reinterpret_cast<std::int32_t*>(call.outputs[2]) =
        static_cast<std::int32_t>(places.num_used());
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
