#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/lora_training.h"
#include "lathe/cli/memory.h"
#include "lathe/cli/output_directory.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/data/reviews.h"
#include "lathe/data/validation_split.h"
#include "lathe/report/progress.h"
#include "lathe/report/table.h"
#include "lathe/train/classification_report.h"
#include "lathe/train/train_model.h"
#include "lathe/train/training_feed.h"

namespace lathe::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The recipe for whoever asks for none: two passes, each with a rate that rises and falls. On
// held-out reviews it did as well as three passes with one fall, in two thirds of the time.
constexpr std::int64_t kDefaultEpochs = 2, kDefaultCycles = 2;

// Rows held out where something is chosen by them and no number was given.
constexpr std::int64_t kHeldOut = 2000;

struct Arguments {
  std::string model, data, vocabulary;
  std::string split = "train";
  std::string objective = "classify";
  std::int64_t epochs = kDefaultEpochs, cycles = 0, steps = 0, batch_size = 32, batch_tokens = 0,
               accumulate = 1;
  std::string optimizer = "adamw", schedule = "linear";
  double lr = 2e-4, warmup = 0.06, weight_decay = 0.01, clip = 1.0, momentum = 0.9;
  std::int64_t validation = 0, validate_every = 0, patience = 0;
  std::vector<std::string> freeze;
  std::string lora, teacher;
  double teacher_weight = 0.5, temperature = 2;
  std::int64_t length = 0, limit = 0, checkpoint_every = 0;
  std::string truncation = "head";
  double mask = 0.15;
  bool no_dropout = false;
  std::uint64_t seed = 0;
  // How it runs, but not what comes out.
  std::string out;
  bool force = false, resume = false, no_eval = false;
  int keep = 2;
};

// Everything that decides the weights, by the name of its flag: what run.json records.
template <typename Visit>
void each_setting(Arguments& arguments, Visit visit) {
  visit("--model", arguments.model);
  visit("--data", arguments.data);
  visit("--vocabulary", arguments.vocabulary);
  visit("--split", arguments.split);
  visit("--objective", arguments.objective);
  visit("--epochs", arguments.epochs);
  visit("--cycles", arguments.cycles);
  visit("--steps", arguments.steps);
  visit("--batch-size", arguments.batch_size);
  visit("--batch-tokens", arguments.batch_tokens);
  visit("--accumulate", arguments.accumulate);
  visit("--optimizer", arguments.optimizer);
  visit("--schedule", arguments.schedule);
  visit("--lr", arguments.lr);
  visit("--warmup", arguments.warmup);
  visit("--weight-decay", arguments.weight_decay);
  visit("--clip", arguments.clip);
  visit("--momentum", arguments.momentum);
  visit("--validation", arguments.validation);
  visit("--validate-every", arguments.validate_every);
  visit("--patience", arguments.patience);
  visit("--freeze", arguments.freeze);
  visit("--lora", arguments.lora);
  visit("--teacher", arguments.teacher);
  visit("--teacher-weight", arguments.teacher_weight);
  visit("--temperature", arguments.temperature);
  visit("--length", arguments.length);
  visit("--limit", arguments.limit);
  visit("--checkpoint-every", arguments.checkpoint_every);
  visit("--truncation", arguments.truncation);
  visit("--mask", arguments.mask);
  visit("--no-dropout", arguments.no_dropout);
  visit("--seed", arguments.seed);
}

// A resumed run may be started from another working directory.
std::string absolute_path(const std::string& given) {
  std::error_code error;
  if (given.empty() || !fs::exists(given, error)) return given;
  const fs::path path = fs::canonical(given, error);
  return error ? given : path.string();
}

json to_json(Arguments arguments) {
  for (std::string* path :
       {&arguments.model, &arguments.data, &arguments.vocabulary, &arguments.teacher})
    *path = absolute_path(*path);
  json result = json::object();
  each_setting(arguments, [&](const char* name, const auto& value) { result[name] = value; });
  return result;
}

// Takes the settings of the run in a directory; a flag that says otherwise is refused, because the
// weights would be neither run's.
void take_settings(Arguments& arguments, const json& stored, const CLI::App& app) {
  const json given = to_json(arguments);
  each_setting(arguments, [&](const char* name, auto& value) {
    const auto found = stored.find(name);
    if (found == stored.end()) return;
    const CLI::Option* option = app.get_option_no_throw(name);
    if (option != nullptr && option->count() > 0 && given[name] != *found)
      throw UserError(fmt::format("{} {}: the run in {} was started with {}", name,
                                  given[name].dump(), arguments.out, found->dump()),
                      "leave the flag out to go on with it, or start another run");
    try {
      found->get_to(value);
    } catch (const json::exception&) {
      fail("{}: \"{}\" is {}, which is not a value of its kind",
           (fs::path(arguments.out) / "run.json").string(), name, found->dump());
    }
  });
}

