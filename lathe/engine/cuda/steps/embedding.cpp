#include <algorithm>

#include "lathe/engine/cuda/cuda_row_program.h"

namespace lathe::engine {
namespace {

using MadeStep = std::unique_ptr<CudaStep>;

// embedding(ids, table) and embedding_sum(ids, table, ids, table, ...).
MadeStep make_embedding(const Graph& graph, NodeId id) {
  const std::optional<CudaRows> y = cuda_rows(graph.types(id)[0]);
  const std::size_t tables = graph.inputs(id).size() / 2;
  if (!y || tables > cuda::kMostTables) return nullptr;
  for (std::size_t t = 0; t < tables; ++t)
    if (!is_integer(graph, graph.input(id, 2 * t)) ||
        !is_float(graph, graph.input(id, 2 * t + 1)) ||
        !graph.type(graph.input(id, 2 * t + 1)).shape[0].is_constant())
      return nullptr;
  if (fits_row_program(y->width))
    return cuda_row_step({y->rows, y->width, {}}, [tables](CudaRowProgram& program,
                                                           const CudaCall& call) {
      int sum = -1;
      for (std::size_t t = 0; t < tables; ++t) {
        const cuda::RowInstruction row{.kind = cuda::RowInstruction::Kind::LoadOfTable,
                                       .memory = call.input(2 * t + 1),
                                       .ids = call.integers(2 * t),
                                       .table_rows = call.input_type(2 * t + 1).shape[0].constant(),
                                       .fault = call.fault};
        if (tables == 1) return program.add(call, row, 0);
        const int added = program.add(row);
        const cuda::RowInstruction pair{
            .kind = cuda::RowInstruction::Kind::Pair, .a = sum, .b = added};
        if (t + 1 == tables)
          program.add(call, pair, 0);
        else
          sum = t == 0 ? added : program.add(pair);
      }
    });
  return cuda_step([tables, rows = y->rows, n = y->width](const CudaCall& call) {
    cuda::EmbeddingArgs args;
    args.num_tables = static_cast<std::int32_t>(tables);
    for (std::size_t t = 0; t < tables; ++t) {
      args.ids[t] = call.integers(2 * t);
      args.tables[t] = call.input(2 * t + 1);
      args.table_rows[t] = call.input_type(2 * t + 1).shape[0].constant();
    }
    args.y = call.output(0);
    args.n = n;
    args.rows = call.extent(rows);
    args.fault = call.fault;
    call.kernels.embedding(args, call.stream);
  });
}

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// Of the gradient of a table: dy and ids, perhaps the base that the sums are added to.
struct TableGradient {
  bool is_sparse, has_base;
  Size table, width, tokens;
};

// All that are ready share their launches.
class TableGradientStep final : public CudaStep {
 public:
  explicit TableGradientStep(TableGradient of) : of_(std::move(of)) {}
  CudaGroup group() const override { return CudaGroup::Tables; }
  bool can_run_beside() const override { return true; }
  // The order of the ids needs nothing but them, and clears the places.
  std::optional<CudaEarlyPart> early_part() const override {
    return CudaEarlyPart{1, of_.is_sparse ? std::optional<std::size_t>(1) : std::nullopt};
  }
  std::int64_t scratch_bytes(const Graph&, NodeId, const CudaSizes& sizes) const override {
    const std::int64_t tokens = sizes.capacity(of_.tokens);
    return order_bytes(tokens) + sorted_bytes(tokens) +
           aligned((tokens / cuda::kTokenSegment + 1) * sizes.capacity(of_.width) * 4);
  }
  void add_to(CudaGroupTable& table, const CudaCall& call) const override {
    cuda::EmbeddingGradientArgs args;
    args.dy = call.input(0);
    args.ids = call.integers(1);
    args.base = of_.has_base ? call.input(2) : nullptr;
    args.y = call.output(0);
    if (of_.is_sparse) {
      args.places = reinterpret_cast<std::int32_t*>(call.outputs[1]);
      args.used = reinterpret_cast<std::int32_t*>(call.outputs[2]);
    }
    args.table_rows = call.sizes.capacity(of_.table);
    args.n = call.sizes.capacity(of_.width);
    args.rows = call.extent(of_.tokens);
    std::byte* const scratch = call.scratch + table.used_scratch;
    args.order = reinterpret_cast<std::int32_t*>(scratch);
    args.sorted = reinterpret_cast<std::uint64_t*>(scratch + order_bytes(args.rows.capacity));
    args.partial = reinterpret_cast<float*>(scratch + order_bytes(args.rows.capacity) +
                                            sorted_bytes(args.rows.capacity));
    args.fault = call.fault;
    table.used_scratch += scratch_bytes(call.graph, call.node, call.sizes);
    table.tables.push_back(args);
  }

