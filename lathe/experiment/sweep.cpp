#include "lathe/experiment/sweep.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lathe/compress/format_sweep.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/compress/quantizers.h"
#include "lathe/core/number_format.h"
#include "lathe/data/match_labels.h"
#include "lathe/data/validation_split.h"
#include "lathe/experiment/read_data.h"
#include "lathe/experiment/sweep_report.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/directory_lock.h"
#include "lathe/io/json_file.h"
#include "lathe/io/output_directory.h"
#include "lathe/train/evaluation.h"
#include "lathe/train/make_source.h"
#include "lathe/train/train_model.h"

namespace lathe::experiment {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kResults = "results.json";

std::string absolute_path(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) ? fs::weakly_canonical(path, error).string() : path;
}

// Everything that decides the results.
json to_json(const SweepOptions& options) {
  const QuantizeOptions& quantize = options.quantize;
  return {{"model", absolute_path(options.model)},
          {"sweep", options.formats},
          {"data", absolute_path(options.data)},
          {"split", options.split},
          {"validation", options.validation},
          {"epochs", options.epochs},
          {"lr", options.learning_rate},
          {"batch-size", options.batch_size},
          {"limit", options.limit},
          {"seed", options.seed},
          {"outputs", quantize.outputs},
          {"embeddings", quantize.embeddings},
          {"attention", quantize.attention},
          {"attention-weights", quantize.attention_weights},
          {"rules", absolute_path(quantize.rules)},
          {"calibrate", absolute_path(quantize.calibrate)},
          {"calibration-examples", quantize.calibration_examples},
          {"weight-range", quantize.weight_range},
          {"activation-range", quantize.activation_range},
          {"bias-correction", quantize.bias_correction},
          {"gptq", quantize.gptq}};
}

class Sweep {
 public:
  Sweep(const SweepOptions& options, const engine::ExecutionOptions& execution,
        const Callbacks& callbacks)
      : options_(options),
        execution_(execution),
        callbacks_(callbacks),
        formats_(
            with_place("sweep", [&] { return compress::parse_format_sweep(options.formats); })),
        model_(io::load_model(options.model, {.task = "classify", .seed = options.seed})),
        configuration_(to_json(options)) {
    if (compress::is_quantized(model_.graph)) fail("{}: is quantized already", options.model);
  }

  SweepResult run() {
    take_up();
    read_data();
    if (!results_.contains("float")) {
      results_["float"] = accuracy(model_, "float");
      save();
    }
    for (const compress::FormatSweep::Point& point : formats_.points) visit(point);
    SweepResult result = collect();
    write_report(result, options_.out);
    return result;
  }

 private:
  bool trains() const { return options_.epochs > 0; }

  void take_up() {
    std::error_code error;
    fs::create_directories(options_.out, error);
    if (error) fail("{}: cannot be created: {}", options_.out.string(), error.message());
    lock_.emplace(options_.out);
    if (options_.resumes && fs::exists(options_.out / kResults, error)) {
      results_ = io::read_json(options_.out / kResults);
      check_recorded(results_.value("configuration", json::object()));
      return;
    }
    results_ = {{"configuration", configuration_}, {"points", json::object()}};
    save();
  }

  void check_recorded(const json& recorded) const {
    for (const auto& [name, value] : configuration_.items())
      if (recorded.value(name, json()) != value)
        fail("{} {}: the sweep in {} was started with {}", name, value.dump(),
             options_.out.string(), recorded.value(name, json()).dump());
  }

  void save() const { io::write_atomically(options_.out / kResults, results_.dump(2) + "\n"); }

  // Nothing is chosen on the test split unless asked for: accuracies are of rows that are held out
  // of train, always the same ones.
  void read_data() {
    const auto read = [&](const std::string& split) {
      return data::match_labels(
          read_examples(model_, options_.data, split, 0, callbacks_.should_stop),
          model_.label_names);
    };
    data::Dataset train = read("train");
    if (options_.split.empty()) {
      const auto size = static_cast<std::int64_t>(train.examples.size());
      const data::ValidationSplit split =
          data::split_validation(train.labels(), std::min(options_.validation, size / 5), 0);
      held_out_ = data::select(train, split.validation);
      train = data::select(train, split.train);
      measured_on_ = fmt::format("{} rows held out of train", held_out_.examples.size());
    } else {
      held_out_ = read(options_.split);
      measured_on_ =
          fmt::format("{} rows of the split {}", held_out_.examples.size(), options_.split);
    }
    examples_ = data::take_some(std::move(train), options_.limit);
    measured_ = train::make_evaluation_source(model_, held_out_, {}, execution_.pool,
                                              callbacks_.should_stop);
    const std::int64_t count = options_.quantize.calibration_examples;
    calibration_examples_ =
        options_.quantize.calibrate.empty()
            ? data::take_some(examples_, count)
            : calibration_examples(model_, options_.quantize, count, callbacks_);
    calibration_ = train::make_evaluation_source(model_, calibration_examples_, {}, execution_.pool,
                                                 callbacks_.should_stop);
  }

