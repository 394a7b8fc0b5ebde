#include "lathe/experiment/sensitivity.h"

#include <algorithm>

#include "lathe/train/evaluation.h"
#include "lathe/train/make_source.h"

namespace lathe::experiment {

Sensitivity measure_sensitivity(const io::Model& original, const io::Model& quantized,
                                train::ExampleSource& examples,
                                const engine::ExecutionOptions& execution,
                                const Callbacks& callbacks) {
  if (original.labels != LabelKind::Class)
    throw UserError(fmt::format("sensitivity: measures accuracy, and the model is for {}",
                                problem_type(original.labels)),
                    "`eval` D measures the whole model before and after");
  const auto evaluate = [&](const io::Model& candidate) {
    train::Classifier classifier(candidate, {.execution = execution});
    return train::evaluate(
        classifier, examples, static_cast<std::int64_t>(candidate.label_names.size()),
        {.progress = [&](std::int64_t, std::int64_t) { return !callbacks.stops(); }});
  };
  const train::Evaluation plain = evaluate(original);
  Sensitivity result{.loss = plain.loss, .accuracy = plain.accuracy, .layers = {}};
  const std::vector<std::string> layers = compress::quantized_layers(quantized.graph);
  for (const std::string& layer : layers) {
    io::Model candidate = quantized;
    candidate.graph = compress::quantize_only(quantized.graph, layer);
    const train::Evaluation seen = evaluate(candidate);
    result.layers.push_back({layer, seen.loss, seen.accuracy});
    callbacks.tell({.activity = "sensitivity",
                    .unit = "layers",
                    .done = static_cast<std::int64_t>(result.layers.size()),
                    .total = static_cast<std::int64_t>(layers.size())});
  }
  std::stable_sort(result.layers.begin(), result.layers.end(),
                   [](const auto& a, const auto& b) { return a.loss > b.loss; });
  return result;
}

Sensitivity measure_sensitivity(const io::Model& original, const io::Model& quantized,
                                const QuantizeOptions& options, std::int64_t examples,
                                const engine::ExecutionOptions& execution,
                                const Callbacks& callbacks) {
  const data::Dataset some = calibration_examples(original, options, examples, callbacks);
  const auto source =
      train::make_evaluation_source(original, some, {}, execution.pool, callbacks.should_stop);
  return measure_sensitivity(original, quantized, *source, execution, callbacks);
}

}  // namespace lathe::experiment