bool has_split(const std::string& data, const std::string& split) {
  if (data == "reviews" || data.starts_with("reviews:")) return true;
  std::error_code error;
  for (fs::directory_iterator entry(data, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name == split || name.starts_with(split + ".")) return true;
  }
  return false;
}

data::Dataset load_examples(const Arguments& arguments) {
  // "train,unsup" is both, one after the other.
  data::Dataset examples;
  for (std::size_t begin = 0; begin <= arguments.split.size();) {
    const std::size_t end = std::min(arguments.split.find(',', begin), arguments.split.size());
    data::Dataset part = data::load_dataset(
        arguments.data, arguments.split.substr(begin, end - begin), is_interrupted);
    if (part.label_names.size() > examples.label_names.size())
      examples.label_names = part.label_names;
    std::move(part.examples.begin(), part.examples.end(), std::back_inserter(examples.examples));
    begin = end + 1;
  }
  return data::take_some(std::move(examples), arguments.limit);
}

struct Examples {
  data::Dataset train, validation;
};

// The same rows are held out whatever the seed, so that runs can be compared.
Examples hold_out(data::Dataset all, std::int64_t count) {
  if (count == 0) return {.train = std::move(all), .validation = {}};
  const auto size = static_cast<std::int64_t>(all.examples.size());
  if (count >= size) fail("--validation {}: the data has {} examples only", count, size);
  const data::ValidationSplit split = data::split_validation(all.labels(), count, 0);
  return {.train = data::select(all, split.train),
          .validation = data::select(all, split.validation)};
}

io::Model load(const Arguments& arguments, const data::Dataset& examples) {
  io::LoadOptions options{
      .task = train::task_of(arguments.objective), .seed = arguments.seed, .with_masters = true};
  if (arguments.objective == "regression") options.num_labels = 1;
  if (arguments.objective == "classify") options.num_labels = std::max(2, examples.num_labels());
  std::shared_ptr<const data::Tokenizer> tokenizer;
  // A model made by name has no vocabulary of its own.
  if (const auto named = models::find_named_model(arguments.model)) {
    const std::vector<AttributeSpec>& keys = named->family->config;
    if (std::none_of(keys.begin(), keys.end(),
                     [](const AttributeSpec& key) { return key.name == "vocab_size"; }))
      fail("{}: does not read text", arguments.model);
    const bool is_reviews = arguments.data == "reviews" || arguments.data.starts_with("reviews:");
    if (!arguments.vocabulary.empty())
      tokenizer = data::load_tokenizer(arguments.vocabulary);
    else if (is_reviews)
      tokenizer = data::reviews_tokenizer();
    else
      throw UserError(fmt::format("{}: a model made by name has no vocabulary", arguments.model),
                      "give --vocabulary DIR, a directory with a vocab.txt or tokenizer.json");
    options.config = {{"vocab_size", std::int64_t{tokenizer->vocabulary_size()}}};
  } else if (!arguments.vocabulary.empty()) {
    fail("--vocabulary is for models made by name: {} has its own", arguments.model);
  }
  io::Model model = io::load_model(arguments.model, options);
  compress::unpack_model(model);
  model.tokenizer = std::move(tokenizer);
  const bool has_names = !examples.label_names.empty() && examples.label_names[0] != "0";
  if (arguments.objective == "classify" && has_names) model.label_names = examples.label_names;
  return model;
}

train::OptimizerKind parse_optimizer(const std::string& name) {
  if (name == "adamw") return train::OptimizerKind::AdamW;
  if (name == "sgd") return train::OptimizerKind::Sgd;
  throw unknown_name("optimizer", name, {"adamw", "sgd"});
}

