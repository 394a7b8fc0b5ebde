#include <CLI/App.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/memory.h"
#include "lathe/data/dataset.h"
#include "lathe/data/validation_split.h"
#include "lathe/report/progress.h"
#include "lathe/train/evaluation.h"
#include "lathe/train/loss_evaluation.h"

namespace lathe::cli {
namespace {

struct Arguments {
  ModelArguments model;
  std::string data;
  std::string split = "test";
  bool is_padded = false;
  std::int64_t length = 0;
  std::int64_t limit = 0;
  std::string truncation = "head";
  train::EvaluationOptions evaluation;
};

void print_result(const train::Evaluation& result, const io::Model& model,
                  const Settings& settings) {
  const double rate = static_cast<double>(result.tokens) / result.forward_seconds;
  if (settings.json) {
    nlohmann::ordered_json line;
    line["accuracy"] = result.accuracy;
    line["accuracy_low"] = result.accuracy_low;
    line["accuracy_high"] = result.accuracy_high;
    line["loss"] = result.loss;
    line["examples"] = result.examples;
    line["tokens"] = result.tokens;
    line["seconds"] = settings.seconds();
    line["forward_seconds"] = result.forward_seconds;
    line["tokens_per_second"] = rate;
    line["peak_memory_bytes"] = peak_memory_bytes();
    line["labels"] = model.label_names;
    line["confusion"] = result.confusion;
    fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  fmt::print("accuracy   {:.4f}  (95 % interval {:.4f} to {:.4f})\n", result.accuracy,
             result.accuracy_low, result.accuracy_high);
  fmt::print("loss       {:.4f}\n", result.loss);
  fmt::print("examples   {}\ntokens     {}\n", result.examples, result.tokens);
  fmt::print("forward    {:.2f} s, {:.0f} tokens/s\n", result.forward_seconds, rate);
  fmt::print("in all     {:.2f} s, {:.0f} MB at most\n", settings.seconds(),
             static_cast<double>(peak_memory_bytes()) / 1e6);
  fmt::print("\ntrue label by row, predicted by column\n");
  for (std::size_t row = 0; row < result.confusion.size(); ++row)
    fmt::print("  {:<12} {:>8}\n", model.label_names[row], fmt::join(result.confusion[row], " "));
}

void print_result(const train::LossEvaluation& result, const io::Model& model,
                  const Settings& settings) {
  const double rate = static_cast<double>(result.tokens) / result.forward_seconds;
  const double perplexity = std::exp(result.loss);
  if (settings.json) {
    nlohmann::ordered_json line;
    line["task"] = model.task;
    line["loss"] = result.loss;
    line["perplexity"] = perplexity;
    line["predictions"] = result.predictions;
    line["examples"] = result.examples;
    line["tokens"] = result.tokens;
    line["seconds"] = settings.seconds();
    line["forward_seconds"] = result.forward_seconds;
    line["tokens_per_second"] = rate;
    line["peak_memory_bytes"] = peak_memory_bytes();
    fmt::print("{}\n", line.dump());
    return;
  }
  fmt::print("loss       {:.4f}\n", result.loss);
  fmt::print("perplexity {:.4f}  ({} tokens, {})\n", perplexity, result.predictions,
             model.task == "mlm" ? "15 % of all, masked" : "each from those before it");
  fmt::print("examples   {}\ntokens     {}\n", result.examples, result.tokens);
  fmt::print("forward    {:.2f} s, {:.0f} tokens/s\n", result.forward_seconds, rate);
  fmt::print("in all     {:.2f} s, {:.0f} MB at most\n", settings.seconds(),
             static_cast<double>(peak_memory_bytes()) / 1e6);
}

bool is_language_task(const std::string& task) {
  return task == "mlm" || task == "causal-lm";
}

// A model that was saved as a language model is measured as one; any other has or gets a
// classifier.
io::Model load(const Arguments& arguments, const Settings& settings) {
  const std::string& task = arguments.model.task;
  io::Model model = io::load_model(arguments.model.model, {.task = task, .seed = settings.seed});
  if (!task.empty() && task != "classify" && !is_language_task(task))
    fail("--task {}: has nothing to measure; expected classify, mlm or causal-lm", task);
  if (model.task == "classify" || is_language_task(model.task)) return model;
  return io::load_model(arguments.model.model, {.task = "classify", .seed = settings.seed});
}

int evaluate_language(const io::Model& model, const data::TokenizedDataset& tokenized,
                      const data::Tokenizer& tokenizer, const Settings& settings,
                      const engine::ExecutionOptions& execution) {
  constexpr double kMaskShare = 0.15;
  report::Progress progress(
      stderr, {.is_enabled = !settings.quiet, .label = "evaluating", .unit = "texts"});
  const train::LossEvaluation result = train::evaluate_loss(
      model, tokenized, train::make_objective(model.task, tokenizer, kMaskShare, settings.seed),
      execution, [&](std::int64_t examples) {
        progress.update(examples, tokenized.size());
        return !is_interrupted();
      });
  progress.finish();
  print_result(result, model, settings);
  return 0;
}

int run(const Arguments& arguments, const Settings& settings) {
  const io::Model model = load(arguments, settings);
  ThreadPool pool(settings.threads);
  train::ClassifierOptions options;
  options.is_padded = arguments.is_padded;
  options.execution = settings.execution(pool);
  const std::shared_ptr<const data::Tokenizer> tokenizer = train::load_tokenizer(model);

  const data::Truncation truncation = data::parse_truncation(arguments.truncation);
  const data::Dataset dataset = data::take_some(
      data::load_dataset(arguments.data, arguments.split, is_interrupted), arguments.limit);
  const auto num_labels = static_cast<std::int64_t>(model.label_names.size());
  if (model.task == "classify" && dataset.num_labels() > num_labels)
    fail("{}: has {} labels, but the model knows {}", arguments.data, dataset.num_labels(),
         num_labels);
  const std::int64_t longest = train::max_length(model);
  const std::int64_t length = arguments.length == 0 ? longest : arguments.length;
  if (length < 3 || length > longest)
    fail("--length {}: expected 3 to {}, the model's longest sequence", length, longest);
  const data::TokenizedDataset tokenized =
      data::tokenize(dataset, *tokenizer, length, truncation, pool, is_interrupted);
  if (is_language_task(model.task))
    return evaluate_language(model, tokenized, *tokenizer, settings, options.execution);

  train::TextClassifier classifier(model, options);
  report::Progress progress(
      stderr, {.is_enabled = !settings.quiet, .label = "evaluating", .unit = "reviews"});
  train::EvaluationOptions evaluation = arguments.evaluation;
  evaluation.progress = [&](std::int64_t examples, std::int64_t) {
    progress.update(examples, tokenized.size());
    return !is_interrupted();
  };
  const train::Evaluation result = train::evaluate(classifier, tokenized, num_labels, evaluation);
  progress.finish();
  print_result(result, model, settings);
  return 0;
}

std::function<int(const Settings&)> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  add_model_option(app, arguments->model);
  app.add_option("--task", arguments->model.task,
                 "classify, mlm or causal-lm [what the model was saved for, or classify]");
  app.add_option("--data", arguments->data,
                 "directory with train and test as .tsv, .csv or .jsonl (also .zst), an aclImdb "
                 "tree, or reviews")
      ->required();
  app.add_option("--split", arguments->split, "which part of the data [test]");
  app.add_flag("--padded", arguments->is_padded, "pad and mask instead of packing sequences");
  app.add_option("--length", arguments->length, "cut texts to so many tokens [the model's most]");
  app.add_option("--limit", arguments->limit, "use so many examples only, each label in its share");
  app.add_option("--truncation", arguments->truncation, "what to keep: head or head+tail [head]");
  app.add_option("--batch-tokens", arguments->evaluation.batch_tokens, "tokens in a batch [4096]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  app.add_option("--batch-size", arguments->evaluation.batch_examples,
                 "examples in a batch, instead of tokens")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

const Register registration{Command{
    .name = "eval",
    .summary = "accuracy and loss of a classifier, perplexity of a language model",
    .examples = "  lathe eval --model DIR --data ../shared/data/imdb --split test\n"
                "  lathe eval --model DIR --data reviews --json\n"
                "  lathe eval --model DIR --data D --padded --batch-size 32",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli
