// Searches over what networks are and what their numbers are: flags become options, the library
// does the work.
#include <charconv>
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/resumable_run.h"
#include "lathe/cli/study_arguments.h"
#include "lathe/core/error.h"
#include "lathe/search/front_comparison.h"
#include "lathe/search/search_flow.h"
#include "lathe/search/search_report.h"
#include "lathe/search/space_file.h"

namespace lathe::cli::search_command {
namespace {

struct Arguments {
  search::SearchOptions options;
  std::vector<std::string> samplers;
  std::string time;
  std::vector<std::string> limits;  ///< NAME=VALUE
};

// `--max parameters=5e6`: the most of a cost.
void take_limits(const std::vector<std::string>& texts, search::SearchOptions& options) {
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    search::find_cost_kind(name);
    double value = 0;
    const char* const end = text.data() + text.size();
    const char* const begin = equals == std::string::npos ? end : text.data() + equals + 1;
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc{} || stop != end || begin == end)
      fail("--max {}: expected NAME=NUMBER", text);
    // Two limits of one cost contradict each other, or one is for nothing.
    bool is_new = true;
    const auto set = [&](std::optional<double>& bits) {
      is_new = !bits;
      bits = value;
    };
    if (name == "weight-bits")
      set(options.max_weight_bits);
    else if (name == "data-bits")
      set(options.max_data_bits);
    else
      is_new = options.limits.emplace(name, value).second;
    if (!is_new) fail("--max {}: {} is limited twice", text, name);
  }
}

nlohmann::ordered_json to_json(const search::StudySummary& study) {
  nlohmann::ordered_json line{{"sampler", study.sampler},   {"trials", study.trials},
                              {"complete", study.complete}, {"given_up", study.given_up},
                              {"failed", study.failed},     {"at_chance", study.at_chance},
                              {"copied", study.copied}};
  if (study.best_trial < 0) return line;
  line["best"] = study.best;
  line["best_trial"] = study.best_trial;
  line["mean"] = study.mean;
  line["deviation"] = study.deviation;
  line["least"] = study.least;
  if (study.weight_bits) line["best_weight_bits"] = *study.weight_bits;
  if (study.data_bits) line["best_data_bits"] = *study.data_bits;
  if (study.rounded_weights) line["best_rounded_weights"] = *study.rounded_weights;
  return line;
}

void print_result(const search::SearchResult& result, const Arguments& arguments,
                  const Settings& settings) {
  const std::string out = arguments.options.out.string();
  if (settings.json) {
    nlohmann::ordered_json line{{"out", out}, {"measured_on", result.measured_on}};
    for (const search::SearchResult::Study& study : result.studies)
      line["studies"].push_back(to_json(search::summarize(study)));
    for (const search::Finalist& finalist : result.finalists) {
      const nlohmann::json found = finalist.found ? nlohmann::json(*finalist.found) : nullptr;
      line["finalists"].push_back({{"sampler", finalist.sampler},
                                   {"trial", finalist.trial},
                                   {"found", found},
                                   {"mean", finalist.mean()},
                                   {"accuracies", finalist.accuracies},
                                   {"losses", finalist.losses},
                                   {"parameters", finalist.parameters},
                                   {"weight_bits", finalist.bits.weights},
                                   {"data_bits", finalist.bits.data},
                                   {"costs", finalist.costs},
                                   {"trained_on_all", finalist.whole_accuracies},
                                   {"all_layers_alike", finalist.is_uniform},
                                   {"candidate", search::to_json(finalist.candidate)}});
    }
    if (!result.left_out.empty()) line["left_out"] = result.left_out;
    if (result.test_accuracy) line["test_accuracy"] = *result.test_accuracy;
    if (!result.longer_accuracies.empty()) line["longer"] = result.longer_accuracies;
    if (!result.finalists.empty() && !result.finalists.front().whole_accuracies.empty())
      line["trained_on_all"] = result.finalists.front().whole_accuracies;
    line["seconds"] = result.seconds;
    print_json(line);
    return;
  }
  fmt::print("{}\n", search::studies_table(result).to_text());
  if (result.finalists.empty()) {
    fmt::print("no trial was trained to its end\n");
    return;
  }
  fmt::print("{}\naccuracies are of {}; guessing reaches {:.4f} by luck\n",
             search::finalists_table(result).to_text(), result.measured_on, result.chance_level);
  for (const std::string& each : result.left_out) fmt::print("could not be trained: {}\n", each);
  if (result.is_precision)
    fmt::print("\n{}\n", search::formats_table(result.finalists.front().candidate).to_text());
  if (result.has_curves) fmt::print("{}\n", search::curves_table(result).to_text());
  if (!result.longer_accuracies.empty())
    fmt::print("trained for longer, accuracy after each epoch: {:.4f}\n",
               fmt::join(result.longer_accuracies, " "));
  if (result.test_accuracy) fmt::print("test accuracy {:.4f}\n", *result.test_accuracy);
  if (search::is_compared_on_test(result))
    fmt::print("\ntrained on all of train\n{}\n", search::whole_table(result).to_text());
  else if (const std::vector<double>& whole = result.finalists.front().whole_accuracies;
           !whole.empty())
    fmt::print("trained on all of train, test accuracies {:.4f}, mean {:.4f}\n",
               fmt::join(whole, " "), search::mean(whole));
  if (const auto rivals = search::compare_with_uniform(result); !rivals.empty())
    fmt::print("{}{}\n\n", search::front_table(rivals, result.front).to_text(),
               search::front_summary(rivals));
  fmt::print("written to {}: best (the model), report.html, study.db\n", out);
}

