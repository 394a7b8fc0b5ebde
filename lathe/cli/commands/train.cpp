#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/evaluation_text.h"
#include "lathe/cli/execution.h"
#include "lathe/cli/memory.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/progress_line.h"
#include "lathe/cli/say.h"
#include "lathe/cli/training_text.h"
#include "lathe/experiment/config_text.h"
#include "lathe/experiment/evaluation_json.h"
#include "lathe/experiment/fine_tune.h"
#include "lathe/experiment/fine_tune_run.h"

namespace lathe::cli::train_command {
namespace {

using experiment::FineTuneOptions;

void print_result(const experiment::FineTuned& result, double first_step,
                  const FineTuneOptions& options, const Settings& settings) {
  const train::TrainingResult& training = result.training;
  const double rate = static_cast<double>(training.tokens) / std::max(1e-9, training.seconds);
  const bool is_early = training.ending == train::Ending::StoppedEarly;
  if (settings.json) {
    nlohmann::ordered_json line;
    line["train_loss"] = training.loss;
    if (nlohmann::ordered_json test = experiment::to_json(result.measured, result.model);
        !test.empty()) {
      test["test_loss"] = test["loss"];
      test["test_examples"] = test["examples"];
      test.erase("loss");
      test.erase("examples");
      line.update(test);
    }
    if (training.progress.best_score) {
      line["best_score"] = *training.progress.best_score;
      line["best_step"] = training.progress.best_step;
    }
    line["steps"] = training.progress.step;
    line["stopped_early"] = is_early;
    line["tokens"] = training.progress.tokens;
    line["seconds"] = settings.seconds();
    line["train_seconds"] = training.seconds;
    line["first_step_seconds"] = first_step;
    line["tokens_per_second"] = rate;
    line["peak_memory_bytes"] = peak_memory_bytes();
    if (!options.out.empty()) line["out"] = options.out.string();
    print_json(line);
    return;
  }
  fmt::print("train loss {:.4f}\n", training.loss);
  fmt::print("steps      {}{}\n", training.progress.step, is_early ? ", stopped early" : "");
  fmt::print("training   {:.1f} s, {:.0f} tokens/s\n", training.seconds, rate);
  if (training.progress.best_score)
    fmt::print("best       {:.4f} at step {}\n", *training.progress.best_score,
               training.progress.best_step);
  if (result.test) {
    fmt::print("accuracy   {:.4f}  (95 % interval {:.4f} to {:.4f}, test split)\n",
               result.test->accuracy, result.test->accuracy_low, result.test->accuracy_high);
    print_classes(*result.test, result.model.label_names);
  }
  if (result.measured.numbers) print_numbers(*result.measured.numbers, ", test split");
  if (result.measured.sets) {
    print_sets(*result.measured.sets, ", test split");
    print_labels(*result.measured.sets, result.model.label_names);
  }
  if (result.measured.words) {
    print_words(*result.measured.words, ", test split");
    print_types(*result.measured.words);
  }
  if (!options.out.empty()) fmt::print("written to {}\n", options.out.string());
}

std::string measured(const train::Validation& validation) {
  if (validation.classes) return fmt::format(", accuracy {:.4f}", validation.classes->accuracy);
  if (validation.sets) return fmt::format(", F1 {:.4f}", validation.sets->micro_f1);
  if (validation.words)
    return validation.words->has_entities
               ? fmt::format(", F1 {:.4f}", validation.words->entities.f1())
               : fmt::format(", accuracy {:.4f}", validation.words->accuracy);
  if (validation.numbers && validation.numbers->pearson)
    return fmt::format(", Pearson {:.4f}", *validation.numbers->pearson);
  return "";
}

int print_interruption(const train::TrainingResult& training, const FineTuneOptions& options) {
  say("interrupted after step {} of {}; {}\n", training.progress.step, training.num_steps,
      options.out.empty()
          ? "nothing was kept without --out"
          : fmt::format("to go on:\n  lathe train --resume --out {}", options.out.string()));
  return 128 + interrupting_signal();
}

// A result on the way, by the names that the last line has, for the pruner of a study: which
// validation it is (an epoch each, or so many steps), so that trials can be compared.
nlohmann::ordered_json validation_report(const train::Validation& validation, std::int64_t every,
                                         double best) {
  nlohmann::ordered_json line;
  line["report"] = every > 0 ? validation.step / every : std::llround(validation.epoch);
  if (validation.classes) line["accuracy"] = validation.classes->accuracy;
  if (validation.words) line["accuracy"] = validation.words->accuracy;
  line["validation_loss"] = line["test_loss"] = validation.loss;
  line["best_score"] = best;
  return line;
}

int run(FineTuneOptions options, bool prints_config, const Settings& settings, Flags flags) {
  options.trainer.seed = settings.seed;
  const std::set<std::string> given = flags.given();
  experiment::complete_recipe(options, given);
  if (options.resumes) experiment::take_up_run(options, given);
  if (prints_config) {
    fmt::print("{}", experiment::to_config(options));
    return 0;
  }

  Execution execution(settings);
  ProgressLine line(settings);
  double first_step = 0;
  experiment::FineTuneCallbacks callbacks{line.callbacks()};
  callbacks.start = [&](const experiment::FineTuneStart& start) {
    if (!settings.quiet) print_recipe(start);
  };
  callbacks.step = [&](const train::StepReport&) {
    if (first_step == 0) first_step = settings.seconds();
  };
  const std::int64_t every = options.trainer.validate_every;
  double best = -std::numeric_limits<double>::infinity();
  callbacks.validation = [&](const train::Validation& validation) {
    best = std::max(best, validation.score);
    if (settings.reports_trial) {
      print_json(validation_report(validation, every, best));
      flush_output();  // who reads it may want to end the run
    }
    if (settings.quiet) return;
    say("\nstep {}: validation loss {:.4f}{}\n", validation.step, validation.loss,
        measured(validation));
  };
  const experiment::FineTuned result =
      experiment::fine_tune(options, execution.options(), callbacks);
  line.finish();
  if (result.training.ending == train::Ending::Interrupted)
    return print_interruption(result.training, options);
  print_result(result, first_step, options, settings);
  return 0;
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto options = std::make_shared<FineTuneOptions>();
  add_fine_tune_options(flags, *options);
  flags.add_option("--out", options->out, "directory for the model, checkpoints and metrics");
  flags.add_flag("--resume", options->resumes, "go on with the run in --out");
  flags.add_flag("--force", options->replaces, "replace the run or model in --out");
  flags.add_option("--keep", options->keep_checkpoints, "checkpoints to keep, besides the best [2]")
      .at_least(1);
  flags.add_flag("--no-eval{false}", options->is_tested,
                 "do not evaluate on the test split at the end");
  auto prints_config = std::make_shared<bool>(false);
  flags.add_flag("--print-config", *prints_config,
                 "print the run as a file for --config, and train nothing");
  return [options, prints_config, flags](const Settings& settings) {
    return run(*options, *prints_config, settings, flags);
  };
}

const Register registration{Command{
    .name = "train",
    .summary = "train a model on texts, tables or images",
    .examples = "  lathe train --model DIR --data ../shared/data/imdb --out run\n"
                "  lathe train --resume --out run\n"
                "  lathe train --model DIR --data D --lr 5e-5 --print-config > run.toml\n"
                "  lathe train --model DIR --data D --lora rank=8,targets=query|value --out run\n"
                "  lathe train --model bert-tiny --data reviews --epochs 3 --json\n"
                "  lathe train --model mlp:784,128,10 --data MNIST --out digits\n"
                "  lathe train --model bert-tiny --objective mlm --split train,unsup --data D "
                "--tokenizer DIR --out run",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::train_command
