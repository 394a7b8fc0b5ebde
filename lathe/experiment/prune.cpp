#include "lathe/experiment/prune.h"

#include "lathe/compress/packed_weights.h"
#include "lathe/experiment/read_data.h"
#include "lathe/io/mapped_file.h"
#include "lathe/train/make_source.h"

namespace lathe::experiment {
namespace {

// Whether some method counts what it sees in all the data, and not in a few examples.
bool counts_lookups(const compress::PruneOptions& options) {
  const auto is_vocabulary = [](const compress::PruningSettings& settings) {
    return settings.granularity &&
           settings.granularity->kind == compress::Granularity::Kind::Vocabulary;
  };
  if (is_vocabulary(options.request.settings)) return true;
  for (const compress::PruningRule& rule : options.request.rules)
    if (is_vocabulary(rule.settings)) return true;
  return false;
}

}  // namespace

compress::PruneOptions to_request(const PruneOptions& options) {
  compress::PruneOptions result;
  if (!options.rules.empty())
    result.request.rules =
        compress::parse_pruning_rules(io::MappedFile::open(options.rules)->text(), options.rules);
  compress::PruningSettings& settings = result.request.settings;
  settings.sparsity = options.sparsity;
  if (!options.method.empty()) settings.method = options.method;
  if (!options.granularity.empty())
    settings.granularity = compress::parse_granularity(options.granularity);
  if (!options.scope.empty()) settings.scope = compress::parse_pruning_scope(options.scope);
  if (options.activations != 0) settings.activations = options.activations;
  compress::check_settings(settings);
  result.request.embeddings = options.embeddings;
  result.calibration_examples = options.calibration_examples;
  result.seed = options.seed;
  return result;
}

Pruned prune(const io::Model& original, const PruneOptions& options,
             train::ExampleSource* calibration, const engine::ExecutionOptions& execution,
             const Callbacks& callbacks) {
  Pruned result{.model = original, .result = {}};
  const bool is_packed = !original.graph.nodes_of("decode").empty();
  if (is_packed) compress::unpack_model(result.model);
  result.result = compress::prune_model(result.model, to_request(options), calibration, execution,
                                        [&](std::int64_t done) {
                                          return callbacks.goes_on({.activity = "reading",
                                                                    .unit = "examples",
                                                                    .done = done,
                                                                    .total = calibration->size()});
                                        });
  for (const std::string& rule : result.result.unused_rules)
    callbacks.warn(fmt::format("{}: matches no layer of the model", rule));
  if (is_packed) compress::pack_model(result.model, !original.masters.empty());
  return result;
}

Pruned prune(const io::Model& original, const PruneOptions& options,
             const engine::ExecutionOptions& execution, const Callbacks& callbacks) {
  const compress::PruneOptions request = to_request(options);  // before data is read
  if (options.calibrate.empty()) return prune(original, options, nullptr, execution, callbacks);
  const std::int64_t count = counts_lookups(request) ? 0 : options.calibration_examples;
  const data::Dataset examples =
      read_examples(original, options.calibrate, "train", count, callbacks.should_stop);
  const auto source = train::make_evaluation_source(original, examples,
                                                    {.objective = train::objective_of(original)},
                                                    execution.pool, callbacks.should_stop);
  return prune(original, options, source.get(), execution, callbacks);
}

}  // namespace lathe::experiment
