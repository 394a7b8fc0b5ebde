#include "lathe/experiment/sweep.h"

#include "lathe/compress/format_sweep.h"
#include "lathe/compress/quantizers.h"
#include "lathe/core/number_format.h"
#include "lathe/data/validation_split.h"
#include "lathe/experiment/recorded_options.h"
#include "lathe/experiment/sweep_report.h"
#include "lathe/train/make_source.h"

namespace lathe::experiment {
namespace {

// What decides the results besides the settings.
nlohmann::json to_json(const SweepOptions& options) {
  const QuantizeOptions& quantize = options.quantize;
  return {{"sweep", options.formats},
          {"outputs", quantize.outputs},
          {"embeddings", quantize.embeddings},
          {"attention", quantize.attention},
          {"attention-weights", quantize.attention_weights},
          {"profile", quantize.profile},
          {"rules", recorded_path(quantize.rules)},
          {"calibrate", recorded_path(quantize.calibrate)},
          {"calibration-examples", quantize.calibration_examples},
          {"weight-range", quantize.weight_range},
          {"activation-range", quantize.activation_range},
          {"bias-correction", quantize.bias_correction},
          {"gptq", quantize.gptq}};
}

// Scales that are handed in for each row or block are of weights: their rows are the outputs of a
// layer, those of activations are tokens.
bool is_for_weights_alone(const std::string& format) {
  const FormatFacts facts = parse_format(format)->facts();
  return facts.scale_source == ScaleSource::Given && facts.granularity != Granularity::Tensor;
}

void check_options(const SweepOptions& options) {
  check_sweep(options.settings);
  for (const auto& [name, value] :
       {std::pair("weights", &options.quantize.weights), std::pair("bias", &options.quantize.bias),
        std::pair("activations", &options.quantize.activations)})
    if (!value->empty())
      fail("{} {}: a sweep gives weights, biases and activations their format itself", name,
           *value);
}

}  // namespace

SweepResult sweep(const SweepOptions& options, const engine::ExecutionOptions& execution,
                  const Callbacks& callbacks) {
  check_options(options);
  const compress::FormatSweep formats =
      with_place("sweep", [&] { return compress::parse_format_sweep(options.formats); });
  const SweepSettings& settings = options.settings;
  io::Model model = io::load_model(settings.model, {.task = "classify", .seed = settings.seed});
  if (compress::is_quantized(model.graph)) fail("{}: is quantized already", settings.model);
  SweepRunner runner(settings, std::move(model),
                     {.plain = "float", .changed = "ptq", .trained = "qat"}, to_json(options),
                     execution, callbacks);

  const std::int64_t count = options.quantize.calibration_examples;
  const data::Dataset seen =
      options.quantize.calibrate.empty()
          ? data::take_some(runner.examples(), count)
          : calibration_examples(runner.model(), options.quantize, count, callbacks);
  const auto calibration = train::make_evaluation_source(runner.model(), seen, {}, execution.pool,
                                                         callbacks.should_stop);
  if (is_for_weights_alone(formats.points.front().format))
    callbacks.warn(fmt::format("{}: is a format of weights alone; activations stay float",
                               formats.points.front().format));
  std::vector<SweepChange> changes;
  for (const compress::FormatSweep::Point& point : formats.points)
    changes.push_back(
        {.point = point.format,
         .facts = {{"value", point.value}},
         .change = [&](const engine::ExecutionOptions& on, const Callbacks& told) {
           QuantizeOptions quantizing = options.quantize;
           quantizing.weights = point.format;
           if (!is_for_weights_alone(point.format))
             quantizing.bias = quantizing.activations = point.format;
           return quantize(runner.model(), quantizing, calibration.get(), on,
                           {.progress = {}, .notice = told.notice, .should_stop = told.should_stop})
               .model;
         }});
  const SweepOutcome outcome = runner.run(changes, false);
  SweepResult result{.variable = formats.variable,
                     .measured_on = runner.measured_on(),
                     .num_measured = runner.num_measured(),
                     .figure = runner.figure(),
                     .plain = outcome.plain,
                     .plain_bytes = outcome.plain_bytes,
                     .plain_speed = outcome.plain_speed,
                     .points = {}};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const compress::FormatSweep::Point& point = formats.points[i];
    const SweepFigures& figures = outcome.changed[i];
    for (const std::int64_t epochs : settings.epochs)
      result.points.push_back({.value = point.value,
                               .format = point.format,
                               .bits = parse_format(point.format)->facts().element_bits,
                               .epochs = epochs,
                               .rounded = figures.changed,
                               .trained = after_epochs(figures.trained, epochs),
                               .bytes = figures.bytes,
                               .tokens_per_second = figures.tokens_per_second});
  }
  write_report(result, settings.out);
  return result;
}

}  // namespace lathe::experiment
