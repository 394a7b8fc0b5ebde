#include <algorithm>

#include "lathe/core/number_format.h"
#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

enum Operand : std::size_t { kIds, kCodes, kLocal, kScale, kZero };

// packed_embedding: the rows that are looked up are decoded, the table never is.
class PackedEmbeddingStep final : public Step {
 public:
  PackedEmbeddingStep(RowSpace space, std::int64_t table_rows, const std::string& format)
      : space_(std::move(space)), table_rows_(table_rows), format_(parse_format(format)) {}

  const RowSpace* rows() const override { return &space_; }

  void run_rows(const RowCall& call) const override {
    const std::int64_t columns = space_.output_widths[0];
    const auto* const ids = reinterpret_cast<const std::int32_t*>(call.inputs[kIds]);
    const auto operand = [&](std::size_t i) {
      return i < call.inputs.size() ? call.inputs[i] : nullptr;
    };
    const bool is_one_scale = format_->facts().granularity == Granularity::Tensor;
    const std::int64_t given = format_->num_given_scales(1, columns);
    EncodedMatrix row{.rows = 1, .columns = columns, .codes = {}, .scales = {}};
    // The bytes of a row of a table, or all there are where rows have none of their own.
    const auto take = [&](std::size_t i, std::int64_t bytes, std::int64_t id,
                          std::vector<std::uint8_t>& to) {
      const auto* const from = reinterpret_cast<const std::uint8_t*>(operand(i));
      if (from != nullptr) to.assign(from + id * bytes, from + (id + 1) * bytes);
    };
    const auto floats = [&](std::size_t i, std::int64_t id) -> const float* {
      const auto* const from = reinterpret_cast<const float*>(operand(i));
      return from == nullptr ? nullptr : from + id * given;
    };
    for (std::int64_t r = 0; r < call.rows; ++r) {
      const std::int64_t id = ids[r];
      if (id < 0 || id >= table_rows_)
        fail("id {} is outside the table of {} rows", id, table_rows_);
      const std::int64_t scale_id = is_one_scale ? 0 : id;
      take(kCodes, format_->code_bytes(columns), id, row.codes);
      take(kLocal, format_->scale_bytes(columns), scale_id, row.scales);
      format_->decode(row, floats(kScale, scale_id), floats(kZero, scale_id),
                      call.output(0) + r * columns);
    }
  }

  KernelChoice choice() const override { return {format_->facts().text, "packed"}; }

 private:
  RowSpace space_;
  std::int64_t table_rows_;
  std::shared_ptr<const NumberFormat> format_;
};

std::unique_ptr<Step> make_packed_embedding(const Graph& graph, NodeId id) {
  const std::optional<RowShape> y = row_shape(graph.types(id)[0]);
  const Type& codes = graph.type(graph.input(id, kCodes));
  if (!y || graph.type(graph.input(id, kIds)).dtype != DType::I32 || !codes.shape[0].is_constant())
    return nullptr;
  const std::string format = graph.attribute(id).text("format");
  if (parse_format(format)->facts().block_rows != 1) return nullptr;  // rows share their scales
  RowSpace space{y->rows, {1, 0, 0, 0, 0}, {y->width}};
  space.input_widths.resize(graph.inputs(id).size());
  return std::make_unique<PackedEmbeddingStep>(std::move(space), codes.shape[0].constant(), format);
}

const Register packed_embedding{CpuKernel{"packed_embedding", make_packed_embedding}};

}  // namespace
}  // namespace lathe::engine