train::TrainOptions to_options(const Arguments& arguments, const Settings& settings,
                               ThreadPool& pool) {
  train::TrainOptions options;
  options.trainer = {.epochs = arguments.epochs,
                     .max_steps = arguments.steps,
                     .batch_examples = arguments.batch_size,
                     .batch_tokens = arguments.batch_tokens,
                     .accumulation = arguments.accumulate,
                     .learning_rate = arguments.lr,
                     .decay = train::parse_decay(arguments.schedule),
                     .warmup = arguments.warmup,
                     .cycles = arguments.cycles,
                     .seed = arguments.seed,
                     .validate_every = arguments.validate_every,
                     .patience = arguments.patience,
                     .checkpoint_every = arguments.checkpoint_every};
  options.graph.objective = arguments.objective;
  options.graph.optimizer = parse_optimizer(arguments.optimizer);
  options.graph.momentum = arguments.momentum;
  options.graph.weight_decay = arguments.weight_decay;
  options.graph.max_norm = arguments.clip;
  options.graph.freeze = arguments.freeze;
  options.graph.dropout = !arguments.no_dropout;
  options.mask_share = arguments.mask;
  options.length = arguments.length;
  options.truncation = data::parse_truncation(arguments.truncation);
  options.execution = settings.execution(pool);
  options.keep_checkpoints = arguments.keep;
  options.finish = [](io::Model model) {
    compress::pack_model(model);
    return model;
  };
  return options;
}

void print_recipe(const Arguments& arguments, const io::Model& model, const Examples& examples) {
  const std::string batch = arguments.batch_tokens > 0
                                ? fmt::format("{} tokens", arguments.batch_tokens)
                                : fmt::format("{} examples", arguments.batch_size);
  const std::string warmup = arguments.warmup < 1 ? fmt::format("{:g} %", 100 * arguments.warmup)
                                                  : fmt::format("{} steps", arguments.warmup);
  fmt::print(stderr, "{} for {}: {} examples, {} held out\n", arguments.model, arguments.objective,
             examples.train.examples.size(), examples.validation.examples.size());
  fmt::print(
      stderr, "  {} epochs, {} a batch{}, seed {}\n", arguments.epochs, batch,
      arguments.accumulate > 1 ? fmt::format(", {} batches a step", arguments.accumulate) : "",
      arguments.seed);
  fmt::print(stderr, "  {} at {:g}, {} schedule{}, warm-up {}, clipping {:g}\n",
             arguments.optimizer, arguments.lr, arguments.schedule,
             arguments.cycles > 1 ? fmt::format(" in {} cycles", arguments.cycles) : "", warmup,
             arguments.clip);
  fmt::print(stderr, "  weight decay {:g} on matrices, texts cut to {} tokens from the {}\n",
             arguments.weight_decay,
             arguments.length == 0 ? train::max_length(model) : arguments.length,
             arguments.truncation);
}

void print_classes(const train::Evaluation& result, const std::vector<std::string>& labels) {
  report::Table table({"label", "examples", "predicted", "precision", "recall", "F1"});
  const std::vector<train::ClassScore> scores = train::class_scores(result.confusion);
  for (std::size_t i = 0; i < scores.size(); ++i)
    table.row({labels[i], fmt::format("{}", scores[i].examples),
               fmt::format("{}", scores[i].predicted), fmt::format("{:.4f}", scores[i].precision),
               fmt::format("{:.4f}", scores[i].recall), fmt::format("{:.4f}", scores[i].f1)});
  fmt::print("\n{}\nmean F1    {:.4f}\n", table.to_text(), train::macro_f1(scores));
  fmt::print("true label by row, predicted by column\n");
  for (std::size_t row = 0; row < result.confusion.size(); ++row)
    fmt::print("  {:<12} {:>8}\n", labels[row], fmt::join(result.confusion[row], " "));
}

std::optional<train::Evaluation> evaluate_test(const Arguments& arguments, const io::Model& model,
                                               const Settings& settings,
                                               const train::TrainOptions& options) {
  if (arguments.no_eval || arguments.objective != "classify" || !has_split(arguments.data, "test"))
    return std::nullopt;
  const data::Dataset test =
      data::take_some(data::load_dataset(arguments.data, "test", is_interrupted), arguments.limit);
  const std::int64_t length = options.length == 0 ? train::max_length(model) : options.length;
  const data::TokenizedDataset tokens =
      data::tokenize(test, *train::load_tokenizer(model), length, options.truncation,
                     *options.execution.pool, is_interrupted);
  train::ClassifierOptions running;
  running.execution = options.execution;
  train::TextClassifier classifier(model, running);
  report::Progress progress(stderr,
                            {.is_enabled = !settings.quiet, .label = "testing", .unit = "texts"});
  train::EvaluationOptions evaluation;
  evaluation.progress = [&](std::int64_t done, std::int64_t) {
    progress.update(done, tokens.size());
    return !is_interrupted();
  };
  return train::evaluate(classifier, tokens, static_cast<std::int64_t>(model.label_names.size()),
                         evaluation);
}