 private:
  static std::int64_t order_bytes(std::int64_t tokens) {
    return aligned(tokens * static_cast<std::int64_t>(sizeof(std::int32_t)));
  }
  static std::int64_t sorted_bytes(std::int64_t tokens) {
    return aligned(tokens * static_cast<std::int64_t>(sizeof(std::uint64_t)));
  }
  TableGradient of_;
};

// A table of few rows, whose sums are left in parts.
class SmallTableStep final : public CudaStep {
 public:
  explicit SmallTableStep(TableGradient of) : of_(std::move(of)) {}
  std::vector<CudaParts> parts() const override {
    return {{0, of_.tokens, [](std::int64_t) { return cuda::kSmallTableParts; }}};
  }
  void launch(const CudaCall& call) const override {
    call.kernels.small_table_gradient({.dy = call.input(0),
                                       .ids = call.integers(1),
                                       .parts = reinterpret_cast<float*>(call.parts[0]),
                                       .table_rows = of_.table.constant(),
                                       .n = call.sizes.capacity(of_.width),
                                       .rows = call.extent(of_.tokens),
                                       .fault = call.fault},
                                      call.stream);
  }

 private:
  TableGradient of_;
};

// embedding_gradient(dy, ids), add_embedding_gradient(dy, ids, base), embedding_gradient_rows(dy,
// ids) and gather_rows_gradient(dy, indices, like).
MadeStep make_gradient(const Graph& graph, NodeId id) {
  TableGradient of{graph.is(id, "embedding_gradient_rows"),
                   graph.is(id, "add_embedding_gradient"),
                   {},
                   Size(1),
                   graph.type(graph.input(id, 1)).num_elements()};
  const Type& result = graph.types(id)[0];
  if (result.dtype != DType::F32 || result.rank() < 1 || !is_integer(graph, graph.input(id, 1)))
    return nullptr;
  for (std::size_t axis = 1; axis < result.rank(); ++axis) of.width *= result.shape[axis];
  of.table = of.is_sparse ? graph.types(id)[1].shape[0] : result.shape[0];
  if (!of.is_sparse && !of.has_base && of.table.is_constant() &&
      of.table.constant() <= cuda::kSmallTable)
    return std::make_unique<SmallTableStep>(std::move(of));
  return std::make_unique<TableGradientStep>(std::move(of));
}

MadeStep make_gather(const Graph& graph, NodeId id) {
  if (!is_integer(graph, graph.input(id, 1))) return nullptr;
  return cuda_step([](const CudaCall& call) {
    const Type& x = call.input_type(0);
    std::int64_t bytes = size_of(x.dtype);
    for (std::size_t axis = 1; axis < x.rank(); ++axis) bytes *= call.sizes.capacity(x.shape[axis]);
    call.kernels.gather_rows({.x = call.inputs[0],
                              .indices = call.integers(1),
                              .y = call.outputs[0],
                              .bytes = bytes,
                              .x_rows = call.sizes.capacity(x.shape[0]),
                              .rows = call.extent(call.input_type(1).num_elements()),
                              .fault = call.fault},
                             call.stream);
  });
}

const Register embedding{CudaKernel{"embedding", make_embedding, always_takes_padding}};
const Register embedding_sum{CudaKernel{"embedding_sum", make_embedding, always_takes_padding}};
const Register gradient{CudaKernel{"embedding_gradient", make_gradient, always_takes_padding}};
const Register added{CudaKernel{"add_embedding_gradient", make_gradient, always_takes_padding}};
const Register sparse{CudaKernel{"embedding_gradient_rows", make_gradient, always_takes_padding}};
const Register scatter{CudaKernel{"gather_rows_gradient", make_gradient, always_takes_padding}};
const Register gather{CudaKernel{"gather_rows", make_gather, always_takes_padding}};

}  // namespace
}  // namespace lathe::engine
