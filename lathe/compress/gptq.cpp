#include "lathe/compress/gptq.h"

#include <algorithm>
#include <optional>

#include "lathe/compress/layers.h"
#include "lathe/compress/rounded_parameter.h"
#include "lathe/compress/symmetric_matrix.h"
#include "lathe/core/number_format.h"
#include "lathe/core/role.h"
#include "lathe/ops/channel_matrix.h"

namespace lathe::compress {
namespace {

// Columns that are rounded together: one, unless they share a scale that they make themselves.
std::int64_t unit_of(const FormatFacts& facts, std::int64_t columns) {
  if (facts.scale_source != ScaleSource::Local) return 1;
  return facts.granularity == Granularity::Block ? facts.block_columns : columns;
}

class GptqRounder {
 public:
  GptqRounder(const NumberFormat& format, const float* scales, const float* zeros,
              std::int64_t rows, std::int64_t columns)
      : format_(format), scales_(scales), zeros_(zeros), rows_(rows), columns_(columns) {}

  // Columns [first, first + count) of the weights, rounded.
  std::vector<float> round(const std::vector<double>& weights, std::int64_t first,
                           std::int64_t count, std::span<const float> mask) const {
    std::vector<float> part, kept;
    for (std::int64_t r = 0; r < rows_; ++r)
      for (std::int64_t c = first; c < first + count; ++c) {
        const auto i = static_cast<std::size_t>(r * columns_ + c);
        part.push_back(static_cast<float>(weights[i]));
        if (!mask.empty() && format_.facts().takes_mask) kept.push_back(mask[i]);
      }
    QuantizeArgs args;
    args.rows = rows_;
    args.columns = count;
    args.x = part.data();
    args.y = part.data();
    const std::vector<float> scales = of_column(scales_, first), zeros = of_column(zeros_, first);
    if (scales_ != nullptr) args.scales = scales.data();
    if (zeros_ != nullptr) args.zeros = zeros.data();
    if (!kept.empty()) args.mask = kept.data();
    format_.quantize(args);
    return part;
  }

 private:
  std::vector<float> of_column(const float* all, std::int64_t column) const {
    if (all == nullptr) return {};
    const FormatFacts& facts = format_.facts();
    if (facts.granularity == Granularity::Tensor) return {all[0]};
    std::vector<float> result;
    const std::int64_t width =
        facts.granularity == Granularity::Row ? columns_ : facts.block_columns;
    const std::int64_t blocks = (columns_ + width - 1) / width;
    for (std::int64_t r = 0; r < rows_; ++r) result.push_back(all[r * blocks + column / width]);
    return result;
  }

  const NumberFormat& format_;
  const float* scales_;
  const float* zeros_;
  std::int64_t rows_, columns_;
};

// `mask` is empty or has a 0 for every weight that must come out as 0.
void round_by_gptq(std::span<float> weight, std::int64_t columns, std::vector<double> products,
                   const GptqRounder& rounder, std::int64_t unit, std::span<const float> mask) {
  const auto k = static_cast<std::size_t>(columns);
  const auto rows = weight.size() / k;
  const std::vector<double> lower = inverse_factor(std::move(products), k);
  const auto upper = [&](std::size_t i, std::size_t j) { return lower[j * k + i]; };

  std::vector<double> w(weight.begin(), weight.end());
  const auto is_out = [&](std::size_t i) { return !mask.empty() && mask[i] == 0; };
  for (std::int64_t first = 0; first < columns; first += unit) {
    const std::int64_t count = std::min(unit, columns - first);
    // What a mask took out is made up for by the columns to come, and has no say in a scale.
    std::vector<double> kept = w;
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (is_out(i)) kept[i] = 0;
    const std::vector<float> rounded = rounder.round(kept, first, count, mask);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < count; ++c) {
        const auto column = static_cast<std::size_t>(first + c);
        const std::size_t i = r * k + column;
        const float value =
            is_out(i) ? 0
                      : rounded[r * static_cast<std::size_t>(count) + static_cast<std::size_t>(c)];
        weight[i] = value;
        const double error = (w[i] - static_cast<double>(value)) / upper(column, column);
        for (std::size_t j = column + 1; j < k; ++j) w[r * k + j] -= error * upper(column, j);
      }
    }
  }
}

