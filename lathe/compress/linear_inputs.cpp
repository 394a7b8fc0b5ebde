#include "lathe/compress/linear_inputs.h"

#include <algorithm>
#include <cmath>

#include "lathe/compress/data_run.h"
#include "lathe/compress/quantizers.h"
#include "lathe/core/number_format.h"
#include "lathe/core/select_outputs.h"
#include "lathe/ops/run_reference.h"

namespace lathe::compress {
namespace {

// The state that a linear's operand is, or is rounded from.
std::string state_of(const Graph& graph, Value value) {
  if (graph.is(value.node, "quantize")) value = graph.input(value.node, 0);
  return graph.is(value.node, "state") ? graph.name(value.node) : std::string();
}

// The model's packed graph without rounding, whose outputs are what each linear reads: "x.NAME" as
// it is, and "q.NAME" as the linear's quantizer rounds it.
Graph watch_inputs(const io::Model& model, bool with_rounded) {
  Graph graph = select_outputs(model.graph, {"logits"});
  run_pass("pack-sequences", graph);
  for (const NodeId id : graph.nodes_of("linear")) {
    const Value x = graph.input(id, 0);
    const bool is_rounded = graph.is(x.node, "quantize");
    graph.set_output("x." + graph.name(id), is_rounded ? graph.input(x.node, 0) : x);
    if (with_rounded) graph.set_output("q." + graph.name(id), x);
  }
  // Readers see floats; a quantizer that is watched stays as an output.
  for (const Quantizer& quantizer : find_quantizers(graph))
    for (const Use& use : std::vector<Use>(graph.uses(quantizer.node)))
      if (use.kind == Use::Kind::Operand)
        graph.set_input(use.user, static_cast<std::size_t>(use.operand),
                        graph.input(quantizer.node, 0));
  unround_attention(graph);
  run_pass("remove-dead-nodes", graph);
  return graph;
}

// The lower triangle of a symmetric matrix becomes L with L L^T = the matrix.
void factor(std::vector<double>& a, std::size_t k) {
  for (std::size_t j = 0; j < k; ++j) {
    for (std::size_t i = j; i < k; ++i) {
      double sum = a[i * k + j];
      for (std::size_t p = 0; p < j; ++p) sum -= a[i * k + p] * a[j * k + p];
      if (i == j) {
        check(sum > 0, "a damped matrix of products to be positive definite");
        a[j * k + j] = std::sqrt(sum);
      } else {
        a[i * k + j] = sum / a[j * k + j];
      }
    }
    for (std::size_t i = 0; i < j; ++i) a[i * k + j] = 0;
  }
}

std::vector<double> inverse(std::vector<double> a, std::size_t k) {
  factor(a, k);
  // The inverse of the lower triangle, then its transpose times itself.
  std::vector<double> l(k * k, 0.0);
  for (std::size_t j = 0; j < k; ++j) {
    l[j * k + j] = 1 / a[j * k + j];
    for (std::size_t i = j + 1; i < k; ++i) {
      double sum = 0;
      for (std::size_t p = j; p < i; ++p) sum -= a[i * k + p] * l[p * k + j];
      l[i * k + j] = sum / a[i * k + i];
    }
  }
  std::vector<double> result(k * k, 0.0);
  for (std::size_t p = 0; p < k; ++p)
    for (std::size_t i = 0; i <= p; ++i)
      for (std::size_t j = 0; j <= p; ++j) result[i * k + j] += l[p * k + i] * l[p * k + j];
  return result;
}

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
                           std::int64_t count) const {
    std::vector<float> part;
    for (std::int64_t r = 0; r < rows_; ++r)
      for (std::int64_t c = first; c < first + count; ++c)
        part.push_back(static_cast<float>(weights[static_cast<std::size_t>(r * columns_ + c)]));
    QuantizeArgs args;
    args.rows = rows_;
    args.columns = count;
    args.x = part.data();
    args.y = part.data();
    const std::vector<float> scales = of_column(scales_, first), zeros = of_column(zeros_, first);
    if (scales_ != nullptr) args.scales = scales.data();
    if (zeros_ != nullptr) args.zeros = zeros.data();
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

void round_by_gptq(std::span<float> weight, std::int64_t columns, std::vector<double> products,
                   const GptqRounder& rounder, std::int64_t unit) {
  const auto k = static_cast<std::size_t>(columns);
  const auto rows = weight.size() / k;
  // A hundredth of the mean keeps columns that were never seen from dividing by nothing.
  double mean = 0;
  for (std::size_t i = 0; i < k; ++i) mean += products[i * k + i] / static_cast<double>(k);
  for (std::size_t i = 0; i < k; ++i) products[i * k + i] += 0.01 * mean + 1e-12;
  std::vector<double> h = inverse(std::move(products), k);
  factor(h, k);  // lower; its transpose is the upper factor that GPTQ works with
  const auto upper = [&](std::size_t i, std::size_t j) { return h[j * k + i]; };

  std::vector<double> w(weight.begin(), weight.end());
  for (std::int64_t first = 0; first < columns; first += unit) {
    const std::int64_t count = std::min(unit, columns - first);
    const std::vector<float> rounded = rounder.round(w, first, count);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < count; ++c) {
        const auto column = static_cast<std::size_t>(first + c);
        const float value =
            rounded[r * static_cast<std::size_t>(count) + static_cast<std::size_t>(c)];
        weight[r * k + column] = value;
        const double error =
            (w[r * k + column] - static_cast<double>(value)) / upper(column, column);
        for (std::size_t j = column + 1; j < k; ++j) w[r * k + j] -= error * upper(column, j);
      }
    }
  }
}

}  // namespace

