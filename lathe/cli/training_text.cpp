#include "lathe/cli/training_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "lathe/cli/say.h"
#include "lathe/compress/trained_parameters.h"
#include "lathe/experiment/model_list.h"
#include "lathe/report/table.h"

namespace lathe::cli {
namespace {

void print_trained_parameters(const Graph& graph, const std::vector<std::string>& trained) {
  report::Table table({"trains", "parameters", "share"});
  std::int64_t total = 0, count = 0;
  const std::vector<compress::ModuleParameters> modules =
      compress::count_parameters(graph, trained);
  for (const compress::ModuleParameters& module : modules) {
    total += module.trained + module.frozen;
    count += module.trained;
  }
  const auto share = [&](std::int64_t part) {
    return fmt::format("{:.2f} %", 100 * static_cast<double>(part) /
                                       static_cast<double>(std::max<std::int64_t>(total, 1)));
  };
  for (const compress::ModuleParameters& module : modules)
    if (module.trained > 0)
      table.row({module.module, fmt::format("{}", module.trained), share(module.trained)});
  table.row({"all that trains", fmt::format("{}", count), share(count)});
  table.row({"all that is frozen", fmt::format("{}", total - count), share(total - count)});
  say("{}", table.to_text());
}

void print_teachers(const experiment::FineTuneOptions& options) {
  const train::DistillationOptions& how = options.graph.distillation;
  say("  taught by {}: weight {:g}, temperature {:g}{}{}\n",
      fmt::join(experiment::model_list(options.teacher), ", "), how.weight, how.temperature,
      how.hidden > 0 ? fmt::format(", hidden states {:g}", how.hidden) : "",
      how.attention > 0 ? fmt::format(", attention {:g}", how.attention) : "");
}

}  // namespace

void print_recipe(const experiment::FineTuneStart& start) {
  const experiment::FineTuneOptions& options = start.options;
  const train::TrainerOptions& trainer = options.trainer;
  const std::string batch = trainer.batch_tokens > 0
                                ? fmt::format("{} tokens", trainer.batch_tokens)
                                : fmt::format("{} examples", trainer.batch_examples);
  const std::string warmup = trainer.warmup < 1 ? fmt::format("{:g} %", 100 * trainer.warmup)
                                                : fmt::format("{} steps", trainer.warmup);
  say("{} for {}: {} examples, {} held out\n", options.model, options.graph.objective,
      start.examples, start.held_out);
  say("  {} epochs, {} a batch{}, seed {}\n", trainer.epochs, batch,
      trainer.accumulation > 1 ? fmt::format(", {} batches a step", trainer.accumulation) : "",
      trainer.seed);
  say("  {} at {:g}, {} schedule{}, warm-up {}, clipping {:g}\n",
      train::name(options.graph.optimizer), trainer.learning_rate, train::name(trainer.decay),
      trainer.cycles > 1 ? fmt::format(" in {} cycles", trainer.cycles) : "", warmup,
      options.graph.max_norm);
  say("  weight decay {:g} on matrices{}\n", options.graph.weight_decay,
      start.length == 0
          ? ""
          : fmt::format(", texts cut to {} tokens from the {}", start.length,
                        data::name(options.truncation.value_or(data::Truncation::Head))));
  if (!options.teacher.empty()) print_teachers(options);
  const bool is_new = start.model.fresh.size() == start.model.state.size();
  if (!start.model.fresh.empty() && !is_new)
    say("  starts fresh: {}\n", fmt::join(start.model.fresh, ", "));
  if (!start.trained.empty()) print_trained_parameters(start.model.graph, start.trained);
  if (start.resumed_step > 0) say("  going on after step {}\n", start.resumed_step);
}

}  // namespace lathe::cli
