#include "lathe/compress/low_rank/low_rank.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lathe/compress/low_rank/factor_nodes.h"
#include "lathe/compress/low_rank/factorization.h"
#include "lathe/core/role.h"
#include "lathe/io/portable_weights.h"
#include "lathe/ops/channel_matrix.h"

namespace lathe::compress {
namespace {

ErrorWeights weigh(const Graph& graph, const LowRankTarget& target, std::int64_t rows,
                   std::int64_t columns, const LowRankEvidence& evidence) {
  ErrorWeights weights;
  if (const auto counts = evidence.lookups.find(graph.name(target.state));
      target.is_table && counts != evidence.lookups.end()) {
    if (static_cast<std::int64_t>(counts->second.size()) != rows)
      fail("lookups of {} rows of \"{}\", which has {}", counts->second.size(), counts->first,
           rows);
    for (const std::int64_t count : counts->second)
      weights.rows.push_back(static_cast<double>(count) + 1);
    return weights;
  }
  const auto k = static_cast<std::size_t>(columns);
  for (const NodeId reader : target.readers) {
    const auto products = evidence.products.find(graph.name(reader));
    if (products == evidence.products.end() || products->second.size() != k * k) continue;
    weights.products.resize(k * k, 0.0);
    for (std::size_t i = 0; i < k * k; ++i) weights.products[i] += products->second[i];
  }
  // A hundredth of the mean keeps directions that the data never showed from being lost.
  if (!weights.products.empty()) {
    double mean = 0;
    for (std::size_t i = 0; i < k; ++i)
      mean += weights.products[i * k + i] / static_cast<double>(k);
    for (std::size_t i = 0; i < k; ++i) weights.products[i * k + i] += 0.01 * mean;
  }
  return weights;
}

// A weight as [rows, columns], and what is known of its ranks.
struct SeenWeight {
  LowRankWeight weight;
  Tensor matrix;
  Factorization factorization;
};

SeenWeight see(const Graph& graph, const State& state, const LowRankTarget& target,
               const LowRankEvidence& evidence) {
  const std::string& name = graph.name(target.state);
  const Tensor matrix = ops::to_matrix(state.at(name), target.axis);
  LowRankWeight weight{
      .state = name, .readers = {}, .rows = matrix.dim(0), .columns = matrix.dim(1)};
  for (const NodeId reader : target.readers) weight.readers.push_back(graph.name(reader));
  const std::span<const float> values = matrix.data<float>();
  Factorization factorization({values.begin(), values.end()}, static_cast<std::size_t>(weight.rows),
                              static_cast<std::size_t>(weight.columns),
                              weigh(graph, target, weight.rows, weight.columns, evidence));
  weight.energies = factorization.energies();
  weight.energies.resize(static_cast<std::size_t>(std::min(weight.rows, weight.columns)));
  return {std::move(weight), matrix, std::move(factorization)};
}

void check_options(const LowRankOptions& options) {
  if ((options.rank != 0) + (options.energy != 0) + (options.share != 0) != 1)
    fail("expected one of rank, energy and share");
  if (options.rank < 0) fail("rank {}: expected 1 or more", options.rank);
  if (options.energy < 0 || options.energy > 1)
    fail("energy {}: expected above 0 and up to 1", options.energy);
  if (options.share < 0 || options.share >= 1)
    fail("share {}: expected above 0 and below 1", options.share);
}

std::int64_t choose_rank(const SeenWeight& seen, const LowRankOptions& options) {
  const auto rows = seen.weight.rows, columns = seen.weight.columns;
  std::int64_t rank = options.rank;
  if (options.energy > 0)
    rank = static_cast<std::int64_t>(seen.factorization.rank_of_energy(options.energy));
  if (options.share > 0)
    rank = static_cast<std::int64_t>(options.share * static_cast<double>(rows * columns) /
                                     static_cast<double>(rows + columns));
  return std::clamp<std::int64_t>(rank, 1, std::min(rows, columns));
}

Tensor to_tensor(const std::vector<double>& values, std::int64_t rows, std::int64_t columns) {
  Tensor tensor(DType::F32, {rows, columns});
  std::ranges::transform(values, tensor.mutable_data<float>().begin(),
                         [](double value) { return static_cast<float>(value); });
  return tensor;
}

double relative_error(const Tensor& matrix, const Tensor& product) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < matrix.data<float>().size(); ++i) {
    const double value = matrix.data<float>()[i];
    error += std::pow(value - static_cast<double>(product.data<float>()[i]), 2);
    norm += value * value;
  }
  return norm == 0 ? 0 : std::sqrt(error / norm);
}

}  // namespace

