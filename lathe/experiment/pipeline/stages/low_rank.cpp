#include "lathe/compress/low_rank/low_rank.h"

#include "lathe/compress/shrinking/vocabulary.h"
#include "lathe/data/validation_split.h"
#include "lathe/experiment/pipeline/stage.h"
#include "lathe/experiment/pipeline/stage_settings.h"
#include "lathe/train/make_source.h"

// low-rank: weights and tables become products of two narrow matrices. With data, errors count by
// what layers read and by how often tokens occur.
namespace lathe::experiment::low_rank_stage {
namespace {

using nlohmann::json;

struct Settings {
  compress::LowRankOptions options{.targets = {"embeddings"}};
  std::int64_t calibration_examples = 256;
};

Settings read_options(const json& settings) {
  Settings result;
  compress::LowRankOptions& options = result.options;
  read_settings(settings, [&](const auto& visit) {
    visit("targets", options.targets);
    visit("rank", options.rank);
    visit("energy", options.energy);
    visit("share", options.share);
    visit("calibration-examples", result.calibration_examples);
  });
  if ((options.rank > 0) + (options.energy > 0) + (options.share > 0) != 1)
    fail("expected one of rank, energy and share");
  return result;
}

compress::LowRankEvidence look_at_data(const io::Model& model, const StageRun& stage,
                                       std::int64_t count) {
  compress::LowRankEvidence evidence;
  if (stage.train.examples.empty()) return evidence;
  const data::Dataset some = data::take_some(stage.train, count);
  const auto source =
      train::make_evaluation_source(model, some, {.objective = train::objective_of(model)},
                                    stage.execution.pool, stage.callbacks.should_stop);
  evidence.products =
      compress::measure_input_products(model, *source, source->size(), stage.execution);
  if (model.family->reads == models::Reads::Tokens)
    evidence.lookups[compress::token_table(model.graph)] =
        compress::count_tokens(*train::load_tokenizer(model), stage.train, *stage.execution.pool);
  return evidence;
}

void run(const StageRun& stage) {
  const Settings settings = read_options(stage.settings);
  io::Model model = io::load_model(stage.model, {.seed = stage.seed, .with_masters = true});
  const compress::LowRankReport report = compress::factorize_weights(
      model, settings.options, look_at_data(model, stage, settings.calibration_examples));
  for (const std::string& note : report.notes) stage.callbacks.warn(note);
  for (const compress::FactorizedWeight& weight : report.weights)
    stage.callbacks.warn(fmt::format("{}: {}x{} at rank {} keeps {:.1f} % of its energy",
                                     weight.state, weight.rows, weight.columns, weight.rank,
                                     100 * weight.energy));
  io::write_checkpoint(stage.out, model);
}

const Register registration{Stage{
    .name = "low-rank",
    .summary = "make weights and tables products of two narrow matrices",
    .check = [](const json& settings) { read_options(settings); },
    .run = run,
}};

}  // namespace
}  // namespace lathe::experiment::low_rank_stage