// Who works with what a quantizer rounds: layers, as their weight, and others.
struct Readers {
  std::vector<std::string> layers, others;
};
Readers readers_of(const Graph& graph, const Parameters& parameters, NodeId quantizer) {
  Readers readers;
  for (const Use& use : working_uses(graph, parameters, quantizer)) {
    const bool is_weight =
        use.kind == Use::Kind::Operand &&
        operand_role(graph, use.user, static_cast<std::size_t>(use.operand)) == OperandRole::Weight;
    (is_weight ? readers.layers : readers.others)
        .push_back(use.kind == Use::Kind::Output ? use.output : graph.name(use.user));
  }
  return readers;
}

// The products of all these layers, summed; nullopt where one has none.
std::optional<std::vector<double>> products_of(const std::vector<std::string>& layers,
                                               const InputProducts& products, std::size_t columns) {
  std::vector<double> sum(columns * columns, 0.0);
  for (const std::string& layer : layers) {
    const auto found = products.find(layer);
    if (found == products.end() || found->second.size() != sum.size()) return std::nullopt;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += found->second[i];
  }
  return sum;
}

// The mask before a quantizer, or the one after it, as formats without a zero have it.
std::optional<NodeId> mask_of(const Graph& graph, const RoundedParameter& rounded) {
  const NodeId quantizer = rounded.quantizer.node;
  if (rounded.mask || !is_read_once(graph, quantizer)) return rounded.mask;
  const NodeId reader = graph.users(quantizer).front();
  const std::optional<std::size_t> masked = masked_operand(graph, reader);
  if (!masked) return std::nullopt;
  return graph.input(reader, 1 - *masked).node;
}

// Somebody besides this quantizer who reads a state.
std::string other_reader(const Graph& graph, const Quantizer& quantizer) {
  for (const std::string& state : quantizer.sources)
    for (const NodeId user : graph.users(graph.at(state)))
      if (user != quantizer.node && user != quantizer.parameter.node) return graph.name(user);
  return {};
}

}  // namespace

std::vector<std::string> apply_gptq(io::Model& model, const InputProducts& products) {
  const Graph& graph = model.graph;
  const Parameters parameters(graph);
  std::vector<std::string> notes;
  for (const Quantizer& quantizer : find_quantizers(graph)) {
    if (!quantizer.is_parameter) continue;
    const Readers readers = readers_of(graph, parameters, quantizer.node);
    if (readers.layers.empty()) continue;
    const auto leave = [&](const std::string& reason) {
      notes.push_back(fmt::format("\"{}\": its weight \"{}\" is rounded without GPTQ: {}",
                                  readers.layers.front(), quantizer.state, reason));
    };
    const std::optional<RoundedParameter> rounded = find_rounded_parameter(graph, quantizer);
    if (!rounded || !readers.others.empty()) {
      const std::string other =
          readers.others.empty() ? other_reader(graph, quantizer) : readers.others.front();
      leave(other.empty() ? "it is computed from other states"
                          : fmt::format("\"{}\" reads it too", other));
      continue;
    }
    const std::shared_ptr<const NumberFormat> format = parse_format(quantizer.format);
    if (rounded->mask && !has_zero(*format)) {
      leave(fmt::format("it is masked, and {} has no zero", quantizer.format));
      continue;
    }
    const std::int64_t axis = graph.attribute(quantizer.node).integer("axis");
    Tensor& state = model.state.at(graph.name(rounded->state));
    FormatMatrix matrix = format_matrix(graph, model.state, quantizer.node,
                                        parameter_value(graph, model.state, quantizer));
    const std::int64_t columns = matrix.args.columns;
    const auto sum = products_of(readers.layers, products, static_cast<std::size_t>(columns));
    if (!sum) {
      leave("what its layer reads was not measured row by row");
      continue;
    }
    const std::optional<NodeId> holes = mask_of(graph, *rounded);
    const Tensor mask = holes ? ops::to_matrix(model.state.at(graph.name(*holes)), axis) : Tensor();
    const GptqRounder rounder(*format, matrix.args.scales, matrix.args.zeros, matrix.args.rows,
                              columns);
    round_by_gptq(matrix.values.mutable_data<float>(), columns, *sum, rounder,
                  unit_of(format->facts(), columns), mask.data<float>());
    state = ops::from_matrix(matrix.values, state.dims(), axis);
  }
  return notes;
}

}  // namespace lathe::compress
