#include "lathe/experiment/prune_sweep.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lathe/compress/packed_weights.h"
#include "lathe/data/validation_split.h"
#include "lathe/experiment/recorded_options.h"
#include "lathe/train/make_source.h"

namespace lathe::experiment {
namespace {

double parse_number(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || !(value >= 0 && value <= 1))
    fail("\"{}\": expected sparsities, 0 to 1: 0.1..0.9 or 0.5,0.7", text);
  return value;
}

// What decides the results besides the settings.
nlohmann::json to_json(const PruneSweepOptions& options) {
  const PruneOptions& prune = options.prune;
  return {{"sweep", options.sparsities},
          {"method", options.methods},
          {"scope", prune.scope},
          {"granularity", prune.granularity},
          {"rules", recorded_path(prune.rules)},
          {"embeddings", prune.embeddings},
          {"activations", prune.activations},
          {"calibrate", recorded_path(prune.calibrate)},
          {"calibration-examples", prune.calibration_examples}};
}

PruneOptions options_at(const PruneSweepOptions& options, const std::string& method,
                        double sparsity) {
  PruneOptions result = options.prune;
  result.method = method;
  result.sparsity = sparsity;
  result.seed = options.settings.seed;
  return result;
}

// Everything that can be wrong without a model is, before anything is read.
void check_options(const PruneSweepOptions& options, const std::vector<double>& sparsities) {
  check_sweep(options.settings);
  if (options.prune.sparsity)
    fail("sparsity {:g}: a sweep gives sparsities itself", *options.prune.sparsity);
  if (!options.prune.method.empty())
    fail("method {}: a sweep takes a list of methods", options.prune.method);
  for (const std::string& method : options.methods)
    for (const double sparsity : sparsities) to_request(options_at(options, method, sparsity));
}

}  // namespace

std::vector<double> parse_sparsities(const std::string& text) {
  std::vector<double> values;
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const double first = parse_number(std::string_view(text).substr(0, dots));
    const double last = parse_number(std::string_view(text).substr(dots + 2));
    // Tenths are counted, not added up: 0.3 is to be 0.3.
    for (std::int64_t i = 0; first + static_cast<double>(i) / 10 < last + 1e-9; ++i)
      values.push_back(std::round((first + static_cast<double>(i) / 10) * 1e6) / 1e6);
  } else {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      values.push_back(parse_number(std::string_view(text).substr(begin, end - begin)));
      begin = end + 1;
    }
  }
  if (values.empty()) fail("\"{}\": holds no sparsity", text);
  return values;
}

PruneSweepResult prune_sweep(const PruneSweepOptions& options,
                             const engine::ExecutionOptions& execution,
                             const Callbacks& callbacks) {
  const std::vector<double> sparsities =
      with_place("sweep", [&] { return parse_sparsities(options.sparsities); });
  check_options(options, sparsities);
  const SweepSettings& settings = options.settings;
  io::Model model = io::load_model(
      settings.model, {.task = "classify", .seed = settings.seed, .with_masters = true});
  // Training goes on from floats, and a packed model gives the same answers unpacked.
  compress::unpack_model(model);
  SweepRunner runner(settings, std::move(model),
                     {.plain = "unpruned", .changed = "before", .trained = "after"},
                     to_json(options), execution, callbacks);
  const data::Dataset seen = data::take_some(runner.examples(), options.prune.calibration_examples);
  const auto calibration = train::make_evaluation_source(runner.model(), seen, {}, execution.pool,
                                                         callbacks.should_stop);
  std::vector<SweepChange> changes;
  std::vector<PruneSweepPoint> kinds;
  for (const double sparsity : sparsities)
    for (const std::string& method : options.methods) {
      kinds.push_back({.method = method, .sparsity = sparsity});
      changes.push_back(
          {.point = fmt::format("{} {:g}", method, sparsity),
           .facts = {{"method", method}, {"sparsity", sparsity}},
           .change = [&, pruning = options_at(options, method, sparsity)](
                         const engine::ExecutionOptions& on, const Callbacks& told) {
             const Callbacks quiet{
                 .progress = {}, .notice = told.notice, .should_stop = told.should_stop};
             return pruning.calibrate.empty()
                        ? prune(runner.model(), pruning, calibration.get(), on, quiet).model
                        : prune(runner.model(), pruning, on, quiet).model;
           }});
    }
  const SweepOutcome outcome = runner.run(changes, std::ranges::max(settings.epochs) > 0);
  PruneSweepResult result{.measured_on = runner.measured_on(),
                          .num_measured = runner.num_measured(),
                          .figure = runner.figure(),
                          .plain = outcome.plain,
                          .plain_bytes = outcome.plain_bytes,
                          .plain_speed = outcome.plain_speed,
                          .controls = outcome.controls,
                          .points = {}};
  for (std::size_t i = 0; i < changes.size(); ++i)
    for (const std::int64_t epochs : settings.epochs) {
      const SweepFigures& figures = outcome.changed[i];
      PruneSweepPoint& point = result.points.emplace_back(kinds[i]);
      point.epochs = epochs;
      point.pruned = figures.changed;
      point.trained = after_epochs(figures.trained, epochs);
      point.bytes = figures.bytes;
      point.tokens_per_second = figures.tokens_per_second;
    }
  write_prune_report(result, settings.out);
  return result;
}

}  // namespace lathe::experiment