  void visit(const compress::FormatSweep::Point& point) {
    json& result = results_["points"][point.format];
    result["value"] = point.value;
    if (result.contains("ptq") && (!trains() || result.contains("qat"))) return;
    QuantizeOptions quantizing = options_.quantize;
    quantizing.weights = quantizing.bias = quantizing.activations = point.format;
    io::Model rounded =
        quantize(
            model_, quantizing, calibration_.get(), execution_,
            {.progress = {}, .notice = callbacks_.notice, .should_stop = callbacks_.should_stop})
            .model;
    if (!result.contains("ptq")) {
      result["ptq"] = accuracy(rounded, point.format);
      save();
    }
    if (!trains()) return;
    result["qat"] = accuracy(train(std::move(rounded), point.format), point.format + " trained");
    save();
  }

  double accuracy(const io::Model& model, const std::string& label) {
    train::Classifier classifier(model, {.execution = execution_});
    return train::evaluate(classifier, *measured_,
                           static_cast<std::int64_t>(model.label_names.size()),
                           {.progress =
                                [&](std::int64_t done, std::int64_t) {
                                  callbacks_.tell({.activity = "testing " + label,
                                                   .unit = "examples",
                                                   .done = done,
                                                   .total = measured_->size()});
                                  return !callbacks_.stops();
                                }})
        .accuracy;
  }

  // One that is interrupted leaves its checkpoint to go on from.
  io::Model train(io::Model model, const std::string& format) {
    std::string name = format;
    std::replace(name.begin(), name.end(), ':', '-');
    std::replace(name.begin(), name.end(), ',', '-');
    train::TrainOptions training;
    training.trainer.epochs = options_.epochs;
    training.trainer.cycles = 1;
    training.trainer.batch_examples = options_.batch_size;
    training.trainer.learning_rate = options_.learning_rate;
    training.trainer.seed = options_.seed;
    training.execution = execution_;
    training.keep_checkpoints = 1;
    training.finish = [](io::Model finished) {
      compress::pack_model(finished, false);
      return finished;
    };
    const fs::path path = options_.out / name;
    std::optional<train::RunDirectory> directory = train::RunDirectory::open(path);
    if (!directory) directory = train::RunDirectory::create(path, configuration_);
    if (directory->checkpoint()) model = directory->checkpoint()->model;
    train::TrainCallbacks training_callbacks;
    training_callbacks.step = [&](const train::StepReport& step) {
      callbacks_.tell({.activity = "training " + format,
                       .unit = "steps",
                       .done = step.step,
                       .total = step.num_steps,
                       .note = fmt::format("loss {:.4f}", step.loss)});
    };
    training_callbacks.should_stop = callbacks_.should_stop;
    train::TrainOutcome outcome = train::train_model(std::move(model), examples_, {}, training,
                                                     training_callbacks, &*directory);
    if (outcome.result.ending == train::Ending::Interrupted) throw Interrupted();
    std::error_code ignored;
    fs::remove_all(path / "checkpoints", ignored);
    return std::move(outcome.model);
  }

  SweepResult collect() const {
    SweepResult result{.variable = formats_.variable,
                       .measured_on = measured_on_,
                       .plain = results_["float"].get<double>(),
                       .points = {}};
    for (const compress::FormatSweep::Point& point : formats_.points) {
      const json& stored = results_["points"][point.format];
      SweepPoint measured{.value = point.value,
                          .format = point.format,
                          .bits = parse_format(point.format)->facts().element_bits,
                          .rounded = stored["ptq"].get<double>()};
      if (stored.contains("qat")) measured.trained = stored["qat"].get<double>();
      result.points.push_back(std::move(measured));
    }
    return result;
  }

  const SweepOptions& options_;
  const engine::ExecutionOptions& execution_;
  const Callbacks& callbacks_;
  compress::FormatSweep formats_;
  io::Model model_;
  json configuration_, results_;
  std::optional<io::DirectoryLock> lock_;
  std::string measured_on_;
  data::Dataset examples_, held_out_, calibration_examples_;
  std::unique_ptr<train::ExampleSource> measured_, calibration_;
};

void check_options(const SweepOptions& options) {
  if (options.out.empty()) fail("sweep: needs out, a directory for its results");
  if (options.data.empty()) fail("sweep: needs data, to measure and train on");
  for (const auto& [name, value] :
       {std::pair("weights", &options.quantize.weights), std::pair("bias", &options.quantize.bias),
        std::pair("activations", &options.quantize.activations)})
    if (!value->empty())
      fail("{} {}: a sweep gives weights, biases and activations their format itself", name,
           *value);
}

}  // namespace

SweepResult sweep(const SweepOptions& options, const engine::ExecutionOptions& execution,
                  const Callbacks& callbacks) {
  check_options(options);
  if (!options.resumes) io::clear_output_directory(options.out, options.replaces, {options.model});
  return Sweep(options, execution, callbacks).run();
}

}  // namespace lathe::experiment
