#include "lathe/engine/cuda/cuda_step.h"

namespace lathe::engine {

cuda::Extent CudaSizes::extent(const Size& size) const {
  cuda::Extent result;
  result.capacity = size.evaluate(bucket);
  for (const auto& [symbol, place] : real) {
    if (!size.depends_on(symbol)) continue;
    check(result.symbol == nullptr, "a size of one rounded symbol at most");
    SymbolValues values = bucket;
    values[symbol] = 0;
    result.offset = size.evaluate(values);
    values[symbol] = 1;
    result.scale = size.evaluate(values) - result.offset;
    result.symbol = place;
  }
  return result;
}

cuda::Integers CudaCall::integers(std::size_t i) const {
  if (!has(i)) return {};
  return {inputs[i], input_type(i).dtype == DType::I64};
}

void add_scalar(CudaGroupTable& table, const CudaCall& call, cuda::ScalarOperation operation) {
  const auto maker = [&](std::size_t input) {
    if (!call.has(input)) return -1;
    const auto found = table.scalar_of.find(call.input_slots[input]);
    return found == table.scalar_of.end() ? -1 : found->second;
  };
  operation.a = call.input(0);
  operation.b = call.input(1);
  operation.a_from = maker(0);
  operation.b_from = maker(1);
  operation.y = call.output(0);
  const auto level_of = [&](std::int32_t from) {
    return from < 0 ? -1 : table.scalars[static_cast<std::size_t>(from)].level;
  };
  operation.continues = operation.kind == cuda::ScalarOperation::Kind::Pair &&
                        operation.pair == cuda::Pair::Add && operation.a_from >= 0 &&
                        operation.a_from + 1 == static_cast<int>(table.scalars.size()) &&
                        operation.b_from < 0;
  operation.level = std::max(level_of(operation.a_from), level_of(operation.b_from)) +
                    (operation.continues ? 0 : 1);
  table.scalar_of[call.output_slots[0]] = static_cast<int>(table.scalars.size());
  table.scalars.push_back(operation);
}

std::unique_ptr<CudaStep> make_cuda_step(const Graph& graph, NodeId id) {
  const CudaKernel* const kernel = Registry<CudaKernel>::instance().find(graph.op(id).name);
  return kernel == nullptr ? nullptr : kernel->make(graph, id);
}

bool is_float(const Graph& graph, Value value) {
  return graph.type(value).dtype == DType::F32;
}

bool is_integer(const Graph& graph, Value value) {
  const DType dtype = graph.type(value).dtype;
  return dtype == DType::I32 || dtype == DType::I64;
}

bool counts_sequences(const Graph& graph, const Size& rows) {
  if (rows.is_constant()) return false;
  for (const NodeId id : graph.topological_order()) {
    if (!graph.is(id, "input") || !is_integer(graph, {id, 0})) continue;
    const Type& type = graph.types(id)[0];
    if (type.rank() == 1 && type.shape[0] == rows + Size(1)) return true;
  }
  return false;
}

std::optional<CudaRows> cuda_rows(const Type& type) {
  if (type.dtype != DType::F32 || type.shape.empty() || !type.shape.back().is_constant())
    return std::nullopt;
  CudaRows result{Size(1), type.shape.back().constant()};
  if (result.width == 0) return std::nullopt;
  for (std::size_t axis = 0; axis + 1 < type.rank(); ++axis) result.rows *= type.shape[axis];
  return result;
}

}  // namespace lathe::engine