void print_result(const train::TrainOutcome& outcome, const std::optional<train::Evaluation>& test,
                  double first_step, const Arguments& arguments, const Settings& settings) {
  const train::TrainingResult& result = outcome.result;
  const double rate = static_cast<double>(result.tokens) / std::max(1e-9, result.seconds);
  const bool is_early = result.ending == train::Ending::StoppedEarly;
  if (settings.json) {
    nlohmann::ordered_json line;
    line["train_loss"] = result.loss;
    if (test) {
      line["accuracy"] = test->accuracy;
      line["accuracy_low"] = test->accuracy_low;
      line["accuracy_high"] = test->accuracy_high;
      line["test_loss"] = test->loss;
      line["f1"] = train::macro_f1(train::class_scores(test->confusion));
      line["labels"] = outcome.model.label_names;
      line["confusion"] = test->confusion;
    }
    if (result.progress.best_score) {
      line["best_score"] = *result.progress.best_score;
      line["best_step"] = result.progress.best_step;
    }
    line["steps"] = result.progress.step;
    line["stopped_early"] = is_early;
    line["tokens"] = result.progress.tokens;
    line["seconds"] = settings.seconds();
    line["train_seconds"] = result.seconds;
    line["first_step_seconds"] = first_step;
    line["tokens_per_second"] = rate;
    line["peak_memory_bytes"] = peak_memory_bytes();
    if (!arguments.out.empty()) line["out"] = arguments.out;
    fmt::print("{}\n", line.dump(-1, ' ', false, json::error_handler_t::replace));
    return;
  }
  fmt::print("train loss {:.4f}\n", result.loss);
  fmt::print("steps      {}{}\n", result.progress.step, is_early ? ", stopped early" : "");
  fmt::print("training   {:.1f} s, {:.0f} tokens/s\n", result.seconds, rate);
  if (result.progress.best_score)
    fmt::print("best       {:.4f} at step {}\n", *result.progress.best_score,
               result.progress.best_step);
  if (test) {
    fmt::print("accuracy   {:.4f}  (95 % interval {:.4f} to {:.4f}, test split)\n", test->accuracy,
               test->accuracy_low, test->accuracy_high);
    print_classes(*test, outcome.model.label_names);
  }
  if (!arguments.out.empty()) fmt::print("written to {}\n", arguments.out);
}

// A run needs its directory to itself; what was there may go only when it is one of ours.
void clear_output(const Arguments& arguments) {
  check_output_directory(arguments.out, arguments.force);
  std::error_code error;
  if (!fs::exists(arguments.out, error)) return;
  if (absolute_path(arguments.model).starts_with(absolute_path(arguments.out)))
    fail("--out {}: holds the model that is to be trained", arguments.out);
  const fs::path out = arguments.out;
  if (!fs::is_empty(out, error) && !fs::exists(out / "run.json", error) && !io::is_checkpoint(out))
    fail("--out {}: holds neither a run nor a model: remove it yourself", arguments.out);
  fs::remove_all(out, error);
  if (error) fail("--out {}: cannot be removed: {}", arguments.out, error.message());
}

std::optional<train::RunDirectory> take_up_run(Arguments& arguments, const CLI::App& app) {
  if (!arguments.resume) return std::nullopt;
  if (arguments.out.empty()) fail("--resume needs --out, the directory of the run");
  std::optional<train::RunDirectory> directory = train::RunDirectory::open(arguments.out);
  if (directory) {
    take_settings(arguments, directory->configuration(), app);
    for (const std::string& line : directory->skipped())
      fmt::print(stderr, "warning: passed over a damaged checkpoint: {}\n", line);
  }
  return directory;
}