int run(Arguments arguments, const Settings& settings) {
  search::SearchOptions& options = arguments.options;
  options.seed = settings.seed;
  if (!arguments.samplers.empty()) options.samplers = arguments.samplers;
  if (!arguments.time.empty()) options.time = parse_duration("--time", arguments.time);
  take_limits(arguments.limits, options);
  return run_resumable(
      settings,
      [&](const engine::ExecutionOptions& execution, const experiment::Callbacks& callbacks) {
        return search::run_search(options, execution, callbacks);
      },
      [&](const search::SearchResult& result) { print_result(result, arguments, settings); },
      "the same command");
}

std::string cost_names() {
  std::vector<std::string> names;
  for (const search::CostKind& kind : search::cost_kinds()) names.push_back(kind.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// What all kinds of search are told.
void add_search_options(Flags flags, Arguments& arguments) {
  search::SearchOptions& options = arguments.options;
  flags.add_option("--data", options.data, "directory with train and test, or reviews").required();
  flags.add_option("--space", options.space,
                   fmt::format("TOML file of what to choose from, or one of: {} [{}]",
                               fmt::join(search::shipped_spaces(), ", "), options.space));
  flags.add_option("--length", options.length, "cut texts to so many tokens").at_least(0);
  flags.add_option("--truncation", options.truncation,
                   "what to keep of longer texts: head or head+tail [as the model has it]");
  add_image_option(flags, options.images);
  flags.add_option("--augment", options.augment,
                   "what training does to images: flip, shift=4, or both with a comma between");
  flags.add_option("--limit", options.limit, "train on so many examples only").at_least(0);
  flags.add_option("--objective-split", options.objective_split,
                   "measure on this split [rows held out of train]");
  flags
      .add_option("--validation", options.validation,
                  "rows of train to hold out and measure on [5000, a fifth at most]")
      .at_least(1);
  flags
      .add_option("--sampler", arguments.samplers,
                  "how points are proposed, once for each study: auto, grid, random, "
                  "tpe:gamma=0.3 [auto]")
      .repeatable()
      .one_word();
  flags.add_option("--trials", options.trials, "trials of each study [100]").range(1, 1'000'000);
  flags
      .add_option("--halving", options.halving,
                  "of so many trials one goes on at a rung; 0: all train to their end [3]")
      .range(0, 100);
  flags.add_option("--rungs", options.rungs, "times a trial is looked at, the end included [3]")
      .range(1, 10);
  flags.add_option("--rung-rows", options.rung_rows, "rows to judge by on the way [2000]")
      .at_least(1);
  flags.add_option("--finalists", options.finalists, "best trials to train again [5]")
      .range(1, 1000);
  flags.add_option("--seeds", options.seeds, "times each of them [2]").range(1, 1000);
  flags
      .add_option("--patience", options.patience,
                  "end a study after so many trials without a better one")
      .range(1, 1'000'000);
  flags
      .add_option("--narrow", options.narrow,
                  "then try a grid of so many points, of the values that good trials had [0]")
      .range(0, 1'000'000);
  flags.add_option("--above", options.above, "results that make a trial good [0]");
  flags.add_option("--epochs", options.epochs, "of training, instead of the space's")
      .range(0, 1'000'000);
  flags.add_option("--teacher", options.teacher,
                   "directories of classifiers to learn from as well, separated by commas");
  flags
      .add_option("--max", arguments.limits,
                  fmt::format("the most of a cost, NAME=NUMBER; of: {}", cost_names()))
      .repeatable()
      .one_word();
  flags.add_option("--front", options.front,
                   "make this cost small as well: accuracies that none beats in both");
  flags.add_option("--longer", options.longer, "then train the chosen one for so many epochs [0]")
      .range(0, 1'000'000);
  flags
      .add_option("--whole", options.whole,
                  "then train it so often on all of train, and test each; with --front or "
                  "--uniform all that are left [0]")
      .range(0, 1000);
  flags
      .add_option("--whole-epochs", options.whole_epochs,
                  "of that training, behind a compression [as the trials']")
      .range(0, 1'000'000);
  flags.add_option("--whole-teacher", options.whole_teacher,
                   "what that training learns from, instead of --teacher");
  flags.add_option("--target", options.target, "end a study at such a result");
  flags.add_option("--time", arguments.time, "start no trial after so long, such as 10m");
  flags.add_option("--jobs", options.jobs, "trials side by side [1]").range(1, 64);
  flags.add_option("--storage", options.storage,
                   "of the studies, such as postgresql://host/base [a file in --out]");
  flags.add_option("--study", options.study, "name of the search in --storage");
  flags.add_option("--out", options.out, "directory to write, or to go on in").required();
  flags.add_flag("--force", options.replaces, "replace the search in --out");
  flags.add_flag("--eval,!--no-eval", options.is_tested, "test the chosen model [yes]");
}

// Models that a space builds.
void add_builder_options(Flags flags, search::SearchOptions& options) {
  flags.add_option("--tokenizer", options.tokenizer, "directory with the models' tokenizer");
  flags.add_option("--from", options.from,
                   "directory of a model that all take their weights from, cut or grown to size");
  flags
      .add_option("--supernet", options.supernet,
                  "or first train such weights on words, for so many epochs [0]")
      .range(0, 1'000'000);
}

std::function<int(const Settings&)> setup_architecture(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  add_builder_options(flags, arguments->options);
  add_search_options(flags, *arguments);
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

std::function<int(const Settings&)> setup_compression(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  search::SearchOptions& options = arguments->options;
  options.space = "lab2-int8";
  options.compresses = true;
  add_builder_options(flags, options);
  flags
      .add_option("--epochs-after", options.epochs_after,
                  "of training behind the compression, instead of the space's")
      .range(0, 1'000'000);
  flags.add_flag("--compare", options.compares,
                 "also train each trial without compression, for as many epochs in all, and "
                 "measure it before and after it is compressed then");
  flags.add_option("--bit-cost", options.bit_cost,
                   "compare trials by accuracy less so much for each average bit [0]");
  flags.add_option("--calibration", options.calibration, "examples that show ranges [256]")
      .at_least(1);
  add_search_options(flags, *arguments);
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

std::function<int(const Settings&)> setup_precision(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  search::SearchOptions& options = arguments->options;
  options.space = "lab3";
  flags.add_option("--model", options.model, "directory of a trained classifier").required();
  flags.add_option("--bit-cost", options.bit_cost,
                   "compare trials by accuracy less so much for each average bit [0]");
  flags.add_option("--max-weight-bits", options.max_weight_bits,
                   "most average stored bits of the layers' weights, scales included");
  flags.add_option("--max-data-bits", options.max_data_bits,
                   "most average bits of what the layers read");
  flags
      .add_option("--calibration", options.calibration,
                  "examples that show ranges and damage [256]")
      .at_least(1);
  flags.add_option("--whole-model", options.whole_model,
                   "what --whole begins with, instead of --model: trained on all of train itself");
  flags
      .add_option("--families", options.family_trials,
                  "then try so many points of each family of formats alone, against float [0]")
      .range(0, 1'000'000);
  flags.add_flag("--uniform", options.tries_uniform,
                 "first try every format for all layers alike, to compare with");
  flags.add_flag("--sensitivity,!--no-sensitivity", options.is_damage_measured,
                 "measure each format's damage to each layer first, and start from that [yes]");
  add_search_options(flags, *arguments);
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

std::function<int(const Settings&)> setup_worker(Flags flags) {
  struct WorkerArguments {
    std::string storage, study, data, model, tokenizer, time, out;
    int jobs = 1;
  };
  auto arguments = std::make_shared<WorkerArguments>();
  flags.add_option("--storage", arguments->storage, "of the search's studies").required();
  flags.add_option("--study", arguments->study, "name of the search there").required();
  flags.add_option("--data", arguments->data, "where its data are on this machine [the same]");
  flags.add_option("--model", arguments->model, "where its model is on this machine [the same]");
  flags.add_option("--tokenizer", arguments->tokenizer,
                   "where its tokenizer is on this machine [the same]");
  flags.add_option("--time", arguments->time, "start no trial after so long, such as 10m");
  flags.add_option("--jobs", arguments->jobs, "trials side by side [1]").range(1, 64);
  flags.add_option("--out", arguments->out, "directory for what is kept meanwhile").required();
  return [arguments](const Settings& settings) {
    const auto change = [&](search::SearchOptions& options) {
      if (!arguments->data.empty()) options.data = arguments->data;
      if (!arguments->model.empty()) options.model = arguments->model;
      if (!arguments->tokenizer.empty()) options.tokenizer = arguments->tokenizer;
      if (!arguments->time.empty()) options.time = parse_duration("--time", arguments->time);
      options.jobs = arguments->jobs;
      options.out = arguments->out;
    };
    return run_resumable(
        settings,
        [&](const engine::ExecutionOptions& execution, const experiment::Callbacks& callbacks) {
          search::work_on_search(arguments->storage, arguments->study, change, execution,
                                 callbacks);
          return true;
        },
        [&](bool) {
          if (settings.json)
            print_json({{"study", arguments->study}});
          else
            fmt::print("the studies of {} have their trials\n", arguments->study);
        },
        "the same command");
  };
}

const Register worker{Command{
    .name = "search worker",
    .summary = "work on the trials of a search that another process began",
    .examples =
        "  lathe search architecture --data D --tokenizer M --storage postgresql://host/base \\\n"
        "      --study lab2 --out found\n"
        "  lathe search worker --storage postgresql://host/base --study lab2 --out /tmp/work\n"
        "Any number of workers on any machines; the first command chooses in the end.",
    .setup = setup_worker,
}};

std::function<int(const Settings&)> setup_export(Flags flags) {
  auto options = std::make_shared<search::ExportOptions>();
  flags.add_option("--search", options->search, "directory of the search").required();
  flags.add_option("--trial", options->trial, "a trial to train again [the chosen model]");
  flags.add_option("--sampler", options->sampler, "whose trial, where there are several studies");
  flags.add_option("--out", options->target, "directory to write").required();
  flags.add_flag("--force", options->replaces, "replace what is in --out");
  return [options](const Settings& settings) {
    return run_resumable(
        settings,
        [&](const engine::ExecutionOptions& execution, const experiment::Callbacks& callbacks) {
          return search::export_trial(*options, execution, callbacks);
        },
        [&](const std::optional<double>& accuracy) {
          if (settings.json) {
            nlohmann::ordered_json line{{"out", options->target.string()}};
            if (accuracy) line["accuracy"] = *accuracy;
            return print_json(line);
          }
          fmt::print("written to {}{}\n", options->target.string(),
                     accuracy ? fmt::format(": accuracy {:.4f}", *accuracy) : "");
        },
        "the same command");
  };
}

const Register exporting{Command{
    .name = "search export",
    .summary = "write the model that a search chose, or any trial's",
    .examples = "  lathe search export --search found --out model\n"
                "  lathe search export --search found --sampler random --trial 12 --out model",
    .setup = setup_export,
}};

const Register precision{Command{
    .name = "search precision",
    .summary = "search for the number format of each layer",
    .examples =
        "  lathe search precision --model M --data D --trials 100 --out found\n"
        "  lathe search precision --model M --data D --max-weight-bits 3 --max-data-bits 4 \\\n"
        "      --space mine.toml --out found\n"
        "  lathe search precision --model M --data D --bit-cost 0.002 --sampler random "
        "--sampler auto --out found\n"
        "The same command goes on with what is in --out. First the damage that each format does\n"
        "to each layer is measured, and trials start from the exact best by that within the "
        "budget.\n"
        "The recipe's epochs of a space train after rounding, 1 unless it says otherwise.",
    .setup = setup_precision,
}};

const Register compression{Command{
    .name = "search compression",
    .summary = "search for what is best when it is compressed while it is made",
    .examples =
        "  lathe search compression --data D --tokenizer M --trials 20 --compare --out found\n"
        "  lathe search compression --data D --tokenizer M --space mine.toml --epochs 2 \\\n"
        "      --epochs-after 1 --max bytes=2e6 --out found\n"
        "Each trial builds a model, trains it, prunes and rounds it as the space says, and trains\n"
        "it on. With --compare the report has three curves: uncompressed, compressed, compressed\n"
        "and trained, all with the same number of epochs.",
    .setup = setup_compression,
}};

const Register architecture{Command{
    .name = "search architecture",
    .summary = "search for the architecture that learns best",
    .examples =
        "  lathe search architecture --data D --tokenizer M --trials 100 --out found\n"
        "  lathe search architecture --data D --tokenizer M --sampler random --sampler auto \\\n"
        "      --device cuda --jobs 4 --out found\n"
        "  lathe search architecture --data reviews --space mine.toml --trials 20 --out found\n"
        "The same command goes on with what is in --out. Trials train from nothing; of three one\n"
        "goes on at each look. The best are trained again with other seeds before one is chosen\n"
        "by rows held out of train; the split test is read once, at the end.",
    .setup = setup_architecture,
}};

}  // namespace
}  // namespace lathe::cli::search_command
