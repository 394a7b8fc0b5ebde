#include "lathe/compress/shrinking/shrink.h"

#include "lathe/experiment/pipeline/stage.h"
#include "lathe/experiment/pipeline/stage_settings.h"

// shrink: what masks took out as a whole, heads and neurons, goes from the graph.
namespace lathe::experiment::shrink_stage {
namespace {

using nlohmann::json;

compress::ShrinkOptions read_options(const json& settings) {
  compress::ShrinkOptions options;
  read_settings(settings, [&](const auto& visit) {
    visit("neurons", options.neurons);
    visit("heads", options.heads);
  });
  return options;
}

void run(const StageRun& stage) {
  io::Model model = io::load_model(stage.model, {.seed = stage.seed, .with_masters = true});
  const compress::ShrinkReport report = compress::shrink(model, read_options(stage.settings));
  for (const std::string& note : report.notes) stage.callbacks.warn(note);
  if (report.parts.empty()) stage.callbacks.warn("no head and no neuron is masked as a whole");
  io::write_checkpoint(stage.out, model);
}

const Register registration{Stage{
    .name = "shrink",
    .summary = "take heads and neurons that are masked as a whole out of the graph",
    .check = [](const json& settings) { read_options(settings); },
    .run = run,
}};

}  // namespace
}  // namespace lathe::experiment::shrink_stage
