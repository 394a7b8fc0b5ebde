#include "lathe/experiment/quantize.h"

#include "lathe/compress/hardware_profile.h"
#include "lathe/data/match_labels.h"
#include "lathe/experiment/read_data.h"
#include "lathe/io/mapped_file.h"
#include "lathe/train/make_source.h"

namespace lathe::experiment {

namespace {

compress::HardwareFormats hardware_formats(const QuantizeOptions& options) {
  if (options.profile != "hardware") throw unknown_name("profile", options.profile, {"hardware"});
  for (const auto& [name, format] :
       {std::pair("bias", &options.bias), std::pair("embeddings", &options.embeddings),
        std::pair("attention", &options.attention),
        std::pair("attention-weights", &options.attention_weights)})
    if (!format->empty())
      fail("{}: profile hardware says what that is; give weights, activations or outputs", name);
  compress::HardwareFormats formats;
  if (!options.weights.empty()) formats.weights = options.weights;
  if (!options.activations.empty()) formats.activations = options.activations;
  if (!options.outputs.empty()) formats.residuals = options.outputs;
  return formats;
}

}  // namespace

compress::QuantizeOptions to_rules(const QuantizeOptions& options, const Graph* graph) {
  using compress::TensorRole;
  compress::QuantizeOptions result;
  for (const auto& [layer, format] : options.by_name) {
    with_place(layer, [&, &text = format] { compress::check_format(TensorRole::Weights, text); });
    result.rules.push_back(
        {.by = compress::QuantizationRule::By::Name,
         .match = layer,
         .formats = {{TensorRole::Weights, format}, {TensorRole::Embeddings, format}},
         .place = "by-name"});
  }
  if (!options.rules.empty())
    for (compress::QuantizationRule& rule : compress::parse_quantization_rules(
             io::MappedFile::open(options.rules)->text(), options.rules))
      result.rules.push_back(std::move(rule));
  compress::QuantizationRule everywhere;
  everywhere.place = "formats";
  const auto take = [&](TensorRole role, const char* option, const std::string& format) {
    if (format.empty()) return;
    with_place(option, [&] { compress::check_format(role, format); });
    everywhere.formats[role] = format;
  };
  take(TensorRole::Weights, "weights", options.weights);
  take(TensorRole::Inputs, "activations", options.activations);
  take(TensorRole::Bias, "bias", options.bias);
  take(TensorRole::Outputs, "outputs", options.outputs);
  take(TensorRole::Embeddings, "embeddings", options.embeddings);
  take(TensorRole::Attention, "attention", options.attention);
  take(TensorRole::AttentionWeights, "attention-weights", options.attention_weights);
  const bool is_everywhere = !options.profile.empty();
  if (is_everywhere) {
    const compress::HardwareFormats formats = hardware_formats(options);
    if (graph != nullptr)
      for (compress::QuantizationRule& rule : compress::hardware_rules(*graph, formats))
        result.rules.push_back(std::move(rule));
  } else if (!everywhere.formats.empty()) {
    result.rules.push_back(everywhere);
  }
  if (result.rules.empty() && !is_everywhere)
    fail("nothing to quantize: give weights, activations or rules");
  for (const std::string& layer : options.skip)
    result.rules.insert(result.rules.begin(), {.by = compress::QuantizationRule::By::Name,
                                               .match = layer,
                                               .formats = {},
                                               .place = "skip " + layer});
  result.parameter_range =
      with_place("weight-range", [&] { return compress::parse_range_rule(options.weight_range); });
  result.activation_range = with_place(
      "activation-range", [&] { return compress::parse_range_rule(options.activation_range); });
  result.calibration_examples = options.calibration_examples;
  result.corrects_bias = options.bias_correction;
  result.uses_gptq = options.gptq;
  return result;
}

data::Dataset calibration_examples(const io::Model& model, const QuantizeOptions& options,
                                   std::int64_t count, const Callbacks& callbacks) {
  data::Dataset some =
      read_examples(model, options.calibrate, "train", count, callbacks.should_stop);
  return models::gives_labels(model.task) ? data::match_labels(std::move(some), model.label_names)
                                          : some;
}

Quantized quantize(const io::Model& original, const QuantizeOptions& options,
                   train::ExampleSource* calibration, const engine::ExecutionOptions& execution,
                   const Callbacks& callbacks) {
  Quantized result{.model = original, .result = {}, .tensors = {}, .bits = {}};
  result.result =
      compress::quantize_model(result.model, to_rules(options, &original.graph), calibration,
                               execution, [&](std::int64_t done) {
                                 return callbacks.goes_on({.activity = "calibrating",
                                                           .unit = "examples",
                                                           .done = done,
                                                           .total = calibration->size()});
                               });
  for (const std::string& rule : result.result.unused_rules)
    callbacks.warn(fmt::format("{}: matches no layer of the model", rule));
  for (const std::string& note : result.result.notes) callbacks.warn(note);
  result.tensors = compress::report_tensors(result.model.graph, result.model.state,
                                            result.result.observations, original.state);
  result.bits = compress::count_bits(result.model.graph, result.model.state);
  return result;
}

Quantized quantize(const io::Model& original, const QuantizeOptions& options,
                   const engine::ExecutionOptions& execution, const Callbacks& callbacks) {
  to_rules(options);  // a wrong format is found before data is read
  if (options.calibrate.empty()) return quantize(original, options, nullptr, execution, callbacks);
  const data::Dataset examples =
      calibration_examples(original, options, options.calibration_examples, callbacks);
  const auto source = train::make_evaluation_source(original, examples,
                                                    {.objective = train::objective_of(original)},
                                                    execution.pool, callbacks.should_stop);
  return quantize(original, options, source.get(), execution, callbacks);
}

}  // namespace lathe::experiment
