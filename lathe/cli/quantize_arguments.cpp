#include "lathe/cli/quantize_arguments.h"

#include "lathe/core/number_format.h"
#include "lathe/data/dataset.h"
#include "lathe/data/validation_split.h"
#include "lathe/io/mapped_file.h"
#include "lathe/report/progress.h"
#include "lathe/train/text_classifier.h"
#include "lathe/train/text_source.h"

namespace lathe::cli {

compress::QuantizeOptions to_options(const QuantizeArguments& arguments) {
  compress::QuantizeOptions options;
  using compress::TensorRole;
  if (!arguments.rules.empty())
    options.rules = compress::parse_quantization_rules(
        io::MappedFile::open(arguments.rules)->text(), arguments.rules);
  compress::QuantizationRule flags;
  flags.place = "command line";
  const auto take = [&](TensorRole role, const char* flag, const std::string& format) {
    if (format.empty()) return;
    with_place(flag, [&] { compress::check_format(role, format); });
    flags.formats[role] = format;
  };
  take(TensorRole::Weights, "--weights", arguments.weights);
  take(TensorRole::Inputs, "--activations", arguments.activations);
  take(TensorRole::Bias, "--bias", arguments.bias);
  take(TensorRole::Outputs, "--outputs", arguments.outputs);
  take(TensorRole::Embeddings, "--embeddings", arguments.embeddings);
  take(TensorRole::Attention, "--attention", arguments.attention);
  take(TensorRole::AttentionWeights, "--attention-weights", arguments.attention_weights);
  if (!flags.formats.empty()) options.rules.push_back(flags);
  if (options.rules.empty())
    fail("lathe quantize: nothing to do: give --weights, --activations or --rules");
  options.parameter_range = with_place(
      "--weight-range", [&] { return compress::parse_range_rule(arguments.weight_range); });
  options.activation_range = with_place(
      "--activation-range", [&] { return compress::parse_range_rule(arguments.activation_range); });
  if (arguments.calibrate.empty() && (arguments.gptq || arguments.bias_correction))
    fail("--gptq and --bias-correction look at data, and there is none: give --calibrate DATA");
  options.calibration_examples = arguments.calibration_examples;
  options.corrects_bias = arguments.bias_correction;
  options.uses_gptq = arguments.gptq;
  return options;
}

std::optional<data::TokenizedDataset> load_calibration(const QuantizeArguments& arguments,
                                                       const io::Model& model, ThreadPool& pool) {
  if (arguments.calibrate.empty()) return std::nullopt;
  const std::shared_ptr<const data::Tokenizer> tokenizer = train::load_tokenizer(model);
  const data::Dataset some =
      data::take_some(data::load_dataset(arguments.calibrate, "train", is_interrupted),
                      arguments.calibration_examples);
  return data::tokenize(some, *tokenizer, train::max_length(model), data::Truncation::Head, pool,
                        is_interrupted);
}

compress::QuantizeResult quantize(io::Model& model, const QuantizeArguments& arguments,
                                  const std::optional<data::TokenizedDataset>& calibration,
                                  ThreadPool& pool, const Settings& settings) {
  report::Progress progress(
      stderr, {.is_enabled = !settings.quiet, .label = "calibrating", .unit = "texts"});
  std::optional<train::TokenizedTexts> texts;
  if (calibration) texts.emplace(*calibration, train::TextFeeding());
  const compress::QuantizeResult result =
      compress::quantize_model(model, to_options(arguments), texts ? &*texts : nullptr,
                               settings.execution(pool), [&](std::int64_t done) {
                                 progress.update(done, calibration->size());
                                 return !is_interrupted();
                               });
  progress.finish();
  for (const std::string& rule : result.unused_rules)
    fmt::print(stderr, "warning: {}: matches no layer of the model\n", rule);
  for (const std::string& note : result.notes) fmt::print(stderr, "note: {}\n", note);
  return result;
}

}  // namespace lathe::cli
