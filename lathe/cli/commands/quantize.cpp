#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/quantize_flags.h"
#include "lathe/cli/resumable_run.h"
#include "lathe/cli/sweep_flags.h"
#include "lathe/compress/integer/align_biases.h"
#include "lathe/compress/integer/lower_to_integer.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/experiment/figures.h"
#include "lathe/experiment/quantize_report.h"
#include "lathe/experiment/quantize_summary.h"
#include "lathe/experiment/read_data.h"
#include "lathe/experiment/sensitivity.h"
#include "lathe/experiment/sweep_report.h"
#include "lathe/experiment/weight_memory.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/output_directory.h"

namespace lathe::cli::quantize_command {
namespace {

struct Arguments {
  ModelArguments model;
  experiment::QuantizeOptions quantize;
  experiment::SweepOptions sweep;
  std::string out;
  bool force = false, is_simulated = false, no_masters = false, is_integer = false;
  bool aligns_biases = false;
  io::Storage storage = io::Storage::Sparse;
  std::int64_t sensitivity = 0;
  std::string report;
  bool is_dry_run = false;
  experiment::EvaluateOptions evaluate;
};

nlohmann::ordered_json to_json(const std::vector<compress::TensorReport>& tensors) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const compress::TensorReport& each : tensors) {
    nlohmann::ordered_json row;
    row["tensor"] = each.tensor;
    row["role"] = name(each.role);
    row["format"] = each.format;
    row["elements"] = each.elements;
    row["bits"] = each.bits;
    if (std::isfinite(each.sqnr)) row["sqnr"] = each.sqnr;
    row["share_of_error"] = each.share_of_error;
    list.push_back(std::move(row));
  }
  return list;
}

void print_result(const Arguments& arguments, const experiment::Quantized& result,
                  const std::optional<experiment::Sensitivity>& sensitivity,
                  const experiment::QuantizeSummary& summary,
                  const std::optional<experiment::WeightMemory>& memory, const Settings& settings) {
  if (settings.json) {
    nlohmann::ordered_json line;
    if (!arguments.out.empty()) line["out"] = arguments.out;
    line["quantizers"] = result.result.quantizers;
    line["parameter_bytes"] = result.bits.stored / 8;
    line["float_bytes"] = result.bits.floats / 8;
    line["bytes_before"] = summary.bytes_before;
    line["bytes_after"] = summary.bytes_after;
    if (memory) {
      line["held_bytes"] = memory->held_bytes;
      line["resident_bytes"] = memory->resident_bytes;
    }
    line["floats"] = nlohmann::ordered_json::array();
    for (const experiment::FloatPart& part : summary.floats)
      line["floats"].push_back(
          {{"what", part.what}, {"parameters", part.parameters}, {"share", part.share}});
    if (summary.before && summary.after)
      line.update(experiment::figures_json(*summary.before, *summary.after));
    line["tensors"] = to_json(result.tensors);
    if (sensitivity) {
      line["float_loss"] = sensitivity->loss;
      for (const compress::LayerSensitivity& each : sensitivity->layers)
        line["sensitivity"].push_back(
            {{"layer", each.layer}, {"loss", each.loss}, {"accuracy", each.accuracy}});
    }
    line["seconds"] = settings.seconds();
    print_json(line);
    return;
  }
  fmt::print("{}", experiment::tensor_table(result.tensors).to_text());
  if (sensitivity) fmt::print("\n{}", experiment::sensitivity_table(*sensitivity).to_text());
  fmt::print("\nparameters {:.2f} MB, as floats {:.2f} MB\n", result.bits.stored / 8e6,
             result.bits.floats / 8e6);
  for (const auto& [name, text] : experiment::summary_facts(summary))
    fmt::print("{:<10} {}\n", name, text);
  if (memory) fmt::print("{:<10} {}\n", "memory", to_text(*memory));
  if (arguments.out.empty()) return;
  fmt::print("written to {}\n", arguments.out);
  if (!arguments.is_simulated && !arguments.no_masters)
    fmt::print(
        "masters.safetensors there holds the floats for lathe train; evaluation does not "
        "read it\n");
}

