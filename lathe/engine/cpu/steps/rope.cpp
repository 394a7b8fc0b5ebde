#include <cmath>

#include "lathe/engine/cpu/step.h"
#include "lathe/ops/rope_turn.h"

namespace lathe::engine {
namespace {

// The cosines and sines of position * frequency. Angles reach thousands of radians, where a
// float keeps no fraction worth having, so they are made in double: that of a position is the sum
// of those of its multiple of 64 and its rest, which two small tables hold.
class RopeAngles {
 public:
  explicit RopeAngles(std::vector<double> frequencies)
      : half_(static_cast<std::int64_t>(frequencies.size())), frequencies_(std::move(frequencies)) {
    for (std::int64_t position = 0; position < kBase; ++position) {
      append(rest_, position);
      append(multiple_, position * kBase);
    }
  }

  // Writes half() cosines and as many sines, those times `direction`.
  void write(std::int64_t position, float direction, float* cosines, float* sines) const {
    if (position < 0 || position >= kBase * kBase) {
      for (std::int64_t i = 0; i < half_; ++i) {
        const double angle =
            static_cast<double>(position) * frequencies_[static_cast<std::size_t>(i)];
        cosines[i] = static_cast<float>(std::cos(angle));
        sines[i] = direction * static_cast<float>(std::sin(angle));
      }
      return;
    }
    const Turn* const a = multiple_.data() + position / kBase * half_;
    const Turn* const b = rest_.data() + position % kBase * half_;
    for (std::int64_t i = 0; i < half_; ++i) {
      cosines[i] = static_cast<float>(a[i].cosine * b[i].cosine - a[i].sine * b[i].sine);
      sines[i] = direction * static_cast<float>(a[i].sine * b[i].cosine + a[i].cosine * b[i].sine);
    }
  }
  std::int64_t half() const { return half_; }

 private:
  static constexpr std::int64_t kBase = 64;
  struct Turn {
    double cosine, sine;
  };
  void append(std::vector<Turn>& turns, std::int64_t position) const {
    for (const double frequency : frequencies_) {
      const double angle = static_cast<double>(position) * frequency;
      turns.push_back({std::cos(angle), std::sin(angle)});
    }
  }

  std::int64_t half_;
  std::vector<double> frequencies_;
  std::vector<Turn> rest_, multiple_;  // [position][pair]
};

// rope(x, positions) and rope_gradient(dy, positions), which turns back.
class RopeStep final : public Step {
 public:
  RopeStep(RowSpace space, RopeAngles angles, std::int64_t heads, bool interleaved, float direction,
           bool has_wide_positions)
      : space_(std::move(space)),
        angles_(std::move(angles)),
        heads_(heads),
        interleaved_(interleaved),
        direction_(direction),
        has_wide_positions_(has_wide_positions) {}
  const RowSpace* rows() const override { return &space_; }

  void run_rows(const RowCall& call) const override {
    const std::int64_t half = angles_.half(), n = space_.output_widths[0];
    std::vector<float> turns(static_cast<std::size_t>(2 * call.rows * half));
    float* const cosines = turns.data();
    float* const sines = cosines + call.rows * half;
    for (std::int64_t row = 0; row < call.rows; ++row)
      angles_.write(position(call, row), direction_, cosines + row * half, sines + row * half);
    call.kernels.rope_rows({.rows = call.rows,
                            .heads = heads_,
                            .half = half,
                            .interleaved = interleaved_,
                            .x = call.input(0),
                            .x_stride = n,
                            .cosines = cosines,
                            .sines = sines,
                            .y = call.output(0),
                            .y_stride = n});
  }

 private:
  std::int64_t position(const RowCall& call, std::int64_t row) const {
    return has_wide_positions_ ? reinterpret_cast<const std::int64_t*>(call.inputs[1])[row]
                               : reinterpret_cast<const std::int32_t*>(call.inputs[1])[row];
  }

  RowSpace space_;
  RopeAngles angles_;
  std::int64_t heads_;
  bool interleaved_;
  float direction_;
  bool has_wide_positions_;
};

std::unique_ptr<Step> make_rope(const Graph& graph, NodeId id) {
  const std::optional<RowShape> x = row_shape(graph.types(id)[0]);
  const DType positions = graph.type(graph.input(id, 1)).dtype;
  if (!x || (positions != DType::I32 && positions != DType::I64)) return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  const std::int64_t heads = attributes.integer("heads");
  return std::make_unique<RopeStep>(RowSpace{x->rows, {x->width, 1}, {x->width}},
                                    RopeAngles(ops::rope_frequencies(attributes, x->width / heads)),
                                    heads, attributes.flag("interleaved"),
                                    graph.is(id, "rope") ? 1.0f : -1.0f, positions == DType::I64);
}

const Register rope{CpuKernel{"rope", make_rope}};
const Register rope_gradient{CpuKernel{"rope_gradient", make_rope}};

}  // namespace
}  // namespace lathe::engine