InputProducts measure_input_products(const io::Model& model, const data::TokenizedDataset& dataset,
                                     std::int64_t num_examples,
                                     const engine::ExecutionOptions& execution) {
  InputProducts products;
  std::map<std::string, double> counts;
  run_on_data(watch_inputs(model, false), model.state, dataset, num_examples, execution,
              [&](const data::Batch&, const Feed& outputs) {
                for (const auto& [output, tensor] : outputs) {
                  if (!output.starts_with("x.")) continue;
                  const std::string name = output.substr(2);
                  const auto k = static_cast<std::size_t>(tensor.dims().back());
                  std::vector<double>& sum = products[name];
                  sum.resize(k * k, 0.0);
                  const std::span<const float> x = tensor.data<float>();
                  // A part of the rows says as much about second moments, in a part of the time.
                  const std::size_t stride = std::max<std::size_t>(1, x.size() / k / 512);
                  for (std::size_t row = 0; (row + 1) * k <= x.size(); row += stride) {
                    const float* const v = x.data() + row * k;
                    for (std::size_t i = 0; i < k; ++i)
                      for (std::size_t j = 0; j < k; ++j)
                        sum[i * k + j] += static_cast<double>(v[i]) * static_cast<double>(v[j]);
                    counts[name] += 1;
                  }
                }
              });
  for (auto& [name, sum] : products)
    for (double& value : sum) value /= std::max(1.0, counts[name]);
  return products;
}

void apply_gptq(io::Model& model, const InputProducts& products) {
  const Graph& graph = model.graph;
  for (const NodeId id : graph.nodes_of("linear")) {
    const NodeId quantizer = graph.input(id, 1).node;
    const auto found = products.find(graph.name(id));
    const bool is_rounded =
        graph.is(quantizer, "quantize") && graph.is(graph.input(quantizer, 0).node, "state");
    if (!is_rounded || found == products.end()) continue;
    const std::shared_ptr<const NumberFormat> format =
        parse_format(graph.attribute(quantizer).text("format"));
    Tensor& weight = model.state.at(graph.name(graph.input(quantizer, 0).node));
    const std::int64_t columns = weight.dims().back();
    const auto operand = [&](std::size_t i) -> const float* {
      const Tensor* tensor = state_operand(graph, model.state, quantizer, i);
      return tensor == nullptr ? nullptr : tensor->data<float>().data();
    };
    const GptqRounder rounder(*format, operand(1), operand(2), weight.num_elements() / columns,
                              columns);
    round_by_gptq(weight.mutable_data<float>(), columns, found->second, rounder,
                  unit_of(format->facts(), columns));
  }
}

void correct_biases(const io::Model& original, io::Model& quantized,
                    const data::TokenizedDataset& dataset, std::int64_t num_examples,
                    const engine::ExecutionOptions& execution) {
  std::map<std::string, std::vector<double>> sums;
  std::map<std::string, double> counts;
  run_on_data(watch_inputs(quantized, true), quantized.state, dataset, num_examples, execution,
              [&](const data::Batch&, const Feed& outputs) {
                for (const auto& [output, tensor] : outputs) {
                  if (output == "logits") continue;
                  const auto k = static_cast<std::size_t>(tensor.dims().back());
                  std::vector<double>& sum = sums[output];
                  sum.resize(k, 0.0);
                  const std::span<const float> x = tensor.data<float>();
                  for (std::size_t i = 0; i < x.size(); ++i)
                    sum[i % k] += static_cast<double>(x[i]);
                  counts[output] += static_cast<double>(x.size() / k);
                }
              });
  const Graph& graph = quantized.graph;
  for (const NodeId id : graph.nodes_of("linear")) {
    const std::string weight_name = state_of(graph, graph.input(id, 1));
    if (graph.inputs(id).size() < 3 || weight_name.empty()) continue;
    const Value bias = graph.inputs(id)[2];
    if (bias.is_none() || !graph.is(bias.node, "state")) continue;
    const auto mean = [&](const std::string& output) {
      std::vector<double> values = sums.at(output);
      for (double& value : values) value /= std::max(1.0, counts.at(output));
      return values;
    };
    const std::vector<double> x = mean("x." + graph.name(id)), q = mean("q." + graph.name(id));
    Tensor rounded = quantized.state.at(weight_name);
    if (const NodeId quantizer = graph.input(id, 1).node; graph.is(quantizer, "quantize")) {
      std::vector<const Tensor*> operands;
      for (std::size_t i = 0; i < graph.inputs(quantizer).size(); ++i)
        operands.push_back(state_operand(graph, quantized.state, quantizer, i));
      rounded = ops::run_reference(graph, quantizer, operands, {})[0];
    }
    const std::span<const float> before = original.state.at(weight_name).data<float>();
    const std::span<const float> after = rounded.data<float>();
    const std::span<float> values = quantized.state.at(graph.name(bias.node)).mutable_data<float>();
    for (std::size_t n = 0; n < values.size(); ++n) {
      double lost = 0;
      for (std::size_t j = 0; j < x.size(); ++j)
        lost += static_cast<double>(before[n * x.size() + j]) * x[j] -
                static_cast<double>(after[n * x.size() + j]) * q[j];
      values[n] += static_cast<float>(lost);
    }
  }
}

}  // namespace lathe::compress
