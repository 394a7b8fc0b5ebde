#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "lathe/core/pass.h"
#include "lathe/engine/passes/statistics.h"
#include "lathe/engine/reference_executor.h"

namespace lathe::engine {

std::string to_text(const Statistics& statistics) {
  return fmt::format(
      "min {:.6g} max {:.6g} mean {:.6g} |mean| {:.6g} std {:.6g} q{:g} {:.6g} zeros {:.4g}%",
      statistics.minimum, statistics.maximum, statistics.mean, statistics.mean_absolute,
      statistics.deviation, statistics.level, statistics.quantile, 100 * statistics.sparsity);
}

namespace {

// Magnitudes are counted by the upper bits of their float pattern, 512 bins an octave: the quantile
// is then within 0.2 % of the exact one, in 1 MB a node however much data passes.
constexpr int kShift = 14;
constexpr std::size_t kBins = std::size_t{1} << (31 - kShift);

struct Accumulator {
  std::int64_t count = 0;
  std::int64_t zeros = 0;
  double minimum = std::numeric_limits<double>::infinity();
  double maximum = -std::numeric_limits<double>::infinity();
  double sum = 0, sum_absolute = 0, sum_squares = 0;
  std::vector<std::int64_t> bins = std::vector<std::int64_t>(kBins);

  void add(const Tensor& tensor) {
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
      const double value = tensor.at(i);
      if (std::isnan(value)) continue;  // counted nowhere: statistics are of numbers
      ++count;
      zeros += value == 0 ? 1 : 0;
      minimum = std::min(minimum, value);
      maximum = std::max(maximum, value);
      sum += value;
      sum_absolute += std::fabs(value);
      sum_squares += value * value;
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::fabs(value)));
      ++bins[std::min(kBins - 1, static_cast<std::size_t>(bits >> kShift))];
    }
  }

  Statistics statistics(double level) const {
    Statistics result;
    result.count = count;
    result.level = level;
    if (count == 0) return result;
    const auto n = static_cast<double>(count);
    result.minimum = minimum;
    result.maximum = maximum;
    result.mean = sum / n;
    result.mean_absolute = sum_absolute / n;
    result.deviation = std::sqrt(std::max(0.0, sum_squares / n - result.mean * result.mean));
    result.sparsity = static_cast<double>(zeros) / n;
    const auto target = static_cast<std::int64_t>(std::ceil(level * n));
    std::int64_t seen = 0;
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      seen += bins[bin];
      if (seen < std::max<std::int64_t>(1, target)) continue;
      const auto upper = static_cast<std::uint32_t>(((bin + 1) << kShift) - 1);
      const double edge = std::bit_cast<float>(upper);  // NaN for the bin of infinity
      const double largest = std::max(std::fabs(minimum), std::fabs(maximum));
      result.quantile = edge < largest ? edge : largest;
      if (bin == 0) result.quantile = 0;
      break;
    }
    return result;
  }
};

PassResult measure_statistics(Graph& graph, PassContext& context) {
  const AttributeReader options(context.options,
                                PassRegistry::instance().find("measure-statistics")->options);
  const double level = options.real("quantile");
  if (!(level > 0 && level <= 1)) fail("quantile={}: expected a share above 0, at most 1", level);
  std::map<NodeId, Accumulator> accumulators;
  for (std::size_t batch = 0; batch < context.feeds.size(); ++batch) {
    run_reference(graph, *context.state, context.feeds[batch],
                  [&](Value value, const Tensor& tensor) {
                    if (value.index != 0) return;
                    // States do not change from batch to batch: once is enough.
                    if (graph.is(value.node, "state") && batch > 0) return;
                    accumulators[value.node].add(tensor);
                  });
  }
  std::string report;
  for (const auto& [id, accumulator] : accumulators) {
    graph.annotation<Statistics>(id) = accumulator.statistics(level);
    report += (report.empty() ? "" : "\n") + graph.name(id) + "  " +
              to_text(graph.annotation<Statistics>(id));
  }
  return {0, report};
}

const Register registration{Pass{
    .name = "measure-statistics",
    .summary = "run batches and record range, quantile, mean absolute value and sparsity per node",
    .run = measure_statistics,
    .options = {{"quantile", 0.99, "level of the quantile of absolute values"}},
    .needs_state = true,
    .needs_feeds = true,
}};

}  // namespace
}  // namespace lathe::engine