int run(Arguments arguments, const Settings& settings, const CLI::App& app) {
  arguments.seed = settings.seed;
  std::optional<train::RunDirectory> directory = take_up_run(arguments, app);
  if (arguments.cycles == 0)
    arguments.cycles = directory || app.get_option("--epochs")->count() > 0 ? 1 : kDefaultCycles;
  if (arguments.model.empty()) fail("lathe train: --model is required");
  if (arguments.data.empty()) fail("lathe train: --data is required");
  if (!directory && !arguments.out.empty() && !arguments.resume)
    check_output_directory(arguments.out, arguments.force);

  ThreadPool pool(settings.threads);
  train::TrainOptions options = to_options(arguments, settings, pool);
  if (!arguments.lora.empty() && !arguments.freeze.empty())
    fail("--freeze: with --lora everything but its paths and fresh heads is frozen already");
  const compress::LoraOptions lora =
      with_place("--lora", [&] { return compress::parse_lora_options(arguments.lora); });
  data::Dataset all = load_examples(arguments);
  const bool is_choosing = arguments.patience > 0 || arguments.validate_every > 0;
  if (is_choosing && arguments.validation == 0)
    arguments.validation = std::min(kHeldOut, static_cast<std::int64_t>(all.examples.size()) / 5);
  io::Model model =
      directory && directory->checkpoint() ? directory->checkpoint()->model : load(arguments, all);
  if (!arguments.lora.empty())
    options.graph.train_only = prepare_lora(
        model, lora, options.graph,
        directory && directory->checkpoint() ? &directory->checkpoint()->state : nullptr,
        arguments.seed);
  std::optional<io::Model> teacher;
  if (!arguments.teacher.empty()) {
    if (arguments.objective != "classify") fail("--teacher: is for --objective classify");
    teacher = io::load_model(arguments.teacher, {.task = "classify", .seed = arguments.seed});
    if (!teacher->fresh.empty())
      fail("--teacher {}: has no trained classifier: tensor \"{}\" is missing", arguments.teacher,
           teacher->fresh.front());
    options.graph.distillation = {&*teacher, arguments.teacher_weight, arguments.temperature};
  }
  const Examples examples = hold_out(std::move(all), arguments.validation);
  if (!arguments.out.empty() && !directory) {
    if (!arguments.resume || fs::exists(fs::path(arguments.out) / "manifest.json"))
      clear_output(arguments);
    directory = train::RunDirectory::create(arguments.out, to_json(arguments));
  }
  if (!settings.quiet) print_recipe(arguments, model, examples);
  if (!settings.quiet && !arguments.lora.empty())
    print_trained_parameters(model.graph, options.graph.train_only);
  if (!settings.quiet && directory && directory->checkpoint())
    fmt::print(stderr, "  going on after step {}\n", directory->checkpoint()->progress.step);

  report::Progress progress(stderr,
                            {.is_enabled = !settings.quiet, .label = "training", .unit = "steps"});
  double first_step = 0, loss = 0, tokens = 0, seconds = 0;
  train::TrainCallbacks callbacks;
  callbacks.step = [&](const train::StepReport& report) {
    if (first_step == 0) first_step = settings.seconds();
    // A single batch's loss jumps about: what is shown follows it slowly.
    loss = tokens == 0 ? report.loss : 0.95 * loss + 0.05 * report.loss;
    tokens += static_cast<double>(report.tokens);
    seconds += report.seconds;
    progress.update(report.step, report.num_steps,
                    fmt::format("loss {:.4f}, {:.0f} tokens/s", loss, tokens / seconds));
  };
  callbacks.validation = [&](const train::Validation& validation) {
    if (settings.quiet) return;
    fmt::print(
        stderr, "\nstep {}: validation loss {:.4f}{}\n", validation.step, validation.loss,
        validation.classes ? fmt::format(", accuracy {:.4f}", validation.classes->accuracy) : "");
  };
  callbacks.should_stop = is_interrupted;
  const train::TrainOutcome outcome =
      train::train_model(std::move(model), examples.train, examples.validation, options, callbacks,
                         directory ? &*directory : nullptr);
  progress.finish();
  if (outcome.result.ending == train::Ending::Interrupted) {
    if (directory)
      fmt::print(stderr,
                 "interrupted after step {} of {}; to go on:\n  lathe train --resume --out {}\n",
                 outcome.result.progress.step, outcome.result.num_steps, arguments.out);
    else
      fmt::print(stderr, "interrupted after step {} of {}; nothing was kept without --out\n",
                 outcome.result.progress.step, outcome.result.num_steps);
    return 128 + interrupting_signal();
  }
  if (directory && !arguments.lora.empty())
    save_trained_adapter(arguments.out, outcome.model, options.graph.train_only,
                         absolute_path(arguments.model));
  const std::optional<train::Evaluation> test =
      evaluate_test(arguments, outcome.model, settings, options);
  print_result(outcome, test, first_step, arguments, settings);
  return 0;
}

