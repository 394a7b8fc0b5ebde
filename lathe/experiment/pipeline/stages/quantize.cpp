#include "lathe/experiment/quantize.h"

#include "lathe/compress/packed_weights.h"
#include "lathe/experiment/pipeline/stage.h"
#include "lathe/experiment/pipeline/stage_settings.h"

// quantize: formats for weights, activations and the rest, as `lathe quantize` has them, or a list
// of rules by layer.
namespace lathe::experiment::quantize_stage {
namespace {

using nlohmann::json;

QuantizeOptions read_options(const json& settings) {
  QuantizeOptions options;
  read_settings(settings, [&](const auto& visit) {
    visit("weights", options.weights);
    visit("activations", options.activations);
    visit("bias", options.bias);
    visit("outputs", options.outputs);
    visit("embeddings", options.embeddings);
    visit("attention", options.attention);
    visit("attention-weights", options.attention_weights);
    visit("profile", options.profile);
    visit("by-name", options.by_name);
    visit("skip", options.skip);
    visit("rules", options.rules);
    visit("calibration-examples", options.calibration_examples);
    visit("weight-range", options.weight_range);
    visit("activation-range", options.activation_range);
    visit("bias-correction", options.bias_correction);
    visit("gptq", options.gptq);
  });
  to_rules(options);  // refuses a wrong format
  return options;
}

void run(const StageRun& stage) {
  QuantizeOptions options = read_options(stage.settings);
  options.calibrate = stage.data;
  const io::Model model = io::load_model(stage.model, {.seed = stage.seed, .with_masters = true});
  Quantized result = quantize(model, options, stage.execution, stage.callbacks);
  compress::pack_model(result.model);
  io::write_checkpoint(stage.out, result.model);
}

const Register registration{Stage{
    .name = "quantize",
    .summary = "round numbers to formats of few bits",
    .check = [](const json& settings) { read_options(settings); },
    .run = run,
}};

}  // namespace
}  // namespace lathe::experiment::quantize_stage
