#include "lathe/engine/cpu/steps/integer/row_map.h"

namespace lathe::engine {
namespace {

class IntegerRowStep final : public Step {
 public:
  struct Operand {
    DType dtype = DType::I8;
    std::int64_t count = 0;  // elements of a row, or of all; 0: absent
    bool is_row = false;
  };

  IntegerRowStep(RowSpace space, std::vector<Operand> operands, DType result,
                 std::function<void(const IntegerRow&)> function)
      : space_(std::move(space)),
        operands_(std::move(operands)),
        result_(result),
        function_(std::move(function)) {}
  const RowSpace* rows() const override { return &space_; }

  void run_rows(const RowCall& call) const override {
    const std::int64_t width = space_.output_widths[0];
    std::vector<std::vector<std::int64_t>> values(operands_.size());
    std::vector<std::int64_t> result(static_cast<std::size_t>(width));
    IntegerRow row{.operands = {}, .result = result};
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      values[i].resize(static_cast<std::size_t>(operands_[i].count));
      row.operands.emplace_back(values[i]);
      if (!operands_[i].is_row && operands_[i].count > 0)
        widen(operands_[i].dtype, call.inputs[i], operands_[i].count, values[i].data());
    }
    for (std::int64_t r = 0; r < call.rows; ++r) {
      for (std::size_t i = 0; i < operands_.size(); ++i)
        if (operands_[i].is_row)
          widen(operands_[i].dtype, call.inputs[i] + r * width * size_of(operands_[i].dtype), width,
                values[i].data());
      function_(row);
      narrow(result_, result.data(), width, call.outputs[0] + r * width * size_of(result_));
    }
  }

 private:
  RowSpace space_;
  std::vector<Operand> operands_;
  DType result_;
  std::function<void(const IntegerRow&)> function_;
};

}  // namespace

std::unique_ptr<Step> make_integer_row_step(const Graph& graph, NodeId id,
                                            const std::vector<bool>& is_row,
                                            std::function<void(const IntegerRow&)> function) {
  const std::optional<IntegerRows> y = integer_rows(graph.types(id)[0]);
  if (!y) return nullptr;
  RowSpace space{y->rows, {}, {y->width}};
  std::vector<IntegerRowStep::Operand> operands;
  for (std::size_t i = 0; i < graph.inputs(id).size(); ++i) {
    if (graph.inputs(id)[i].is_none()) {
      operands.push_back({});
      space.input_widths.push_back(0);
      continue;
    }
    const Type& type = graph.type(graph.input(id, i));
    const std::optional<IntegerRows> x = integer_rows(type);
    if (!x || (is_row[i] && type.shape != graph.types(id)[0].shape)) return nullptr;
    if (!is_row[i] && !type.num_elements().is_constant()) return nullptr;
    operands.push_back({.dtype = x->dtype,
                        .count = is_row[i] ? y->width : type.num_elements().constant(),
                        .is_row = is_row[i]});
    space.input_widths.push_back(is_row[i] ? y->width : 0);
  }
  return std::make_unique<IntegerRowStep>(std::move(space), std::move(operands), y->dtype,
                                          std::move(function));
}

}  // namespace lathe::engine
