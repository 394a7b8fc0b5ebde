#include "lathe/cli/quantize_sweep.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lathe/cli/output_directory.h"
#include "lathe/compress/format_sweep.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/compress/quantizers.h"
#include "lathe/core/interrupt.h"
#include "lathe/core/number_format.h"
#include "lathe/data/dataset.h"
#include "lathe/data/validation_split.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/directory_lock.h"
#include "lathe/io/json_file.h"
#include "lathe/report/plot.h"
#include "lathe/report/progress.h"
#include "lathe/report/table.h"
#include "lathe/train/evaluation.h"
#include "lathe/train/train_model.h"

namespace lathe::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kResults = "results.json";

class Sweep {
 public:
  Sweep(const std::string& model, const QuantizeArguments& quantize, const SweepArguments& sweep,
        const std::string& out, const Settings& settings)
      : quantize_(quantize),
        sweep_(sweep),
        out_(out),
        settings_(settings),
        pool_(settings.threads),
        formats_(with_place("--sweep", [&] { return compress::parse_format_sweep(sweep.sweep); })),
        model_(io::load_model(model, {.task = "classify", .seed = settings.seed})) {
    if (compress::is_quantized(model_.graph)) fail("{}: is quantized already", model);
    configuration_ = {{"model", fs::weakly_canonical(model).string()},
                      {"sweep", sweep.sweep},
                      {"data", sweep.data},
                      {"epochs", sweep.epochs},
                      {"lr", sweep.lr},
                      {"batch_size", sweep.batch_size},
                      {"limit", sweep.limit},
                      {"seed", settings.seed}};
  }

  int run() {
    take_up();
    load_data();
    if (!results_.contains("float")) {
      results_["float"] = accuracy(model_, "float");
      save();
    }
    for (const compress::FormatSweep::Point& point : formats_.points) {
      json& result = results_["points"][point.format];
      result["value"] = point.value;
      io::Model rounded = model_;
      const bool needs_model = !result.contains("ptq") || (trains() && !result.contains("qat"));
      if (needs_model) round(rounded, point.format);
      if (!result.contains("ptq")) {
        result["ptq"] = accuracy(rounded, point.format);
        save();
      }
      if (trains() && !result.contains("qat")) {
        const std::optional<io::Model> trained = train(std::move(rounded), point.format);
        if (!trained) return interrupted();
        result["qat"] = accuracy(*trained, point.format + " trained");
        save();
      }
    }
    write_report();
    return 0;
  }

  int interrupted() const {
    fmt::print(stderr, "interrupted; to go on, give the same command with --resume\n");
    return 128 + interrupting_signal();
  }

 private:
  bool trains() const { return sweep_.epochs > 0; }

  void take_up() {
    std::error_code error;
    fs::create_directories(out_, error);
    if (error) fail("{}: cannot be created: {}", out_.string(), error.message());
    lock_.emplace(out_);
    if (sweep_.resume && fs::exists(out_ / kResults, error)) {
      results_ = io::read_json(out_ / kResults);
      if (results_.value("configuration", json()) != configuration_)
        fail("{}: the sweep there was started with {}", out_.string(),
             results_.value("configuration", json()).dump());
      return;
    }
    results_ = {{"configuration", configuration_}, {"points", json::object()}};
    save();
  }

  void save() const { io::write_atomically(out_ / kResults, results_.dump(2) + "\n"); }

  void load_data() {
    const std::int64_t longest = train::max_length(model_);
    const std::shared_ptr<const data::Tokenizer> tokenizer = train::load_tokenizer(model_);
    test_ = data::tokenize(data::load_dataset(sweep_.data, "test", is_interrupted), *tokenizer,
                           longest, data::Truncation::Head, pool_, is_interrupted);
    if (trains())
      examples_ =
          data::take_some(data::load_dataset(sweep_.data, "train", is_interrupted), sweep_.limit);
    QuantizeArguments calibration = quantize_;
    if (calibration.calibrate.empty()) calibration.calibrate = sweep_.data;
    calibration_ = load_calibration(calibration, model_, pool_);
  }

  void round(io::Model& model, const std::string& format) {
    QuantizeArguments arguments = quantize_;
    arguments.weights = arguments.bias = arguments.activations = format;
    Settings quiet = settings_;
    quiet.quiet = true;
    quantize(model, arguments, calibration_, pool_, quiet);
  }

  double accuracy(const io::Model& model, const std::string& label) {
    train::ClassifierOptions options;
    options.execution = {.pool = &pool_, .isa = settings_.isa};
    train::TextClassifier classifier(model, options);
    report::Progress progress(
        stderr, {.is_enabled = !settings_.quiet, .label = "testing " + label, .unit = "texts"});
    train::EvaluationOptions evaluation;
    evaluation.progress = [&](std::int64_t done, std::int64_t) {
      progress.update(done, test_.size());
      return !is_interrupted();
    };
    const double result =
        train::evaluate(classifier, test_, static_cast<std::int64_t>(model.label_names.size()),
                        evaluation)
            .accuracy;
    progress.finish();
    return result;
  }

