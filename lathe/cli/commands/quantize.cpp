#include <CLI/App.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/output_directory.h"
#include "lathe/cli/quantize_arguments.h"
#include "lathe/cli/quantize_report.h"
#include "lathe/cli/quantize_sweep.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/compress/quantization_report.h"
#include "lathe/data/dataset.h"
#include "lathe/io/atomic_file.h"
#include "lathe/report/progress.h"
#include "lathe/report/table.h"
#include "lathe/train/evaluation.h"

namespace lathe::cli {
namespace {

struct Arguments {
  ModelArguments model;
  QuantizeArguments quantize;
  SweepArguments sweep;
  std::string out;
  bool force = false, is_simulated = false, no_masters = false;
  std::int64_t sensitivity = 0;
  std::string report;
};

Sensitivity measure_sensitivity(const io::Model& original, const io::Model& model,
                                const data::TokenizedDataset& texts, ThreadPool& pool,
                                const Settings& settings) {
  const auto evaluate = [&](const io::Model& candidate) {
    train::ClassifierOptions options;
    options.execution = settings.execution(pool);
    train::TextClassifier classifier(candidate, options);
    train::EvaluationOptions evaluation;
    evaluation.progress = [](std::int64_t, std::int64_t) { return !is_interrupted(); };
    return train::evaluate(classifier, texts, static_cast<std::int64_t>(model.label_names.size()),
                           evaluation);
  };
  Sensitivity result;
  result.loss = evaluate(original).loss;
  const std::vector<std::string> layers = compress::quantized_layers(model.graph);
  report::Progress progress(
      stderr, {.is_enabled = !settings.quiet, .label = "sensitivity", .unit = "layers"});
  for (const std::string& layer : layers) {
    io::Model candidate = model;
    candidate.graph = compress::quantize_only(model.graph, layer);
    const train::Evaluation seen = evaluate(candidate);
    result.layers.push_back({layer, seen.loss, seen.accuracy});
    progress.update(static_cast<std::int64_t>(result.layers.size()),
                    static_cast<std::int64_t>(layers.size()));
  }
  progress.finish();
  std::stable_sort(result.layers.begin(), result.layers.end(),
                   [](const auto& a, const auto& b) { return a.loss > b.loss; });
  return result;
}

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

int run(const Arguments& arguments, const Settings& settings) {
  if (!arguments.sweep.sweep.empty())
    return run_sweep(arguments.model.model, arguments.quantize, arguments.sweep, arguments.out,
                     arguments.force, settings);
  if (arguments.out.empty() && arguments.sensitivity == 0 && arguments.report.empty())
    fail("lathe quantize: --out is required");
  if (!arguments.out.empty()) check_output_directory(arguments.out, arguments.force);
  to_options(arguments.quantize);  // a wrong format is found before long work
  ThreadPool pool(settings.threads);
  io::Model model =
      io::load_model(arguments.model.model, {.task = arguments.model.task, .seed = settings.seed});
  const io::Model original = model;
  const std::optional<data::TokenizedDataset> calibration =
      load_calibration(arguments.quantize, model, pool);
  const compress::QuantizeResult result =
      quantize(model, arguments.quantize, calibration, pool, settings);
  const std::vector<compress::TensorReport> tensors =
      compress::report_tensors(model.graph, model.state, result.observations, original.state);
  const compress::ModelBits bits = compress::count_bits(model.graph, model.state);

  std::optional<Sensitivity> sensitivity;
  if (arguments.sensitivity > 0) {
    if (!calibration) fail("--sensitivity: needs --calibrate DATA to measure on");
    QuantizeArguments texts = arguments.quantize;
    texts.calibration_examples = arguments.sensitivity;
    sensitivity =
        measure_sensitivity(original, model, *load_calibration(texts, model, pool), pool, settings);
  }
  if (!arguments.report.empty())
    io::write_atomically(arguments.report,
                         quantize_page("Quantizing " + arguments.model.model, model.graph,
                                       model.state, result, tensors, sensitivity));
  if (!arguments.out.empty()) {
    if (!arguments.is_simulated) compress::pack_model(model, !arguments.no_masters);
    write_output_directory(arguments.out, arguments.force,
                           [&](const auto& path) { io::write_checkpoint(path, model); });
  }
  if (settings.json) {
    nlohmann::ordered_json line;
    line["out"] = arguments.out;
    line["quantizers"] = result.quantizers;
    line["parameter_bytes"] = bits.stored / 8;
    line["float_bytes"] = bits.floats / 8;
    line["tensors"] = to_json(tensors);
    if (sensitivity) {
      line["float_loss"] = sensitivity->loss;
      for (const compress::LayerSensitivity& each : sensitivity->layers)
        line["sensitivity"].push_back(
            {{"layer", each.layer}, {"loss", each.loss}, {"accuracy", each.accuracy}});
    }
    line["seconds"] = settings.seconds();
    fmt::print("{}\n", line.dump());
    return 0;
  }
  fmt::print("{}", tensor_table(tensors).to_text());
  if (sensitivity) fmt::print("\n{}", sensitivity_table(*sensitivity).to_text());
  fmt::print("\nparameters {:.2f} MB, as floats {:.2f} MB\n", bits.stored / 8e6, bits.floats / 8e6);
  if (arguments.out.empty()) return 0;
  fmt::print("written to {}\n", arguments.out);
  if (!model.masters.empty())
    fmt::print(
        "masters.safetensors there holds the floats for lathe train; evaluation does not "
        "read it\n");
  return 0;
}

std::function<int(const Settings&)> setup(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  add_model_option(app, arguments->model);
  app.add_option("--task", arguments->model.task, "what for [what the model was saved for]");
  add_quantize_options(app, arguments->quantize);
  add_sweep_options(app, arguments->sweep);
  app.add_option("--out", arguments->out, "directory to write");
  app.add_flag("--force", arguments->force, "replace an existing directory");
  app.add_flag("--simulate", arguments->is_simulated,
               "keep floats and round them in every run, instead of packed codes");
  app.add_flag("--no-masters", arguments->no_masters,
               "do not keep the floats that training would go on from");
  app.add_option("--sensitivity", arguments->sensitivity,
                 "measure the loss with one layer rounded at a time, on so many texts")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--report", arguments->report,
                 "HTML page to write: tensors, sensitivity, histograms");
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

const Register registration{Command{
    .name = "quantize",
    .summary = "round a model's numbers to formats of few bits",
    .examples = "  lathe quantize --model M --weights int:8,channel --activations int:8,asymmetric "
                "--calibrate D --out q\n"
                "  lathe quantize --model M --weights mxint:8 --activations mxint:8 --out q\n"
                "  lathe quantize --model M --rules rules.toml --calibrate D --sensitivity 1000\n"
                "  lathe quantize --model M --sweep widths --data D --out sweep",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli
