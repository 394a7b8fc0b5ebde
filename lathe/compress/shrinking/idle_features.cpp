#include "lathe/compress/shrinking/idle_features.h"

#include <algorithm>
#include <map>

#include "lathe/compress/shrinking/masked_elements.h"
#include "lathe/core/role.h"
#include "lathe/ops/channel_matrix.h"
#include "lathe/ops/evaluate_parameter.h"
#include "lathe/ops/weight_layout.h"

namespace lathe::compress {
namespace {

// Which rows and columns of a layer's weight, as [outputs, inputs], are masked as a whole.
struct MaskedLines {
  std::vector<bool> rows, columns;
};

MaskedLines masked_lines(const Graph& graph, const State& state, NodeId layer) {
  const Value weight = graph.input(layer, operand_index(graph, layer, OperandRole::Weight));
  const Tensor value = ops::evaluate_parameter(graph, state, weight);
  const std::vector<bool> masked = masked_elements(graph, state, weight, value);
  Tensor flags(DType::F32, value.dims());
  std::ranges::copy(masked, flags.mutable_data<float>().begin());
  const std::int64_t axis =
      ops::simplified_axis(static_cast<std::int64_t>(value.rank()), ops::weight_axis(graph, layer));
  const Tensor matrix = ops::to_matrix(flags, axis);
  const std::span<const float> elements = matrix.data<float>();
  const auto columns = static_cast<std::size_t>(matrix.dims().back());
  const std::size_t rows = columns == 0 ? 0 : elements.size() / columns;
  MaskedLines lines{std::vector(rows, true), std::vector(columns, true)};
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      if (elements[r * columns + c] == 0) lines.rows[r] = lines.columns[c] = false;
  return lines;
}

class ZeroTracer {
 public:
  ZeroTracer(const Graph& graph, const State& state, const Structure& structure,
             const std::map<NodeId, MaskedLines>& masked)
      : graph_(graph), state_(state), structure_(structure) {
    for (const FeatureMaker& maker : structure.makers) {
      std::vector<bool> zero = masked.at(maker.layer).rows;
      if (const auto operand = find_operand(graph, maker.layer, OperandRole::Bias)) {
        const Tensor bias =
            ops::evaluate_parameter(graph, state, graph.input(maker.layer, *operand));
        for (std::size_t i = 0; i < zero.size(); ++i)
          zero[i] = zero[i] && bias.at(static_cast<std::int64_t>(i)) == 0;
      }
      zeros_[{maker.layer, 0}] = std::move(zero);
    }
  }

  // Which features of a value are zero whatever the model reads.
  const std::vector<bool>& zeros(Value value) {
    if (const auto known = zeros_.find(value); known != zeros_.end()) return known->second;
    std::vector<bool> result = compute(value);
    return zeros_[value] = std::move(result);
  }

 private:
  std::vector<bool> compute(Value value) {
    const NodeId id = value.node;
    std::vector<bool> none(static_cast<std::size_t>(graph_.type(value).axis(-1).constant()), false);
    if (id == structure_.attention) return of_attention();
    if (graph_.is(id, "split")) return of_split(value);
    if (graph_.op(id).is_identity_in_inference) return zeros(graph_.input(id, 0));
    const bool is_rounding = graph_.is(id, "quantize");
    if (!is_rounding && !graph_.op(id).is_elementwise) return none;
    // A product is zero where one factor is; anything else where all operands are and zero is what
    // comes of it.
    const bool is_product = graph_.is(id, "mul");
    std::vector<bool> result;
    for (std::size_t i = 0; i < (is_rounding ? 1 : graph_.inputs(id).size()); ++i) {
      const Value operand = graph_.inputs(id)[i];
      if (operand.is_none() || !is_feature(operand)) continue;
      const std::vector<bool> part = zeros(operand);
      if (result.empty()) {
        result = part;
        continue;
      }
      for (std::size_t k = 0; k < result.size(); ++k)
        result[k] = is_product ? result[k] || part[k] : result[k] && part[k];
    }
    return is_product || keeps_zero(id) ? result : none;
  }

  bool is_feature(Value value) const {
    return zeros_.contains(value) ||
           std::ranges::find(structure_.between, value.node) != structure_.between.end();
  }