void print_sweep(const experiment::SweepResult& result, const experiment::SweepSettings& options,
                 const Settings& settings) {
  if (settings.json) {
    nlohmann::ordered_json line{{"measured_on", result.measured_on},
                                {"figure", result.figure.key},
                                {"float", result.plain},
                                {"float_bytes", result.plain_bytes}};
    line["points"] = nlohmann::ordered_json::array();
    for (const experiment::SweepPoint& point : result.points) {
      nlohmann::ordered_json row{
          {"value", point.value}, {"format", point.format}, {"ptq", point.rounded}};
      if (point.trained) row["qat"] = *point.trained;
      row["epochs"] = point.epochs;
      row["bytes"] = point.bytes;
      if (point.tokens_per_second) row["tokens_per_second"] = *point.tokens_per_second;
      line["points"].push_back(std::move(row));
    }
    line["out"] = options.out.string();
    print_json(line);
    return;
  }
  fmt::print("{} of {}\nfloat {:.4f}\n\n{}", result.figure.name, result.measured_on, result.plain,
             experiment::sweep_table(result).to_text());
  if (options.limit > 0 && std::ranges::max(options.epochs) > 0)
    fmt::print("\ntrained on {} of the examples\n", options.limit);
  if (std::any_of(result.points.begin(), result.points.end(),
                  [](const experiment::SweepPoint& point) { return point.bits > 24; }))
    fmt::print("\nAbove 24 bits the value itself is a float32, which carries no more.\n");
  fmt::print("\nwritten to {}: results.json, table.md, sweep.svg\n", options.out.string());
}

int run_sweep(Arguments arguments, const Settings& settings) {
  experiment::SweepOptions& options = arguments.sweep;
  options.quantize = arguments.quantize;
  complete(options.settings, arguments.model.model, arguments.out, arguments.force, settings);
  return run_resumable(
      settings,
      [&](const engine::ExecutionOptions& execution, const experiment::Callbacks& callbacks) {
        return experiment::sweep(options, execution, callbacks);
      },
      [&](const experiment::SweepResult& result) {
        print_sweep(result, options.settings, settings);
      });
}

// A model that is quantized already, as integers.
int write_integers(const Arguments& arguments, const Settings& settings) {
  if (arguments.out.empty()) fail("lathe quantize: --out is required");
  io::check_output_directory(arguments.out, arguments.force);
  io::Model model =
      io::load_model(arguments.model.model, {.task = arguments.model.task, .seed = settings.seed});
  compress::lower_to_integer(model.graph, model.state);
  io::write_output_directory(arguments.out, arguments.force, [&](const auto& path) {
    io::write_checkpoint(path, model, arguments.storage);
  });
  if (settings.json)
    print_json({{"out", arguments.out}, {"nodes", model.graph.num_nodes()}});
  else
    fmt::print("{} nodes, all between inputs and outputs of integers\nwritten to {}\n",
               model.graph.num_nodes(), arguments.out);
  return 0;
}

// A model that is quantized already, with the biases that its integers will have.
int write_aligned(const Arguments& arguments, const Settings& settings) {
  if (arguments.out.empty()) fail("lathe quantize: --out is required");
  io::check_output_directory(arguments.out, arguments.force);
  io::Model model =
      io::load_model(arguments.model.model,
                     {.task = arguments.model.task, .seed = settings.seed, .with_masters = true});
  const int aligned = compress::align_biases(model.graph, model.state);
  io::write_output_directory(arguments.out, arguments.force, [&](const auto& path) {
    io::write_checkpoint(path, model, arguments.storage);
  });
  if (settings.json)
    print_json({{"out", arguments.out}, {"aligned", aligned}});
  else
    fmt::print("{} biases rounded to the steps of their sums\nwritten to {}\n", aligned,
               arguments.out);
  return 0;
}

