#include "lathe/experiment/evaluate.h"

#include "lathe/data/match_labels.h"
#include "lathe/experiment/read_data.h"
#include "lathe/train/make_source.h"

namespace lathe::experiment {
namespace {

constexpr double kMaskShare = 0.15;

bool is_language_task(const std::string& task) {
  return task == "mlm" || task == "causal-lm";
}

}  // namespace

io::Model load_for_evaluation(const std::string& model, const std::string& task,
                              std::uint64_t seed) {
  if (!task.empty() && task != "classify" && !is_language_task(task))
    fail("task {}: has nothing to measure; expected classify, mlm or causal-lm", task);
  io::Model loaded = io::load_model(model, {.task = task, .seed = seed});
  if (loaded.task == "classify" || is_language_task(loaded.task)) return loaded;
  return io::load_model(model, {.task = "classify", .seed = seed});
}

ModelEvaluation evaluate_on(const io::Model& model, const EvaluateOptions& options,
                            const engine::ExecutionOptions& execution, const Callbacks& callbacks) {
  data::Dataset examples =
      read_examples(model, options.data, options.split, options.limit, callbacks.should_stop);
  const bool is_language = is_language_task(model.task);
  if (!is_language) examples = data::match_labels(std::move(examples), model.label_names);
  const auto source = train::make_evaluation_source(model, examples,
                                                    {.objective = model.task,
                                                     .length = options.length,
                                                     .truncation = options.truncation,
                                                     .is_padded = options.is_padded,
                                                     .mask_share = kMaskShare,
                                                     .seed = options.seed},
                                                    execution.pool, callbacks.should_stop);
  const auto progress = [&](std::int64_t done, std::int64_t) {
    callbacks.tell(
        {.activity = "evaluating", .unit = "examples", .done = done, .total = source->size()});
    return !callbacks.stops();
  };
  ModelEvaluation result;
  if (is_language) {
    result.loss = train::evaluate_loss(model, *source, execution, progress);
    return result;
  }
  train::Classifier classifier(model, {.allows_fresh = options.allows_fresh,
                                       .is_padded = options.is_padded,
                                       .execution = execution});
  result.classes =
      train::evaluate(classifier, *source, static_cast<std::int64_t>(model.label_names.size()),
                      {.batch_tokens = options.batch_tokens,
                       .batch_examples = options.batch_examples,
                       .progress = progress});
  return result;
}

}  // namespace lathe::experiment