  // Heads are weighted sums of contents that queries share.
  std::vector<bool> of_attention() {
    const std::vector<bool> contents = zeros(graph_.input(
        structure_.attention, operand_index(graph_, structure_.attention, OperandRole::Content)));
    const std::int64_t sharing = structure_.heads / structure_.shared_heads;
    std::vector<bool> result;
    for (std::int64_t head = 0; head < structure_.heads; ++head)
      for (std::int64_t i = 0; i < structure_.head_size; ++i)
        result.push_back(
            contents[static_cast<std::size_t>(head / sharing * structure_.head_size + i)]);
    return result;
  }

  std::vector<bool> of_split(Value value) {
    const std::vector<bool> all = zeros(graph_.input(value.node, 0));
    const std::vector<std::int64_t> sizes = graph_.attribute(value.node).integers("sizes");
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(value.index); ++i) begin += sizes[i];
    const auto first = all.begin() + begin;
    return {first, first + sizes[static_cast<std::size_t>(value.index)]};
  }

  // What the op itself makes of zeros.
  bool keeps_zero(NodeId id) const {
    const Tensor zero(DType::F32, {1});
    std::vector<Tensor> others(graph_.inputs(id).size());
    std::vector<const Tensor*> inputs;
    for (std::size_t i = 0; i < graph_.inputs(id).size(); ++i) {
      const Value operand = graph_.inputs(id)[i];
      if (operand.is_none()) {
        inputs.push_back(nullptr);
      } else if (is_feature(operand)) {
        inputs.push_back(&zero);
      } else {
        others[i] = ops::evaluate_parameter(graph_, state_, operand);
        inputs.push_back(&others[i]);
      }
    }
    std::vector<Tensor> outputs{zero};
    outputs[0].mutable_data<float>();
    graph_.op(id).reference({graph_.attribute(id), inputs, outputs});
    return outputs[0].at(0) == 0;
  }

  const Graph& graph_;
  const State& state_;
  const Structure& structure_;
  std::map<Value, std::vector<bool>> zeros_;
};

}  // namespace

IdleFeatures find_idle_features(const Graph& graph, const State& state,
                                const Structure& structure) {
  std::map<NodeId, MaskedLines> masked;
  for (const FeatureMaker& maker : structure.makers)
    if (!masked.contains(maker.layer))
      masked[maker.layer] = masked_lines(graph, state, maker.layer);
  for (const NodeId reader : structure.readers) masked[reader] = masked_lines(graph, state, reader);

  ZeroTracer tracer(graph, state, structure, masked);
  const auto features = static_cast<std::size_t>(structure.features);
  std::vector<bool> any_column(features, false);
  IdleFeatures result{.idle = std::vector(features, true),
                      .read_elsewhere = std::vector(features, false),
                      .other_readers = {},
                      .constant = std::vector(features, !structure.is_attention())};
  std::vector<std::vector<bool>> without;  // by reader
  for (const NodeId reader : structure.readers) {
    const std::vector<bool>& columns = masked.at(reader).columns;
    without.push_back(
        tracer.zeros(graph.input(reader, operand_index(graph, reader, OperandRole::Input))));
    for (std::size_t i = 0; i < features; ++i) {
      any_column[i] = any_column[i] || columns[i];
      without.back()[i] = without.back()[i] || columns[i];
      result.idle[i] = result.idle[i] && without.back()[i];
    }
  }
  for (std::size_t i = 0; i < features; ++i)
    result.read_elsewhere[i] = any_column[i] && !result.idle[i];
  for (std::size_t r = 0; r < structure.readers.size(); ++r)
    for (std::size_t i = 0; i < features; ++i)
      if (result.read_elsewhere[i] && !without[r][i]) {
        result.other_readers.push_back(structure.readers[r]);
        break;
      }
  for (const FeatureMaker& maker : structure.makers)
    for (std::size_t i = 0; i < features && !structure.is_attention(); ++i)
      result.constant[i] = result.constant[i] && !result.idle[i] &&
                           masked.at(maker.layer).rows[static_cast<std::size_t>(maker.first) + i];
  return result;
}

}  // namespace lathe::compress
