#include "lathe/search/compress_candidate.h"

#include "lathe/compress/pruning/prune_model.h"
#include "lathe/compress/quantize_model.h"

namespace lathe::search {
namespace {

using compress::MatchBy;

MatchBy match_of(const std::string& name, const Graph& graph) {
  return graph.find(name) ? MatchBy::Name : MatchBy::Regex;
}

void prune(io::Model& model, const Candidate& candidate, train::ExampleSource* calibration,
           std::uint64_t seed, const engine::ExecutionOptions& execution) {
  compress::PruneOptions options{.seed = seed};
  bool prunes = false;
  for (const auto& [layer, pruning] : candidate.pruning) {
    compress::PruningRule rule{.by = match_of(layer, model.graph), .match = layer};
    rule.settings.sparsity = pruning.sparsity;
    if (pruning.sparsity > 0) {
      prunes = true;
      if (!pruning.method.empty()) rule.settings.method = pruning.method;
      if (!pruning.granularity.empty())
        rule.settings.granularity = compress::parse_granularity(pruning.granularity);
    }
    options.request.rules.push_back(std::move(rule));
  }
  if (prunes) compress::prune_model(model, options, calibration, execution);
}

void round(io::Model& model, const Candidate& candidate, train::ExampleSource* calibration,
           const engine::ExecutionOptions& execution) {
  compress::QuantizeOptions options;
  for (const auto& [layer, formats] : candidate.formats) {
    compress::RoleFormats rounded;
    for (const auto& [role, format] : formats)
      if (format != "float") rounded[role] = format;
    if (!rounded.empty())
      options.rules.push_back(
          {.by = match_of(layer, model.graph), .match = layer, .formats = std::move(rounded)});
  }
  if (!options.rules.empty()) compress::quantize_model(model, options, calibration, execution);
}

}  // namespace

void compress_candidate(io::Model& model, const Candidate& candidate,
                        train::ExampleSource* calibration, std::uint64_t seed,
                        const engine::ExecutionOptions& execution) {
  // Formats are fitted to what is left.
  prune(model, candidate, calibration, seed, execution);
  round(model, candidate, calibration, execution);
}

bool is_meant(const std::string& name, const Graph& graph, std::string_view layer) {
  return compress::matches(match_of(name, graph), name, "", layer);
}

}  // namespace lathe::search
