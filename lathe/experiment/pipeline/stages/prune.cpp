#include "lathe/experiment/prune.h"

#include "lathe/experiment/pipeline/stage.h"
#include "lathe/experiment/pipeline/stage_settings.h"

// prune: one shot, as `lathe prune` does it. Pruning while a model trains is a setting of
// fine-tune.
namespace lathe::experiment::prune_stage {
namespace {

using nlohmann::json;

PruneOptions read_options(const json& settings) {
  PruneOptions options;
  read_settings(settings, [&](const auto& visit) {
    visit("method", options.method);
    visit("sparsity", options.sparsity);
    visit("scope", options.scope);
    visit("granularity", options.granularity);
    visit("rules", options.rules);
    visit("embeddings", options.embeddings);
    visit("activations", options.activations);
    visit("calibration-examples", options.calibration_examples);
  });
  to_request(options);  // refuses a wrong setting
  return options;
}

void run(const StageRun& stage) {
  PruneOptions options = read_options(stage.settings);
  options.calibrate = stage.data;
  options.seed = stage.seed;
  const io::Model model = io::load_model(stage.model, {.seed = stage.seed, .with_masters = true});
  io::write_checkpoint(stage.out, prune(model, options, stage.execution, stage.callbacks).model);
}

const Register registration{Stage{
    .name = "prune",
    .summary = "set the weights that matter least to zero, in one shot",
    .check = [](const json& settings) { read_options(settings); },
    .run = run,
}};

}  // namespace
}  // namespace lathe::experiment::prune_stage