double LowRankWeight::loss(std::int64_t rank) const {
  const double total = std::accumulate(energies.begin(), energies.end(), 0.0);
  const auto first = energies.begin() + std::min<std::int64_t>(rank, std::ssize(energies));
  return total == 0 ? 0 : std::accumulate(first, energies.end(), 0.0) / total;
}

std::vector<LowRankWeight> measure_low_rank(const Graph& graph, const State& state,
                                            const std::vector<std::string>& targets,
                                            const LowRankEvidence& evidence) {
  std::vector<LowRankWeight> weights;
  for (const LowRankTarget& target : find_low_rank_targets(graph, targets).found)
    weights.push_back(see(graph, state, target, evidence).weight);
  return weights;
}

LowRankReport factorize_weights(Graph& graph, State& state, const LowRankOptions& options,
                                const LowRankEvidence& evidence) {
  check_options(options);
  LowRankReport report{.parameters_before = num_elements(graph, StateRole::Parameter)};
  LowRankTargets targets = find_low_rank_targets(graph, options.targets);
  report.notes = std::move(targets.notes);
  for (const LowRankTarget& target : targets.found) {
    const SeenWeight seen = see(graph, state, target, evidence);
    const LowRankWeight& weight = seen.weight;
    const std::int64_t rank = choose_rank(seen, options);
    const std::int64_t elements = weight.rows * weight.columns;
    if (weight.num_elements(rank) >= elements) {
      report.notes.push_back(
          fmt::format("\"{}\" is not factorised: at rank {} it would have {} numbers instead of {}",
                      weight.readers.front(), rank, weight.num_elements(rank), elements));
      continue;
    }
    const Factorization::Factors factors =
        seen.factorization.factors(static_cast<std::size_t>(rank));
    const Tensor left = to_tensor(factors.left, weight.rows, rank);
    const Tensor right = to_tensor(factors.right, rank, weight.columns);
    report.weights.push_back(
        {.state = weight.state,
         .factor = insert_factors(graph, state, target, left, right),
         .readers = weight.readers,
         .rows = weight.rows,
         .columns = weight.columns,
         .rank = rank,
         .energy = 1 - weight.loss(rank),
         .error = relative_error(seen.matrix, multiply_matrices(left, right))});
  }
  verify(graph);
  report.parameters_after = num_elements(graph, StateRole::Parameter);
  return report;
}

LowRankReport factorize_weights(io::Model& model, const LowRankOptions& options,
                                const LowRankEvidence& evidence) {
  LowRankReport report = factorize_weights(model.graph, model.state, options, evidence);
  // The second factor of a state that nobody trained was not trained either.
  for (const FactorizedWeight& weight : report.weights)
    if (std::ranges::find(model.fresh, weight.state) != model.fresh.end())
      model.fresh.push_back(weight.factor);
  return report;
}

int multiply_factors(io::Model& model) {
  const Graph own = io::family_graph(model);
  int multiplied = 0;
  // One at a time, for a product may be the factor of another.
  for (bool again = true; again;) {
    again = false;
    for (const FactorNodes& factors : find_factors(model.graph)) {
      const auto is_own = [&](NodeId id) { return own.find(model.graph.name(id)).has_value(); };
      if (std::ranges::any_of(factors.nodes, is_own)) continue;
      std::erase(model.fresh, model.graph.name(factors.factor));
      remove_factors(model.graph, model.state, factors);
      ++multiplied;
      again = true;
      break;
    }
  }
  verify(model.graph);
  return multiplied;
}

}  // namespace lathe::compress
