#include "lathe/experiment/evaluate.h"

#include "lathe/data/data_kind.h"
#include "lathe/data/match_labels.h"
#include "lathe/experiment/read_data.h"
#include "lathe/generate/round_keys.h"
#include "lathe/train/make_source.h"

namespace lathe::experiment {
namespace {

constexpr double kMaskShare = 0.15;

bool is_language_task(const std::string& task) {
  return task == "mlm" || task == "causal-lm";
}

std::string split_to_measure(const EvaluateOptions& options) {
  if (!options.split.empty()) return options.split;
  return data::is_one_file(options.data) ? "train" : "test";
}

train::SourceOptions source_options(const EvaluateOptions& options, const std::string& objective) {
  return {.objective = objective,
          .length = options.length,
          .truncation = options.truncation,
          .is_padded = options.is_padded,
          .mask_share = kMaskShare,
          .seed = options.seed};
}

train::ClassifierOptions classifier_options(const EvaluateOptions& options,
                                            const engine::ExecutionOptions& execution) {
  return {
      .allows_fresh = options.allows_fresh, .is_padded = options.is_padded, .execution = execution};
}

train::EvaluationOptions batch_options(const EvaluateOptions& options, const std::string& activity,
                                       std::int64_t examples, const Callbacks& callbacks) {
  return {.batch_tokens = options.batch_tokens,
          .batch_examples = options.batch_examples,
          .progress = [=, &callbacks](std::int64_t done, std::int64_t) {
            return callbacks.goes_on(
                {.activity = activity, .unit = "examples", .done = done, .total = examples});
          }};
}

void refuse_what_is_for_texts(const io::Model& model, const EvaluateOptions& options) {
  refuse_options_of_texts(*model.family, {{"length", options.length > 0},
                                          {"truncation", options.truncation.has_value()},
                                          {"padded", options.is_padded}});
}

}  // namespace

io::Model load_for_evaluation(const std::string& model, const std::string& task,
                              std::uint64_t seed) {
  if (!task.empty() && !models::gives_labels(task) && !is_language_task(task))
    fail("task {}: has nothing to measure; expected classify, tokens, mlm or causal-lm", task);
  io::Model loaded = io::load_model(model, {.task = task, .seed = seed});
  if (models::gives_labels(loaded.task) || is_language_task(loaded.task)) return loaded;
  return io::load_model(model, {.task = "classify", .seed = seed});
}

data::Dataset read_for(const io::Model& model, const EvaluateOptions& options,
                       const ShouldStop& should_stop) {
  data::Dataset examples = read_examples(model, options.data, split_to_measure(options),
                                         options.limit, should_stop, options.columns);
  if (is_language_task(model.task)) return examples;
  if (examples.label_kind != model.labels)
    fail("{}: its labels are for {}, but the model is for {}", options.data,
         problem_type(examples.label_kind), problem_type(model.labels));
  return data::match_labels(std::move(examples), model.label_names);
}

ModelEvaluation evaluate_on(const io::Model& model, const EvaluateOptions& options,
                            const engine::ExecutionOptions& execution, const Callbacks& callbacks) {
  refuse_what_is_for_texts(model, options);
  return evaluate_examples(model, read_for(model, options, callbacks.should_stop), options,
                           execution, callbacks);
}

ModelEvaluation evaluate_examples(const io::Model& model, const data::Dataset& examples,
                                  const EvaluateOptions& options,
                                  const engine::ExecutionOptions& execution,
                                  const Callbacks& callbacks) {
  if (options.is_padded && is_language_task(model.task))
    fail("padded: a model for {} is measured on packed sequences; expected a classifier",
         model.task);
  io::Model reading = examples.has_pairs ? train::with_token_types(model) : model;
  if (!options.cache.empty())
    generate::round_keys(reading.graph, generate::parse_cache_format(options.cache));
  const auto source =
      train::make_evaluation_source(reading, examples, source_options(options, model.task),
                                    execution.pool, callbacks.should_stop);
  const train::EvaluationOptions batches =
      batch_options(options, "evaluating", source->size(), callbacks);
  ModelEvaluation result;
  if (is_language_task(model.task)) {
    result.loss = train::evaluate_loss(reading, *source, execution, batches);
    return result;
  }
  train::Classifier classifier(reading, classifier_options(options, execution));
  result = evaluate_source(classifier, model, *source, examples.targets, batches);
  if (result.words) {
    for (const data::Example& example : examples.examples)
      result.words->cut += std::ssize(example.words);
    result.words->cut -= result.words->words;
  }
  result.weight_bytes = classifier.executor().report().weight_bytes;
  return result;
}

ModelEvaluation evaluate_source(train::Classifier& classifier, const io::Model& model,
                                train::ExampleSource& source, std::span<const float> targets,
                                const train::EvaluationOptions& batches) {
  ModelEvaluation result;
  if (model.task == "tokens")
    result.words = train::evaluate_words(classifier, source, model.label_names, batches);
  else if (model.labels == LabelKind::Number)
    result.numbers = train::score_numbers(train::answer_all(classifier, source, batches), targets);
  else if (model.labels == LabelKind::Set)
    result.sets = train::score_label_sets(train::answer_all(classifier, source, batches), targets);
  else
    result.classes = train::evaluate(classifier, source,
                                     static_cast<std::int64_t>(model.label_names.size()), batches);
  return result;
}

EnsembleEvaluation evaluate_ensemble(std::span<const io::Model> members,
                                     const EvaluateOptions& options,
                                     const engine::ExecutionOptions& execution,
                                     const Callbacks& callbacks) {
  check(!members.empty(), "an ensemble with members");
  if (!options.cache.empty())
    fail("cache {}: classifiers keep no keys; expected one causal language model", options.cache);
  const io::Model& first = members.front();
  refuse_what_is_for_texts(first, options);
  const data::Dataset examples =
      data::match_labels(read_examples(first, options.data, split_to_measure(options),
                                       options.limit, callbacks.should_stop, options.columns),
                         first.label_names);
  const std::vector<std::int32_t> labels = examples.labels();
  EnsembleEvaluation result;
  train::Answers together;
  std::vector<Tensor> logits;
  for (const io::Model& member : members) {
    with_place(member.directory.string(), [&] {
      check_same_images(member, first);
      const std::vector<std::size_t> columns =
          train::match_columns(member.label_names, first.label_names);
      const auto source =
          train::make_evaluation_source(member, examples, source_options(options, "classify"),
                                        execution.pool, callbacks.should_stop);
      train::Classifier classifier(member, classifier_options(options, execution));
      const std::string activity =
          fmt::format("evaluating {} of {}", logits.size() + 1, members.size());
      train::Answers answers = train::answer_all(
          classifier, *source, batch_options(options, activity, source->size(), callbacks));
      answers.logits = train::pick_columns(answers.logits, columns);
      result.members.push_back(train::score(answers, labels));
      together.tokens += answers.tokens;
      together.forward_seconds += answers.forward_seconds;
      logits.push_back(std::move(answers.logits));
    });
  }
  together.logits = train::ensemble_logits(logits);
  result.together = train::score(together, labels);
  return result;
}

}  // namespace lathe::experiment
