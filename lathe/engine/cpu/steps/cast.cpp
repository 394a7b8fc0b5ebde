#include <bit>
#include <cmath>

#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// cast(x) between float and bfloat16, which is the upper half of a float; other pairs of dtypes run
// by definition. Loops without branches, which compilers turn into vectors of any processor.

void narrow(const float* x, std::int64_t count, std::uint16_t* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(x[i]);
    // To nearest, ties to even; the carry may reach the exponent, but must not make a NaN infinite.
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const std::uint32_t quiet = (bits >> 16) | 0x40u;
    y[i] = static_cast<std::uint16_t>(std::isnan(x[i]) ? quiet : rounded);
  }
}

void widen(const std::uint16_t* x, std::int64_t count, float* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = std::uint32_t{x[i]} << 16;
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    y[i] = std::bit_cast<float>(bits | (is_nan ? 0x400000u : 0u));  // arithmetic gives quiet ones
  }
}

class CastStep final : public Step {
 public:
  CastStep(RowSpace space, bool is_narrowing)
      : space_(std::move(space)), is_narrowing_(is_narrowing) {}
  const RowSpace* rows() const override { return &space_; }
  void run_rows(const RowCall& call) const override {
    const std::int64_t count = call.rows * space_.output_widths[0];
    if (is_narrowing_)
      narrow(call.input(0), count, reinterpret_cast<std::uint16_t*>(call.outputs[0]));
    else
      widen(reinterpret_cast<const std::uint16_t*>(call.inputs[0]), count, call.output(0));
  }

 private:
  RowSpace space_;
  bool is_narrowing_;
};

std::unique_ptr<Step> make_cast(const Graph& graph, NodeId id) {
  const DType from = graph.type(graph.input(id, 0)).dtype;
  Type type = graph.types(id)[0];
  const bool is_narrowing = from == DType::F32 && type.dtype == DType::BF16;
  if (!is_narrowing && !(from == DType::BF16 && type.dtype == DType::F32)) return nullptr;
  type.dtype = DType::F32;  // rows are those of floats, so that neighbours share a stage
  const RowShape rows = row_shape(type).value_or(RowShape{type.num_elements(), 1});
  return std::make_unique<CastStep>(RowSpace{rows.rows, {rows.width}, {rows.width}}, is_narrowing);
}

const Register cast{CpuKernel{"cast", make_cast}};

}  // namespace
}  // namespace lathe::engine