  // Nothing when it was interrupted; its checkpoint is then there to go on from.
  std::optional<io::Model> train(io::Model model, const std::string& format) {
    std::string name = format;
    std::replace(name.begin(), name.end(), ':', '-');
    std::replace(name.begin(), name.end(), ',', '-');
    train::TrainOptions options;
    options.trainer.epochs = sweep_.epochs;
    options.trainer.cycles = 1;
    options.trainer.batch_examples = sweep_.batch_size;
    options.trainer.learning_rate = sweep_.lr;
    options.trainer.seed = settings_.seed;
    options.execution = {.pool = &pool_, .isa = settings_.isa};
    options.keep_checkpoints = 1;
    options.finish = [](io::Model finished) {
      compress::pack_model(finished, false);
      return finished;
    };
    const fs::path path = out_ / name;
    std::optional<train::RunDirectory> directory = train::RunDirectory::open(path);
    if (!directory) directory = train::RunDirectory::create(path, configuration_);
    if (directory->checkpoint()) model = directory->checkpoint()->model;
    report::Progress progress(
        stderr, {.is_enabled = !settings_.quiet, .label = "training " + format, .unit = "steps"});
    train::TrainCallbacks callbacks;
    callbacks.step = [&](const train::StepReport& step) {
      progress.update(step.step, step.num_steps, fmt::format("loss {:.4f}", step.loss));
    };
    callbacks.should_stop = is_interrupted;
    train::TrainOutcome outcome =
        train::train_model(std::move(model), examples_, {}, options, callbacks, &*directory);
    progress.finish();
    if (outcome.result.ending == train::Ending::Interrupted) return std::nullopt;
    std::error_code ignored;
    fs::remove_all(path / "checkpoints", ignored);
    return std::move(outcome.model);
  }

  void write_report() const {
    const double plain = results_["float"].get<double>();
    report::Table table(
        {formats_.variable, "format", "bits", "PTQ", "PTQ - float", "QAT", "QAT - float"});
    report::Series ptq{.name = "rounded", .x = {}, .y = {}};
    report::Series qat{.name = "rounded and trained", .x = {}, .y = {}};
    report::Series reference{.name = "float", .x = {}, .y = {}};
    const auto points = [](double accuracy, double from) {
      return fmt::format("{:+.2f}", 100 * (accuracy - from));
    };
    bool is_beyond_float = false;
    for (const compress::FormatSweep::Point& point : formats_.points) {
      const json& result = results_["points"][point.format];
      const int bits = parse_format(point.format)->facts().element_bits;
      is_beyond_float = is_beyond_float || bits > 24;
      const double rounded = result["ptq"].get<double>();
      const bool is_trained = result.contains("qat");
      const double trained = is_trained ? result["qat"].get<double>() : 0;
      table.row({fmt::format("{:g}", point.value), point.format, fmt::format("{}", bits),
                 fmt::format("{:.4f}", rounded), points(rounded, plain),
                 is_trained ? fmt::format("{:.4f}", trained) : "-",
                 is_trained ? points(trained, plain) : "-"});
      ptq.x.push_back(point.value);
      ptq.y.push_back(rounded);
      reference.x.push_back(point.value);
      reference.y.push_back(plain);
      if (!is_trained) continue;
      qat.x.push_back(point.value);
      qat.y.push_back(trained);
    }
    std::vector<report::Series> series{ptq};
    if (!qat.x.empty()) series.push_back(qat);
    series.push_back(reference);
    std::string label = formats_.variable;
    std::replace(label.begin(), label.end(), '_', ' ');
    io::write_atomically(out_ / "sweep.svg", report::line_chart({.title = "Accuracy by " + label,
                                                                 .x = {.label = label},
                                                                 .y = {.label = "test accuracy"}},
                                                                series));
    io::write_atomically(out_ / "table.md", table.to_markdown());
    if (settings_.json) {
      fmt::print("{}\n", results_.dump());
      return;
    }
    fmt::print("float {:.4f}\n\n{}", plain, table.to_text());
    if (sweep_.limit > 0 && trains()) fmt::print("\ntrained on {} of the examples\n", sweep_.limit);
    if (is_beyond_float)
      fmt::print("\nAbove 24 bits the value itself is a float32, which carries no more.\n");
    fmt::print("\nwritten to {}: {}, table.md, sweep.svg\n", out_.string(), kResults);
  }

  QuantizeArguments quantize_;
  SweepArguments sweep_;
  fs::path out_;
  const Settings& settings_;
  ThreadPool pool_;
  compress::FormatSweep formats_;
  io::Model model_;
  json configuration_, results_;
  std::optional<io::DirectoryLock> lock_;
  data::TokenizedDataset test_;
  data::Dataset examples_;
  std::optional<data::TokenizedDataset> calibration_;
};

}  // namespace

int run_sweep(const std::string& model, const QuantizeArguments& quantize,
              const SweepArguments& sweep, const std::string& out, bool force,
              const Settings& settings) {
  if (out.empty()) fail("--sweep: needs --out, a directory for its results");
  for (const auto& [flag, value] :
       {std::pair("--weights", &quantize.weights), std::pair("--bias", &quantize.bias),
        std::pair("--activations", &quantize.activations)})
    if (!value->empty())
      fail("{} {}: a sweep gives weights, biases and activations their format itself", flag,
           *value);
  if (sweep.data.empty()) fail("--sweep: needs --data, to test and train on");
  std::error_code error;
  if (!sweep.resume) {
    check_output_directory(out, force);
    if (force && fs::exists(fs::path(out) / kResults, error)) fs::remove_all(out, error);
  }
  Sweep run(model, quantize, sweep, out, settings);
  try {
    return run.run();
  } catch (const Interrupted&) {
    return run.interrupted();
  }
}

}  // namespace lathe::cli
