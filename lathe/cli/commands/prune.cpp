#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/resumable_run.h"
#include "lathe/cli/sweep_flags.h"
#include "lathe/experiment/figures.h"
#include "lathe/experiment/prune_report.h"
#include "lathe/experiment/prune_sweep.h"
#include "lathe/experiment/read_data.h"
#include "lathe/io/output_directory.h"

namespace lathe::cli::prune_command {
namespace {

struct Arguments {
  ModelArguments model;
  experiment::PruneOptions prune;
  experiment::PruneSweepOptions sweep;
  experiment::EvaluateOptions evaluate;
  std::vector<std::string> methods;
  std::string out;
  io::Storage storage = io::Storage::Sparse;
  bool force = false;
};

// How the model did before and after; nothing where that was not asked for.
using BeforeAndAfter =
    std::optional<std::pair<experiment::ModelEvaluation, experiment::ModelEvaluation>>;

nlohmann::ordered_json to_json(const compress::UnitReport& unit) {
  nlohmann::ordered_json row;
  row["unit"] = unit.unit;
  if (!unit.shape.empty()) row["shape"] = unit.shape;
  row["method"] = unit.method;
  row["granularity"] = unit.granularity;
  row["granules"] = unit.granules;
  row["pruned"] = unit.pruned;
  row["elements"] = unit.elements;
  row["zeros"] = unit.zeros;
  return row;
}

void print_result(const Arguments& arguments, const compress::PruneResult& result,
                  const BeforeAndAfter& measured, const Settings& settings) {
  const experiment::PruneTotal total = experiment::prune_total(result);
  if (settings.json) {
    nlohmann::ordered_json line;
    line["out"] = arguments.out;
    line["elements"] = total.elements;
    line["zeros"] = total.zeros;
    line["units"] = nlohmann::ordered_json::array();
    for (const compress::UnitReport& unit : result.units) line["units"].push_back(to_json(unit));
    line["not_counted"] = result.left;
    line["pruned_inputs"] = result.activations;
    if (measured) line.update(experiment::figures_json(measured->first, measured->second));
    line["seconds"] = settings.seconds();
    print_json(line);
    return;
  }
  if (!result.units.empty()) fmt::print("{}\n", experiment::prune_table(result).to_text());
  if (result.activations > 0)
    fmt::print("inputs of {} layers are pruned row by row in every run\n", result.activations);
  if (!result.left.empty()) fmt::print("not counted: {}\n", fmt::join(result.left, ", "));
  if (measured)
    for (const auto& [name, text] : experiment::compare_figures(measured->first, measured->second))
      fmt::print("{:<10} {}\n", name, text);
  if (!arguments.out.empty()) fmt::print("written to {}\n", arguments.out);
}

void print_sweep(const experiment::PruneSweepResult& result,
                 const experiment::SweepSettings& options, const Settings& settings) {
  if (settings.json) {
    nlohmann::ordered_json line{{"measured_on", result.measured_on},
                                {"figure", result.figure.key},
                                {"unpruned", result.plain},
                                {"unpruned_bytes", result.plain_bytes}};
    if (result.controls.size() == 1) line["control"] = result.controls.begin()->second;
    if (result.controls.size() > 1)
      for (const auto& [epochs, value] : result.controls)
        line["control"][std::to_string(epochs)] = value;
    line["points"] = nlohmann::ordered_json::array();
    for (const experiment::PruneSweepPoint& point : result.points) {
      nlohmann::ordered_json row{
          {"method", point.method}, {"sparsity", point.sparsity}, {"before", point.pruned}};
      if (point.trained) row["after"] = *point.trained;
      row["epochs"] = point.epochs;
      row["bytes"] = point.bytes;
      if (point.tokens_per_second) row["tokens_per_second"] = *point.tokens_per_second;
      line["points"].push_back(std::move(row));
    }
    line["out"] = options.out.string();
    print_json(line);
    return;
  }
  fmt::print("{} of {}\n\n{}", result.figure.name, result.measured_on,
             experiment::prune_sweep_table(result).to_text());
  if (options.limit > 0 && std::ranges::max(options.epochs) > 0)
    fmt::print("\ntrained on {} of the examples\n", options.limit);
  fmt::print("\nwritten to {}: results.json, table.md, sweep.svg\n", options.out.string());
}

int run_sweep(Arguments arguments, const Settings& settings) {
  experiment::PruneSweepOptions& options = arguments.sweep;
  if (!arguments.evaluate.data.empty()) fail("--eval: a sweep measures on --data or --split");
  if (!arguments.methods.empty()) options.methods = arguments.methods;
  options.prune = arguments.prune;
  options.settings.images = arguments.model.images;
  complete(options.settings, arguments.model.model, arguments.out, arguments.force, settings);
  return run_resumable(
      settings,
      [&](const engine::ExecutionOptions& execution, const experiment::Callbacks& callbacks) {
        return experiment::prune_sweep(options, execution, callbacks);
      },
      [&](const experiment::PruneSweepResult& result) {
        print_sweep(result, options.settings, settings);
      });
}

int run(Arguments arguments, const Settings& settings) {
  if (!arguments.sweep.sparsities.empty()) return run_sweep(arguments, settings);
  if (arguments.methods.size() > 1) fail("--method: expected one, without --sweep");
  if (!arguments.methods.empty()) arguments.prune.method = arguments.methods.front();
  if (arguments.out.empty() && arguments.evaluate.data.empty())
    fail("lathe prune: --out is required, or --eval to measure alone");
  if (!arguments.out.empty()) io::check_output_directory(arguments.out, arguments.force);
  arguments.prune.seed = settings.seed;
  experiment::to_request(arguments.prune);  // what is wrong is said before anything is read
  io::Model original =
      io::load_model(arguments.model.model,
                     {.task = arguments.model.task, .seed = settings.seed, .with_masters = true});
  experiment::set_images(original, arguments.model.images);
  Execution execution(settings);
  ProgressLine line(settings);
  const experiment::Pruned pruned =
      experiment::prune(original, arguments.prune, execution.options(), line.callbacks());
  BeforeAndAfter measured;
  const auto measure = [&](const io::Model& model) {
    return experiment::evaluate_on(model, arguments.evaluate, execution.options(),
                                   line.callbacks());
  };
  if (!arguments.evaluate.data.empty()) measured.emplace(measure(original), measure(pruned.model));
  line.finish();
  if (!arguments.out.empty())
    io::write_output_directory(arguments.out, arguments.force, [&](const auto& path) {
      io::write_checkpoint(path, pruned.model, arguments.storage);
    });
  print_result(arguments, pruned.result, measured, settings);
  return 0;
}

// Those whose scores need no training.
std::vector<std::string> one_shot_methods() {
  std::vector<std::string> names;
  for (const auto& [name, method] : compress::PruningMethodRegistry::instance().all())
    if (method.evidence != compress::PruningEvidence::Training) names.push_back(name);
  return names;
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  experiment::PruneOptions& prune = arguments->prune;
  add_model_option(flags, arguments->model);
  flags.add_option("--task", arguments->model.task, "what for [what the model was saved for]");
  flags.add_option("--sparsity", prune.sparsity, "share of the weights to prune, 0 to 1");
  flags
      .add_option("--method", arguments->methods,
                  fmt::format("which go first: {} [l1]; of a sweep several, with commas "
                              "[random,l1]",
                              fmt::join(one_shot_methods(), ", ")))
      .separated_by(',');
  flags.add_option("--scope", prune.scope,
                   "ranked within a row, local (a weight) or global (all that count) [the "
                   "method's: local, or row for wanda]");
  flags.add_option("--granularity", prune.granularity,
                   "pruned as one: element, 2:4, 1x16, row, column, head, neuron or vocabulary "
                   "[element]");
  flags.add_option("--rules", prune.rules,
                   "TOML file of rules by type, name or pattern; they come before the flags");
  flags.add_flag("--embeddings", prune.embeddings, "tables count like weights of layers");
  flags.add_option("--activations", prune.activations,
                   "share of each row that layers read to count as 0, the smallest magnitudes [0]");
  flags.add_option("--calibrate", prune.calibrate,
                   "data whose train split wanda, sparsegpt and lookups look at");
  flags
      .add_option("--calibration-examples", prune.calibration_examples,
                  "texts to look at; lookups looks at all [256]")
      .range(1, std::int64_t{1} << 40);
  flags.add_option("--eval", arguments->evaluate.data,
                   "data whose test split the model is measured on, before and after");
  flags.add_option("--sweep", arguments->sweep.sparsities,
                   "try sparsities one after another, 0.1..0.9 or 0.5,0.7: prune, measure, train, "
                   "measure");
  add_sweep_options(flags, arguments->sweep.settings);
  add_image_option(flags, arguments->model.images);
  add_storage_option(flags, arguments->storage);
  flags.add_option("--out", arguments->out, "directory to write");
  flags.add_flag("--force", arguments->force, "replace the model or sweep in --out");
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

const Register registration{Command{
    .name = "prune",
    .summary = "set the weights that matter least to zero, and keep them there",
    .examples =
        "  lathe prune --model M --sparsity 0.7 --scope global --out p --eval D\n"
        "  lathe prune --model M --method sparsegpt --granularity 2:4 --calibrate D --out p\n"
        "  lathe prune --model M --granularity neuron --sparsity 0.5 --rules rules.toml --out p\n"
        "  lathe prune --model M --sweep 0.1..0.9 --data D --out sweep",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::prune_command
