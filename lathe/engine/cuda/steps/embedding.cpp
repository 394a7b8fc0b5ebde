#include <algorithm>

#include "lathe/engine/cuda/cuda_step.h"

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

std::int64_t heads_bytes(std::int64_t table_rows) {
  return (table_rows * static_cast<std::int64_t>(sizeof(std::int32_t)) + 255) / 256 * 256;
}

// embedding_gradient(dy, ids), add_embedding_gradient(dy, ids, base), embedding_gradient_rows(dy,
// ids) and gather_rows_gradient(dy, indices, like).
MadeStep make_gradient(const Graph& graph, NodeId id) {
  const bool is_sparse = graph.is(id, "embedding_gradient_rows");
  const bool has_base = graph.is(id, "add_embedding_gradient");
  const Type& result = graph.types(id)[0];
  if (result.dtype != DType::F32 || result.rank() < 1 || !is_integer(graph, graph.input(id, 1)))
    return nullptr;
  Size width(1);
  for (std::size_t axis = 1; axis < result.rank(); ++axis) width *= result.shape[axis];
  const Size table = is_sparse ? graph.types(id)[1].shape[0] : result.shape[0];
  const Size tokens = graph.type(graph.input(id, 1)).num_elements();
  return cuda_step_with_scratch(
      [=](const Graph&, NodeId, const CudaSizes& sizes) {
        const std::int64_t rows = sizes.capacity(table), n = sizes.capacity(width);
        // A table that grows with the batch may be small at first.
        const std::int64_t partial = std::min(rows, cuda::kSmallTable) * n *
                                     cuda::kSmallTableChunks *
                                     static_cast<std::int64_t>(sizeof(float));
        return std::max(heads_bytes(rows), partial);
      },
      [=](const CudaCall& call) {
        cuda::EmbeddingGradientArgs args;
        args.dy = call.input(0);
        args.ids = call.integers(1);
        args.base = has_base ? call.input(2) : nullptr;
        args.y = call.output(0);
        if (is_sparse) {
          args.places = reinterpret_cast<std::int32_t*>(call.outputs[1]);
          args.used = reinterpret_cast<std::int32_t*>(call.outputs[2]);
        }
        args.heads = reinterpret_cast<std::int32_t*>(call.scratch);
        args.partial = reinterpret_cast<float*>(call.scratch);
        args.table_rows = call.sizes.capacity(table);
        args.n = call.sizes.capacity(width);
        args.rows = call.extent(tokens);
        args.fault = call.fault;
        call.kernels.embedding_gradient(args, call.stream);
      });
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