void add_data_options(CLI::App& app, Arguments& arguments) {
  app.add_option("--model", arguments.model, "model directory, or a builder such as bert-tiny");
  app.add_option("--data", arguments.data,
                 "directory with train and test as .tsv, .csv or .jsonl (also .zst), an aclImdb "
                 "tree, or reviews");
  app.add_option("--vocabulary", arguments.vocabulary,
                 "directory with the vocabulary for a builder's model");
  app.add_option("--split", arguments.split, "what to train on, such as train,unsup [train]");
  app.add_option("--limit", arguments.limit,
                 "train and test on so many examples only, each label in its share");
  app.add_option("--length", arguments.length, "cut texts to so many tokens [the model's most]");
  app.add_option("--truncation", arguments.truncation, "what to keep: head or head+tail [head]");
  app.add_option("--validation", arguments.validation,
                 "hold out so many examples and keep the weights that do best on them");
  app.add_option("--validate-every", arguments.validate_every, "steps [an epoch]");
  app.add_option("--patience", arguments.patience,
                 "stop after so many validations that are no better");
}

void add_recipe_options(CLI::App& app, Arguments& arguments) {
  const auto positive = CLI::Range(std::int64_t{1}, std::int64_t{1} << 40);
  app.add_option("--objective", arguments.objective,
                 "classify, mlm, causal-lm or regression [classify]");
  app.add_option("--epochs", arguments.epochs, "times through the data [2]")->check(positive);
  app.add_option("--steps", arguments.steps, "stop after so many steps")->check(positive);
  app.add_option("--batch-size", arguments.batch_size, "examples in a batch [32]")->check(positive);
  app.add_option("--batch-tokens", arguments.batch_tokens, "tokens in a batch, instead")
      ->check(positive);
  app.add_option("--accumulate", arguments.accumulate, "batches a step [1]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("--optimizer", arguments.optimizer, "adamw or sgd [adamw]");
  app.add_option("--lr", arguments.lr, "learning rate at its highest [2e-4]");
  app.add_option("--schedule", arguments.schedule, "constant, linear or cosine [linear]");
  app.add_option("--warmup", arguments.warmup, "share of a cycle's steps, or steps [0.06]");
  app.add_option("--cycles", arguments.cycles,
                 "times the rate rises and falls in the run [1; 2 where --epochs is left out]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("--weight-decay", arguments.weight_decay, "on matrices [0.01]");
  app.add_option("--momentum", arguments.momentum, "of sgd [0.9]");
  app.add_option("--clip", arguments.clip, "largest norm of a gradient; 0: none [1]");
  app.add_option("--mask", arguments.mask, "share of tokens to guess, for mlm [0.15]");
  app.add_option("--freeze", arguments.freeze, "pattern of parameters that stay as they are")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--lora", arguments.lora,
                 "train paths of low rank beside linears, not the model: "
                 "rank=8,alpha=16,dropout=0,targets=PATTERN [encoder]");
  app.add_option("--teacher", arguments.teacher,
                 "classifier to learn from as well, such as the float model of a quantized one");
  app.add_option("--teacher-weight", arguments.teacher_weight,
                 "of the teacher's part of the loss [0.5]");
  app.add_option("--temperature", arguments.temperature,
                 "what both models' logits are divided by [2]");
  app.add_flag("--no-dropout", arguments.no_dropout, "train without dropout");
}

std::function<int(const Settings&)> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  add_data_options(app, *arguments);
  add_recipe_options(app, *arguments);
  app.add_option("--out", arguments->out, "directory for the model, checkpoints and metrics");
  app.add_flag("--resume", arguments->resume, "go on with the run in --out");
  app.add_flag("--force", arguments->force, "replace what is in --out");
  app.add_option("--checkpoint-every", arguments->checkpoint_every, "steps [an epoch]");
  app.add_option("--keep", arguments->keep, "checkpoints to keep, besides the best [2]");
  app.add_flag("--no-eval", arguments->no_eval, "do not evaluate on the test split at the end");
  return [arguments, &app](const Settings& settings) { return run(*arguments, settings, app); };
}

const Register registration{Command{
    .name = "train",
    .summary = "train a model on texts",
    .examples = "  lathe train --model DIR --data ../shared/data/imdb --out run\n"
                "  lathe train --resume --out run\n"
                "  lathe train --model DIR --data D --lora rank=8,targets=query|value --out run\n"
                "  lathe train --model bert-tiny --data reviews --epochs 3 --json\n"
                "  lathe train --model bert-tiny --objective mlm --split train,unsup --data D "
                "--vocabulary DIR --out run",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli
