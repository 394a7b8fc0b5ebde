// Searches over what networks are: flags become options, the library does the work.
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/resumable_run.h"
#include "lathe/cli/study_arguments.h"
#include "lathe/search/architecture_search.h"
#include "lathe/search/search_report.h"
#include "lathe/search/space_file.h"

namespace lathe::cli::search_command {
namespace {

struct Arguments {
  search::SearchOptions options;
  std::vector<std::string> samplers;
  std::string time;
};

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
  return line;
}

void print_result(const search::SearchResult& result, const Arguments& arguments,
                  const Settings& settings) {
  const std::string out = arguments.options.out.string();
  if (settings.json) {
    nlohmann::ordered_json line{{"out", out}, {"measured_on", result.measured_on}};
    for (const search::SearchResult::Study& study : result.studies)
      line["studies"].push_back(to_json(search::summarize(study, result.chance_level)));
    for (const search::Finalist& finalist : result.finalists)
      line["finalists"].push_back({{"sampler", finalist.sampler},
                                   {"trial", finalist.trial},
                                   {"found", finalist.found},
                                   {"mean", finalist.mean()},
                                   {"accuracies", finalist.accuracies},
                                   {"parameters", finalist.parameters},
                                   {"candidate", search::to_json(finalist.candidate)}});
    if (result.test_accuracy) line["test_accuracy"] = *result.test_accuracy;
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
  if (result.test_accuracy) fmt::print("test accuracy {:.4f}\n", *result.test_accuracy);
  fmt::print("written to {}: best (the model), report.html, study.db\n", out);
}

int run(Arguments arguments, const Settings& settings) {
  search::SearchOptions& options = arguments.options;
  options.seed = settings.seed;
  if (!arguments.samplers.empty()) options.samplers = arguments.samplers;
  if (!arguments.time.empty()) options.time = parse_duration("--time", arguments.time);
  return run_resumable(
      settings,
      [&](const engine::ExecutionOptions& execution, const experiment::Callbacks& callbacks) {
        return search::search_architecture(options, execution, callbacks);
      },
      [&](const search::SearchResult& result) { print_result(result, arguments, settings); },
      "the same command");
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  search::SearchOptions& options = arguments->options;
  flags.add_option("--data", options.data, "directory with train and test, or reviews").required();
  flags.add_option("--space", options.space,
                   fmt::format("TOML file of what to choose from, or one of: {} [lab2]",
                               fmt::join(search::shipped_spaces(), ", ")));
  flags.add_option("--tokenizer", options.tokenizer, "directory with the models' tokenizer");
  flags.add_option("--length", options.length, "cut texts to so many tokens").at_least(0);
  flags.add_option("--limit", options.limit, "train on so many examples only").at_least(0);
  flags.add_option("--objective-split", options.objective_split,
                   "measure on this split [rows held out of train]");
  flags
      .add_option("--validation", options.validation,
                  "rows of train to hold out and measure on [5000, a fifth at most]")
      .at_least(1);
  flags
      .add_option("--sampler", arguments->samplers,
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
  flags.add_option("--target", options.target, "end a study at such an accuracy");
  flags.add_option("--time", arguments->time, "start no trial after so long, such as 10m");
  flags.add_option("--jobs", options.jobs, "trials side by side [1]").range(1, 64);
  flags.add_option("--storage", options.storage,
                   "of the studies, such as postgresql://host/base [a file in --out]");
  flags.add_option("--out", options.out, "directory to write, or to go on in").required();
  flags.add_flag("--force", options.replaces, "replace the search in --out");
  flags.add_flag("--eval,!--no-eval", options.is_tested, "test the chosen model [yes]");
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

const Register registration{Command{
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
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::search_command