int run(Arguments arguments, const Settings& settings) {
  if (!arguments.sweep.formats.empty()) {
    if (!arguments.evaluate.data.empty()) fail("--eval: a sweep measures on --data or --split");
    if (arguments.is_dry_run) fail("--dry-run: is not for sweeps");
    return run_sweep(arguments, settings);
  }
  if (arguments.aligns_biases) {
    if (arguments.is_integer || arguments.quantize != experiment::QuantizeOptions{})
      fail("--align-biases: takes a model that is quantized already, and no formats");
    return write_aligned(arguments, settings);
  }
  if (arguments.is_integer) {
    if (arguments.quantize != experiment::QuantizeOptions{})
      fail("--integer: takes a model that is quantized already, and no formats");
    return write_integers(arguments, settings);
  }
  if (arguments.is_dry_run) arguments.out.clear();
  if (arguments.out.empty() && !arguments.is_dry_run && arguments.sensitivity == 0 &&
      arguments.report.empty() && arguments.evaluate.data.empty())
    fail("lathe quantize: --out is required, or --dry-run to see what would be done");
  if (arguments.sensitivity > 0 && arguments.quantize.calibrate.empty())
    fail("--sensitivity: needs --calibrate DATA to measure on");
  if (!arguments.out.empty()) io::check_output_directory(arguments.out, arguments.force);
  io::Model original =
      io::load_model(arguments.model.model, {.task = arguments.model.task, .seed = settings.seed});
  experiment::set_images(original, arguments.model.images);
  Execution execution(settings);
  ProgressLine line(settings);
  experiment::Quantized result =
      experiment::quantize(original, arguments.quantize, execution.options(), line.callbacks());
  std::optional<experiment::Sensitivity> sensitivity;
  if (arguments.sensitivity > 0)
    sensitivity = experiment::measure_sensitivity(original, result.model, arguments.quantize,
                                                  arguments.sensitivity, execution.options(),
                                                  line.callbacks());
  io::Model written = result.model;
  if (!arguments.is_simulated) compress::pack_model(written, !arguments.no_masters);
  const experiment::QuantizeSummary summary =
      experiment::summarize(original, result, written, arguments.storage, arguments.evaluate,
                            execution.options(), line.callbacks());
  line.finish();
  if (!arguments.report.empty())
    io::write_atomically(arguments.report,
                         experiment::quantize_page("Quantizing " + arguments.model.model, result,
                                                   sensitivity, summary));
  if (!arguments.out.empty())
    io::write_output_directory(arguments.out, arguments.force, [&](const auto& path) {
      io::write_checkpoint(path, written, arguments.storage);
    });
  // What a user of the model will see, so it is measured on what was written.
  std::optional<experiment::WeightMemory> memory;
  if (!arguments.out.empty() && result.bits.floats / 8 >= experiment::kLeastMeasured)
    memory = experiment::measure_weight_memory(arguments.out, arguments.model.task,
                                               execution.answering(arguments.is_simulated));
  print_result(arguments, result, sensitivity, summary, memory, settings);
  return 0;
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  add_model_option(flags, arguments->model);
  flags.add_option("--task", arguments->model.task, "what for [what the model was saved for]");
  add_quantize_options(flags, arguments->quantize);
  flags.add_option("--sweep", arguments->sweep.formats,
                   "try formats one after another on weights, biases and activations: widths, "
                   "integer-bits, fraction-bits, or \"fixed:{w},{w/2} w=4,6,8\"");
  add_sweep_options(flags, arguments->sweep.settings);
  add_image_option(flags, arguments->model.images);
  flags.add_option("--out", arguments->out, "directory to write");
  flags.add_flag("--force", arguments->force, "replace the model or sweep in --out");
  add_storage_option(flags, arguments->storage);
  flags.add_flag("--simulate", arguments->is_simulated,
                 "keep floats and round them in every run, instead of packed codes");
  flags.add_flag("--integer", arguments->is_integer,
                 "write a model that is quantized already as the integers that lathe emit makes "
                 "hardware of");
  flags.add_flag("--align-biases", arguments->aligns_biases,
                 "round the biases of a model that is quantized already to the steps of their "
                 "sums, as integers have them");
  flags.add_flag("--no-masters", arguments->no_masters,
                 "do not keep the floats that training would go on from");
  flags
      .add_option("--sensitivity", arguments->sensitivity,
                  "measure the loss with one layer rounded at a time, on so many texts")
      .range(1, std::int64_t{1} << 40);
  flags.add_option("--eval", arguments->evaluate.data,
                   "data whose test split the model is measured on, before and after");
  flags.add_flag("--dry-run", arguments->is_dry_run,
                 "say what would be done, with the sizes, and write nothing");
  flags.add_option("--report", arguments->report,
                   "HTML page to write: tensors, sensitivity, histograms");
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

const Register registration{Command{
    .name = "quantize",
    .summary = "round a model's numbers to formats of few bits",
    .examples = "  lathe quantize --model M --weights int:8,channel --activations int:8,asymmetric "
                "--calibrate D --out q\n"
                "  lathe quantize --model M --weights mxint:8 --activations mxint:8 --out q\n"
                "  lathe quantize --model M --weights int:4,channel --eval D --dry-run\n"
                "  lathe quantize --model M --rules rules.toml --calibrate D --sensitivity 1000\n"
                "  lathe quantize --model M --sweep widths --data D --out sweep\n"
                "  lathe quantize --model M --profile hardware --calibrate D --out q\n"
                "  lathe quantize --model q --align-biases --out a\n"
                "  lathe quantize --model q --integer --out i",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::quantize_command
