#include "lathe/search/trial_data.h"

#include <algorithm>
#include <cmath>

#include "lathe/compress/quantizers.h"
#include "lathe/core/error.h"
#include "lathe/data/match_labels.h"
#include "lathe/data/validation_split.h"
#include "lathe/experiment/read_data.h"
#include "lathe/experiment/teachers.h"
#include "lathe/io/model_family.h"
#include "lathe/train/make_source.h"
#include "lathe/train/soft_labels.h"

namespace lathe::search {
namespace {

double guessing_level(const data::Dataset& rows) {
  std::map<std::int32_t, double> counts;
  for (const std::int32_t label : rows.labels()) ++counts[label];
  double most = 0;
  for (const auto& [label, count] : counts) most = std::max(most, count);
  const auto size = static_cast<double>(rows.examples.size());
  const double share = most / size;
  return share + 3 * std::sqrt(share * (1 - share) / size);
}

}  // namespace

// Reads what is trained on, and makes or loads the model that has its labels.
data::Dataset TrialData::read_training(const SearchOptions& options, const std::string& builder,
                                       const experiment::Callbacks& callbacks) {
  const std::string& source = !options.model.empty()  ? options.model
                              : !options.from.empty() ? options.from
                                                      : builder;
  // They would change nothing, and the test of the chosen model refuses a length behind all trials.
  experiment::refuse_options_of_texts(
      io::model_family(source),
      {{"length", options.length > 0}, {"truncation", !options.truncation.empty()}});
  data::Dataset train = experiment::read_examples(
      source, options.data, "train", 0, callbacks.should_stop, {}, {}, "classify", options.images);
  if (train.label_kind != LabelKind::Class || train.num_labels() < 2)
    fail("{}: a search needs examples of two classes or more", options.data);
  if (options.model.empty()) {
    std::string tokenizer = options.tokenizer;
    if (!options.from.empty()) {
      if (!tokenizer.empty()) fail("tokenizer: {} has its own", options.from);
      parent_ = io::load_model(
          options.from,
          {.task = "classify", .num_labels = train.num_labels(), .seed = options.seed});
      if (compress::is_quantized(parent_->graph)) fail("{}: is quantized", options.from);
      tokenizer = options.from;
    }
    base_ = experiment::load_with_tokenizer(
        builder, tokenizer, options.data,
        {.task = "classify", .num_labels = train.num_labels(), .seed = options.seed});
    if (parent_ && parent_->family != base_.family)
      fail("from: {} is of the family {}: expected {}, of which {} is", options.from,
           parent_->family->name, base_.family->name, builder);
    if (parent_) base_.images = parent_->images;
    experiment::set_images(base_, options.images);
    experiment::adopt_labels(base_, train);
    return train;
  }
  if (!options.tokenizer.empty()) fail("tokenizer: {} has its own", options.model);
  base_ = io::load_model(options.model, {.task = "classify", .seed = options.seed});
  experiment::set_images(base_, options.images);
  if (compress::is_quantized(base_.graph)) fail("{}: is quantized already", options.model);
  if (!base_.fresh.empty())
    throw UserError(fmt::format("{}: was not trained as a classifier", options.model),
                    "train it first: lathe train");
  return data::match_labels(std::move(train), base_.label_names);
}

TrialData::TrialData(const SearchOptions& options, const std::string& builder,
                     const engine::ExecutionOptions& execution,
                     const experiment::Callbacks& callbacks)
    : builder_(builder) {
  data::Dataset train = read_training(options, builder, callbacks);
  if (options.length > 0) base_.reading.length = options.length;
  if (!options.truncation.empty())
    base_.reading.truncation =
        with_place("truncation", [&] { return data::parse_truncation(options.truncation); });
  if (options.objective_split.empty()) {
    const auto size = static_cast<std::int64_t>(train.examples.size());
    const data::ValidationSplit split =
        data::split_validation(train.labels(), std::min(options.validation, size / 5), 0);
    held_out_ = data::select(train, split.validation);
    train = data::select(train, split.train);
    measured_on_ = fmt::format("{} rows held out of train", held_out_.examples.size());
  } else {
    held_out_ =
        data::match_labels(experiment::read_examples(base_, options.data, options.objective_split,
                                                     0, callbacks.should_stop),
                           base_.label_names);
    measured_on_ =
        fmt::format("{} rows of the split {}", held_out_.examples.size(), options.objective_split);
  }
  if (held_out_.examples.empty()) fail("{}: there are no rows to measure on", options.data);
  examples_ = data::take_some(std::move(train), options.limit);
  some_held_out_ = data::take_some(held_out_, options.rung_rows);
  chance_level_ = guessing_level(held_out_);
  callbacks.tell({.activity = "tokenizing", .unit = "texts", .done = 0, .total = 1});
  const auto source = [&](const data::Dataset& rows) {
    return train::make_evaluation_source(
        base_, rows,
        {.length = options.length,
         .seed = options.seed,
         .augmentation = train::parse_augmentation(options.augment)},
        execution.pool, callbacks.should_stop);
  };
  training_ = source(examples_);
  measured_ = source(held_out_);
  early_ = source(some_held_out_);
  calibrating_ = data::take_some(examples_, options.calibration);
  calibration_ = source(calibrating_);
  if (options.teacher.empty()) return;
  experiment::FineTuneOptions asked;
  asked.teacher = options.teacher;
  asked.length = options.length;
  training_ = std::make_shared<train::SoftlyLabelled>(
      std::move(training_), experiment::ask_teachers(experiment::load_teachers(asked), base_,
                                                     examples_, asked, {}, execution, callbacks));
  has_teachers_ = true;
}

}  // namespace lathe::search
