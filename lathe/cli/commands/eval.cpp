#include <cmath>
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/evaluation_text.h"
#include "lathe/cli/execution.h"
#include "lathe/cli/memory.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/progress_line.h"
#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/evaluation_json.h"
#include "lathe/experiment/model_list.h"
#include "lathe/experiment/read_data.h"
#include "lathe/report/table.h"
#include "lathe/train/make_source.h"

namespace lathe::cli::eval_command {
namespace {

// Less than this is little beside the program itself.
constexpr std::int64_t kLeastShown = 16'000'000;

struct Arguments {
  ModelArguments model;
  experiment::EvaluateOptions options;
  bool simulates = false;
};

// What both kinds of measurement have in common.
template <typename Result>
void add_costs(nlohmann::ordered_json& line, const Result& result, const Settings& settings) {
  line["examples"] = result.examples;
  line["tokens"] = result.tokens;
  line["seconds"] = settings.seconds();
  line["forward_seconds"] = result.forward_seconds;
  line["tokens_per_second"] = static_cast<double>(result.tokens) / result.forward_seconds;
  line["peak_memory_bytes"] = peak_memory_bytes();
}

template <typename Result>
void print_costs(const Result& result, const Settings& settings) {
  fmt::print("examples   {}\ntokens     {}\n", result.examples, result.tokens);
  fmt::print("forward    {:.2f} s, {:.0f} tokens/s\n", result.forward_seconds,
             static_cast<double>(result.tokens) / result.forward_seconds);
  fmt::print("in all     {:.2f} s, {:.0f} MB at most\n", settings.seconds(),
             static_cast<double>(peak_memory_bytes()) / 1e6);
}

// A model for texts says how it reads them: it may not be how it was trained.
std::string described_reading(const io::Model& model, const experiment::EvaluateOptions& options) {
  const std::int64_t length = train::text_length(model, options.length);
  if (length == 0) return "";
  return fmt::format("{} tokens at most, from the {}", length,
                     data::name(options.truncation.value_or(model.reading.truncation)));
}

void print_result(const experiment::ModelEvaluation& result, const Arguments& arguments,
                  const io::Model& model, const Settings& settings) {
  const auto with_costs = [&](const auto& use) {
    if (result.classes) use(*result.classes);
    if (result.numbers) use(*result.numbers);
    if (result.sets) use(*result.sets);
    if (result.words) use(*result.words);
    if (result.loss) use(*result.loss);
  };
  if (settings.json) {
    nlohmann::ordered_json line = experiment::to_json(result, model);
    if (const std::int64_t length = train::text_length(model, arguments.options.length))
      line["length"] = length;
    with_costs([&](const auto& costs) { add_costs(line, costs, settings); });
    if (result.weight_bytes > 0) line["weight_bytes"] = result.weight_bytes;
    print_json(line);
    return;
  }
  if (result.classes)
    fmt::print("accuracy   {:.4f}  (95 % interval {:.4f} to {:.4f})\n", result.classes->accuracy,
               result.classes->accuracy_low, result.classes->accuracy_high);
  if (result.numbers) print_numbers(*result.numbers, "");
  if (result.sets) print_sets(*result.sets, "");
  if (result.words) print_words(*result.words, "");
  with_costs([](const auto& costs) { fmt::print("loss       {:.4f}\n", costs.loss); });
  if (result.loss)
    fmt::print("perplexity {:.4f}  ({} tokens, {})\n", std::exp(result.loss->loss),
               result.loss->predictions,
               model.task == "mlm" ? "15 % of all, masked" : "each from those before it");
  if (const std::string reading = described_reading(model, arguments.options); !reading.empty())
    fmt::print("texts      {}\n", reading);
  with_costs([&](const auto& costs) { print_costs(costs, settings); });
  if (result.weight_bytes >= kLeastShown)
    fmt::print("weights    {:.1f} MB of that\n", static_cast<double>(result.weight_bytes) / 1e6);
  if (result.classes) print_classes(*result.classes, model.label_names);
  if (result.sets) print_labels(*result.sets, model.label_names);
  if (result.words) print_types(*result.words);
}

void print_result(const experiment::EnsembleEvaluation& result,
                  const std::vector<std::string>& names, const io::Model& first,
                  const Settings& settings) {
  const train::Evaluation& together = result.together;
  if (settings.json) {
    nlohmann::ordered_json line;
    add_classes(line, together, first.label_names);
    line["loss"] = together.loss;
    for (std::size_t i = 0; i < names.size(); ++i)
      line["members"].push_back({{"model", names[i]},
                                 {"accuracy", result.members[i].accuracy},
                                 {"loss", result.members[i].loss}});
    add_costs(line, together, settings);
    print_json(line);
    return;
  }
  fmt::print("accuracy   {:.4f}  (95 % interval {:.4f} to {:.4f}), {} models together\n",
             together.accuracy, together.accuracy_low, together.accuracy_high, names.size());
  fmt::print("loss       {:.4f}\n", together.loss);
  report::Table table({"alone", "accuracy", "loss"});
  for (std::size_t i = 0; i < names.size(); ++i)
    table.row({names[i], fmt::format("{:.4f}", result.members[i].accuracy),
               fmt::format("{:.4f}", result.members[i].loss)});
  fmt::print("{}", table.to_text());
  print_costs(together, settings);
  print_classes(together, first.label_names);
}

int run_ensemble(const std::vector<std::string>& names, const Arguments& arguments,
                 const Settings& settings) {
  if (!arguments.model.task.empty() && arguments.model.task != "classify")
    fail("task {}: several models are measured together as classifiers", arguments.model.task);
  std::vector<io::Model> members;
  for (const std::string& name : names) {
    members.push_back(io::load_model(name, {.task = "classify", .seed = settings.seed}));
    experiment::set_images(members.back(), arguments.model.images);
  }
  Execution execution(settings);
  ProgressLine line(settings);
  const experiment::EnsembleEvaluation result = experiment::evaluate_ensemble(
      members, arguments.options, execution.answering(arguments.simulates), line.callbacks());
  line.finish();
  print_result(result, names, members.front(), settings);
  return 0;
}

int run(Arguments arguments, const Settings& settings) {
  arguments.options.seed = settings.seed;
  const std::vector<std::string> names =
      with_place("model", [&] { return experiment::model_list(arguments.model.model); });
  if (names.size() > 1) return run_ensemble(names, arguments, settings);
  io::Model model =
      experiment::load_for_evaluation(arguments.model.model, arguments.model.task, settings.seed);
  experiment::set_images(model, arguments.model.images);
  Execution execution(settings);
  ProgressLine line(settings);
  const experiment::ModelEvaluation result = experiment::evaluate_on(
      model, arguments.options, execution.answering(arguments.simulates), line.callbacks());
  line.finish();
  print_result(result, arguments, model, settings);
  return 0;
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  experiment::EvaluateOptions& options = arguments->options;
  add_model_option(flags, arguments->model);
  flags.add_option("--task", arguments->model.task,
                   "classify, tokens, mlm or causal-lm [what the model was saved for, or "
                   "classify]");
  flags
      .add_option(
          "--data", options.data,
          "directory with train and test as .tsv, .csv or .jsonl (also .zst), one such table, an "
          "aclImdb tree, MNIST's idx files, folders of .png, or reviews; .conll, .txt or .jsonl "
          "of words for tokens")
      .required();
  flags.add_option("--split", options.split,
                   "which part of the data [test, or all of a single table]");
  flags.add_flag("--padded", options.is_padded, "pad and mask instead of packing sequences");
  flags.add_option("--cache", options.cache,
                   "let a causal language model attend to keys and values as generate --cache "
                   "keeps them: float32, bf16 or int:8 [float32]");
  flags.add_flag("--simulate", arguments->simulates, kSimulateHelp);
  add_column_options(flags, options.columns);
  add_image_option(flags, arguments->model.images);
  flags
      .add_option("--length", options.length,
                  "cut texts to so many tokens [as the model was trained, or its most]")
      .at_least(0);
  flags.add_option("--limit", options.limit, "use so many examples only, each label in its share")
      .at_least(0);
  flags.add_option(
      "--truncation",
      [&options](const std::string& name) { options.truncation = data::parse_truncation(name); },
      "what to keep: head or head+tail [as the model was trained]");
  flags
      .add_option("--batch-tokens", options.batch_tokens,
                  "tokens in a batch [4096, on a GPU 16384; of a language model 1024]")
      .range(1, std::int64_t{1} << 24);
  flags.add_option("--batch-size", options.batch_examples, "examples in a batch, instead of tokens")
      .range(1, std::int64_t{1} << 20);
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

const Register registration{Command{
    .name = "eval",
    .summary = "accuracy and loss of a classifier, perplexity of a language model",
    .examples = "  lathe eval --model DIR --data ../shared/data/imdb --split test\n"
                "  lathe eval --model DIR --data reviews --json\n"
                "  lathe eval --model DIR --data D --padded --batch-size 32\n"
                "  lathe eval --model A,B,C --data D    # the mean of their probabilities",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::eval_command
