#include <cstring>

#include "lathe/engine/cpu/step.h"
#include "lathe/engine/cpu/steps/integer/integer_rows.h"
#include "lathe/numerics/codecs/integer_codec.h"
#include "lathe/ops/integer/integer_result.h"

namespace lathe::engine {
namespace {

// Where floats enter an integer graph.
class ToIntegerStep final : public Step {
 public:
  ToIntegerStep(RowSpace space, const numerics::IntegerRange& range, float scale, DType dtype)
      : space_(std::move(space)),
        codec_{.bits = range.width, .low = range.low(), .high = range.high(), .zero = 0},
        scale_(scale),
        dtype_(dtype) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    const std::int64_t n = space_.output_widths[0];
    std::vector<std::int64_t> row(static_cast<std::size_t>(n));
    for (std::int64_t r = 0; r < call.rows; ++r) {
      const float* const x = call.input(0) + r * n;
      for (std::size_t i = 0; i < row.size(); ++i)
        row[i] = codec_.round(x[i] / scale_, Rounding::NearestEven, 0);
      narrow(dtype_, row.data(), n, call.outputs[0] + r * n * size_of(dtype_));
    }
  }

 private:
  RowSpace space_;
  numerics::IntegerCodec codec_;
  float scale_;
  DType dtype_;
};

// Where they leave it.
class FromIntegerStep final : public Step {
 public:
  FromIntegerStep(RowSpace space, std::vector<double> scale, DType dtype)
      : space_(std::move(space)), scale_(std::move(scale)), dtype_(dtype) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    const std::int64_t n = space_.output_widths[0];
    std::vector<std::int64_t> row(static_cast<std::size_t>(n));
    for (std::int64_t r = 0; r < call.rows; ++r) {
      widen(dtype_, call.inputs[0] + r * n * size_of(dtype_), n, row.data());
      float* const y = call.output(0) + r * n;
      for (std::size_t i = 0; i < row.size(); ++i)
        y[i] = static_cast<float>(static_cast<double>(row[i]) * scale_[i % scale_.size()]);
    }
  }

 private:
  RowSpace space_;
  std::vector<double> scale_;
  DType dtype_;
};

std::unique_ptr<Step> make_to_integer(const Graph& graph, NodeId id) {
  const std::optional<IntegerRows> y = integer_rows(graph.types(id)[0]);
  if (!y) return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  return std::make_unique<ToIntegerStep>(
      RowSpace{y->rows, {y->width}, {y->width}}, ops::integer_range(attributes),
      static_cast<float>(attributes.reals(ops::kScale)[0]), y->dtype);
}

std::unique_ptr<Step> make_from_integer(const Graph& graph, NodeId id) {
  const std::optional<IntegerRows> x = integer_rows(graph.type(graph.input(id, 0)));
  if (!x) return nullptr;
  return std::make_unique<FromIntegerStep>(RowSpace{x->rows, {x->width}, {x->width}},
                                           graph.attribute(id).reals(ops::kScale), x->dtype);
}

const Register to_integer{CpuKernel{"to_integer", make_to_integer}};
const Register from_integer{CpuKernel{"from_integer", make_from_integer}};

}  // namespace
}  // namespace lathe::engine
