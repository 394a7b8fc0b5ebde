#include "lathe/experiment/fine_tune_examples.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lathe/data/validation_split.h"
#include "lathe/io/model_family.h"
#include "lathe/train/make_source.h"
#include "lathe/train/targets.h"

namespace lathe::experiment {
namespace {

// Rows held out where something is chosen by them and no number was given.
constexpr std::int64_t kHeldOut = 2000;

}  // namespace

RunExamples hold_out(data::Dataset all, std::int64_t count, bool labelled) {
  if (count == 0) return {.train = std::move(all), .validation = {}};
  std::vector<std::int64_t> candidates, others;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(all.examples.size()); ++i) {
    const std::int32_t label = all.examples[static_cast<std::size_t>(i)].label;
    if (labelled && label == data::kNoLabel) {
      others.push_back(i);
      continue;
    }
    candidates.push_back(i);
    labels.push_back(label);
  }
  const auto size = static_cast<std::int64_t>(candidates.size());
  if (count >= size)
    fail("validation {}: the data has {} examples only{}", count, size,
         others.empty() ? "" : " with a label");
  data::ValidationSplit split = data::split_validation(labels, count, 0);
  for (std::vector<std::int64_t>* part : {&split.train, &split.validation})
    for (std::int64_t& position : *part) position = candidates[static_cast<std::size_t>(position)];
  split.train.insert(split.train.end(), others.begin(), others.end());
  return {.train = data::select(all, split.train),
          .validation = data::select(all, split.validation)};
}

data::ColumnOptions columns_of(const FineTuneOptions& options) {
  const io::Reading known = io::model_reading(options.model);
  return {.text = options.text_column,
          .label = options.label_column,
          .known_text = known.text_columns,
          .known_label = known.label_columns,
          .header = options.header,
          .separator = options.label_separator};
}

bool has_validation_file(const FineTuneOptions& options, data::Reads reads) {
  if (!data::is_directory_of_data(options.data) ||
      !data::has_split(options.data, "validation", {.reads = reads}))
    return false;
  if (options.validation > 0)
    throw UserError(fmt::format("validation {}: {} has a validation split of its own",
                                options.validation, options.data),
                    "leave the option out to validate on it");
  return true;
}

void decide_validation(FineTuneOptions& options, std::int64_t examples) {
  const bool is_choosing = options.trainer.validate_every > 0;
  if (is_choosing && options.validation == 0) options.validation = std::min(kHeldOut, examples / 5);
}

void check_classes(const FineTuneOptions& options, const data::Dataset& examples) {
  if (examples.label_kind != LabelKind::Class ||
      !models::gives_labels(train::task_of(options.graph.objective)))
    return;
  if (examples.label_names.size() == 1)
    fail("{}: every {} of {} has the label \"{}\": expected two labels or more to tell apart",
         options.data, examples.has_words ? "word" : "example", options.split,
         examples.label_names.front());
}

std::vector<float> class_weights_of(const FineTuneOptions& options, const io::Model& model,
                                    const data::Dataset& examples) {
  if (options.class_weights.empty()) return {};
  if (options.graph.objective != "classify")
    fail("class-weights: is for the objective classify, not {}", options.graph.objective);
  if (!options.teacher.empty()) fail("class-weights: cannot be given together with a teacher");
  if (options.class_weights == "balanced") return train::balanced_weights(examples);
  std::vector<float> weights(model.label_names.size(), 1);
  for (std::size_t begin = 0; begin < options.class_weights.size();) {
    const std::size_t end =
        std::min(options.class_weights.find(',', begin), options.class_weights.size());
    const std::string part = options.class_weights.substr(begin, end - begin);
    const std::size_t equals = part.rfind('=');
    const auto label = std::ranges::find(model.label_names, part.substr(0, equals));
    double weight = 0;
    const char* const stop = part.data() + part.size();
    const auto [read, error] =
        equals == part.npos ? std::from_chars_result{part.data(), std::errc::invalid_argument}
                            : std::from_chars(part.data() + equals + 1, stop, weight);
    if (error != std::errc{} || read != stop || !(weight >= 0) || !std::isfinite(weight))
      fail("class-weights {}: expected NAME=WEIGHT with a weight of 0 or more, or balanced", part);
    if (label == model.label_names.end())
      fail("class-weights {}: the labels are {}", part, fmt::join(model.label_names, ", "));
    weights[static_cast<std::size_t>(label - model.label_names.begin())] =
        static_cast<float>(weight);
    begin = end + 1;
  }
  return weights;
}

EvaluateOptions test_options(const FineTuneOptions& options) {
  EvaluateOptions result{.data = options.data,
                         .split = "test",
                         .length = options.length,
                         .limit = options.limit,
                         .truncation = options.truncation};
  result.columns = columns_of(options);
  return result;
}

std::optional<data::Dataset> read_test(const FineTuneOptions& options, const io::Model& model,
                                       const Callbacks& callbacks) {
  if (!options.is_tested || !models::gives_labels(model.task) ||
      !data::has_split(options.data, "test", {.reads = train::reads_of(*model.family, model.task)}))
    return std::nullopt;
  return read_for(model, test_options(options), callbacks.should_stop);
}

}  // namespace lathe::experiment
