#include <cstring>

#include "lathe/engine/cpu/step.h"
#include "lathe/engine/cpu/steps/integer/integer_rows.h"

namespace lathe::engine {
namespace {

// embedding and embedding_sum: rows looked up in one to three tables and added.
class EmbeddingStep final : public Step {
 public:
  EmbeddingStep(RowSpace space, std::vector<std::int64_t> table_rows)
      : space_(std::move(space)), table_rows_(std::move(table_rows)) {}
  const RowSpace* rows() const override { return &space_; }

  void run_rows(const RowCall& call) const override {
    EmbeddingSumArgs args{.rows = call.rows,
                          .n = space_.output_widths[0],
                          .num_tables = static_cast<int>(table_rows_.size()),
                          .tables = {},
                          .ids = {},
                          .y = call.output(0),
                          .y_stride = space_.output_widths[0]};
    for (std::size_t t = 0; t < table_rows_.size(); ++t) {
      args.ids[t] = reinterpret_cast<const std::int32_t*>(call.inputs[2 * t]);
      args.tables[t] = call.input(2 * t + 1);
      for (std::int64_t r = 0; r < call.rows; ++r)
        if (args.ids[t][r] < 0 || args.ids[t][r] >= table_rows_[t])
          fail("id {} is outside the table of {} rows", args.ids[t][r], table_rows_[t]);
    }
    call.kernels.embedding_sum(args);
  }

 private:
  RowSpace space_;
  std::vector<std::int64_t> table_rows_;
};

// embedding of integers: whole rows are copied.
class IntegerEmbeddingStep final : public Step {
 public:
  IntegerEmbeddingStep(RowSpace space, std::int64_t table_rows, std::int64_t row_bytes)
      : space_(std::move(space)), table_rows_(table_rows), row_bytes_(row_bytes) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    const auto* const ids = reinterpret_cast<const std::int32_t*>(call.inputs[0]);
    for (std::int64_t r = 0; r < call.rows; ++r) {
      if (ids[r] < 0 || ids[r] >= table_rows_)
        fail("id {} is outside the table of {} rows", ids[r], table_rows_);
      std::memcpy(call.outputs[0] + r * row_bytes_, call.inputs[1] + ids[r] * row_bytes_,
                  static_cast<std::size_t>(row_bytes_));
    }
  }

 private:
  RowSpace space_;
  std::int64_t table_rows_, row_bytes_;
};

std::unique_ptr<Step> make_integer_embedding(const Graph& graph, NodeId id) {
  const std::optional<IntegerRows> y = integer_rows(graph.types(id)[0]);
  const Type& table = graph.type(graph.input(id, 1));
  if (!y || graph.type(graph.input(id, 0)).dtype != DType::I32 || !table.shape[0].is_constant())
    return nullptr;
  return std::make_unique<IntegerEmbeddingStep>(RowSpace{y->rows, {1, 0}, {y->width}},
                                                table.shape[0].constant(),
                                                y->width * size_of(table.dtype));
}

std::unique_ptr<Step> make_embedding(const Graph& graph, NodeId id) {
  if (!is_floating(graph.types(id)[0].dtype)) return make_integer_embedding(graph, id);
  const std::optional<RowShape> y = row_shape(graph.types(id)[0]);
  if (!y) return nullptr;
  RowSpace space{y->rows, {}, {y->width}};
  std::vector<std::int64_t> table_rows;
  for (std::size_t i = 0; i + 1 < graph.inputs(id).size(); i += 2) {
    const Type& ids = graph.type(graph.input(id, i));
    const Type& table = graph.type(graph.input(id, i + 1));
    if (ids.dtype != DType::I32 || table.dtype != DType::F32 || !table.shape[0].is_constant())
      return nullptr;
    space.input_widths.push_back(1);
    space.input_widths.push_back(0);
    table_rows.push_back(table.shape[0].constant());
  }
  if (table_rows.size() > kMaxEmbeddingTables) return nullptr;
  return std::make_unique<EmbeddingStep>(std::move(space), std::move(table_rows));
}

const Register embedding{CpuKernel{"embedding", make_embedding}};
const Register embedding_sum{CpuKernel{"embedding_sum", make_embedding}};

}  // namespace
}  // namespace lathe::engine
