#include "lathe/experiment/pipeline/compress.h"

#include <chrono>

#include "lathe/compress/pruning/insert_masks.h"
#include "lathe/compress/quantization_report.h"
#include "lathe/compress/size_target.h"
#include "lathe/core/role.h"
#include "lathe/data/match_labels.h"
#include "lathe/data/validation_split.h"
#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/pipeline/compress_report.h"
#include "lathe/experiment/pipeline/stage.h"
#include "lathe/experiment/read_data.h"
#include "lathe/experiment/recorded_options.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/directory_lock.h"
#include "lathe/io/json_file.h"
#include "lathe/io/model_size.h"
#include "lathe/io/output_directory.h"
#include "lathe/train/evaluation.h"
#include "lathe/train/make_source.h"

namespace lathe::experiment {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr const char* kResults = "results.json";
// Rows of train that a target's stages are chosen by.
constexpr std::int64_t kPlanningRows = 500;

json to_json(const StageSpec& stage) {
  return {{"kind", stage.kind}, {"settings", stage.settings}};
}

// Everything that decides the result.
json to_json(const CompressOptions& options) {
  json stages = json::array();
  for (const StageSpec& stage : options.stages) stages.push_back(to_json(stage));
  json result{{"model", recorded_path(options.model)},
              {"data", recorded_path(options.data)},
              {"config", stages},
              {"target-size", options.target.size},
              {"images", options.images},
              {"limit", options.limit},
              {"validation", options.validation},
              {"storage", io::name(options.storage)},
              {"seed", options.seed}};
  result["max-loss"] = options.target.max_loss ? json(*options.target.max_loss) : json();
  return result;
}

template <typename T>
void set(json& values, const char* name, const std::optional<T>& value) {
  if (value) values[name] = *value;
}
template <typename T>
void get(const json& values, const char* name, std::optional<T>& value) {
  if (values.contains(name)) value = values.at(name).get<T>();
}

json to_json(const StageResult& result) {
  json values{{"stage", result.stage},       {"summary", result.summary},
              {"bytes", result.bytes},       {"weight_bits", result.weight_bits},
              {"sparsity", result.sparsity}, {"parameters", result.parameters},
              {"seconds", result.seconds}};
  set(values, "accuracy", result.accuracy);
  set(values, "tokens_per_second", result.tokens_per_second);
  return values;
}

StageResult to_stage_result(const json& values) {
  StageResult result{.stage = values.at("stage"),
                     .summary = values.at("summary"),
                     .bytes = values.at("bytes"),
                     .weight_bits = values.at("weight_bits"),
                     .sparsity = values.at("sparsity"),
                     .parameters = values.at("parameters"),
                     .seconds = values.at("seconds")};
  get(values, "accuracy", result.accuracy);
  get(values, "tokens_per_second", result.tokens_per_second);
  return result;
}

// "epochs 2, lr 0.0002".
std::string summary_of(const StageSpec& stage) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : stage.settings.items()) {
    if (value.is_object())
      parts.push_back(fmt::format("{} of {}", name, value.size()));
    else
      parts.push_back(
          fmt::format("{} {}", name, value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// What masks take out, and zeros of parameters that have none.
std::int64_t count_zeros(const io::Model& model) {
  std::int64_t zeros = 0;
  const auto add = [&](const Tensor& tensor) {
    if (tensor.dtype() != DType::F32) return;
    for (const float value : tensor.data<float>()) zeros += value == 0 ? 1 : 0;
  };
  for (const NodeId mask : states_of(model.graph, StateRole::Mask))
    add(model.state.at(model.graph.name(mask)));
  for (const NodeId parameter : states_of(model.graph, StateRole::Parameter))
    if (!compress::find_mask(model.graph, parameter))
      add(model.state.at(model.graph.name(parameter)));
  return zeros;
}

class Compression {
 public:
  Compression(CompressOptions& options, const engine::ExecutionOptions& execution,
              const Callbacks& callbacks)
      : options_(options), execution_(execution), callbacks_(callbacks) {}

  CompressResult run() {
    take_up();
    const std::string original = model_with_images();
    if (!results_.contains("original")) {
      results_["original"] = to_json(
          measure(load(original), io::model_size(original), {.stage = "model", .summary = {}}));
      save();
    }
    if (options_.stages.empty()) plan();
    for (std::size_t i = 0; i < options_.stages.size(); ++i) run_stage(i, original);
    write_result();
    test(original);
    check_target();
    CompressResult result = collect();
    write_compress_report(result, options_);
    return result;
  }

 private:
  void take_up() {
    std::error_code error;
    if (!options_.resumes) {
      const std::vector<fs::path> needed = {options_.model, options_.data};
      io::check_output_directory(options_.out, options_.replaces, needed, "a compression");
      read_data(load(options_.model));  // what is wrong with it must not leave a directory
      if (!options_.target.size.empty())
        check_size_target(load(options_.model), options_.target.size, options_.storage, execution_,
                          callbacks_);
      io::clear_output_directory(options_.out, options_.replaces, needed);
    }
    fs::create_directories(options_.out / "stages", error);
    if (error) fail("{}: cannot be created: {}", options_.out.string(), error.message());
    lock_.emplace(options_.out);
    const json configuration = to_json(options_);
    if (options_.resumes && fs::exists(options_.out / kResults, error)) {
      results_ = io::read_json(options_.out / kResults);
      check_recorded(configuration, results_.value("configuration", json::object()), "compression",
                     options_.out);
      return;
    }
    results_ = {{"format", "lathe-compression"},
                {"configuration", configuration},
                {"stages", json::array()}};
    if (!held_out_.examples.empty())
      results_["measured_on"] = fmt::format("{} rows held out of train", held_out_.examples.size());
    save();
  }

  // The path of the model that the stages begin with: a copy that says what is done to images,
  // where the model itself does not.
  std::string model_with_images() const {
    if (options_.images.empty()) return absolute_path(options_.model);
    const fs::path copy = options_.out / "stages" / "model";
    if (!io::is_checkpoint(copy)) io::write_checkpoint(copy, load(options_.model));
    return absolute_path(copy.string());
  }

  void save() const { io::write_atomically(options_.out / kResults, results_.dump(2) + "\n"); }

  // The rows to train on and those to measure on. The same are held out in every stage of training.
  void read_data(const io::Model& model) {
    if (has_read_ || options_.data.empty()) return;
    has_read_ = true;
    if (model.labels != LabelKind::Class)
      fail("compress: measures stages by accuracy, and the model is for {}",
           problem_type(model.labels));
    data::Dataset all = data::match_labels(
        read_examples(model, options_.data, "train", options_.limit, callbacks_.should_stop),
        model.label_names);
    const auto size = static_cast<std::int64_t>(all.examples.size());
    options_.validation = std::min(options_.validation, size / 5);
    if (options_.validation == 0) return;
    const data::ValidationSplit split =
        data::split_validation(all.labels(), options_.validation, 0);
    held_out_ = data::select(all, split.validation);
    train_ = data::select(all, split.train);
  }

  io::Model load(const fs::path& directory) const {
    io::Model model = io::load_model(directory.string(), {.seed = options_.seed});
    if (directory == options_.model) set_images(model, options_.images);
    return model;
  }

  StageResult measure(const io::Model& model, const io::ModelSize& size, StageResult result) {
    read_data(model);
    result.bytes = size.bytes();
    const std::int64_t zeros = count_zeros(model);
    result.parameters =
        static_cast<std::int64_t>(compress::count_bits(model.graph, model.state).floats / 32);
    for (const auto& [file, bytes] : size.files)
      if (file.ends_with(".safetensors"))
        result.weight_bits +=
            8 * static_cast<double>(bytes) / static_cast<double>(result.parameters);
    result.sparsity = static_cast<double>(zeros) / static_cast<double>(result.parameters);
    if (held_out_.examples.empty()) return result;
    const auto source = train::make_evaluation_source(model, held_out_, {}, execution_.pool,
                                                      callbacks_.should_stop);
    train::Classifier classifier(model, {.execution = execution_});
    const train::Evaluation seen =
        train::evaluate(classifier, *source, static_cast<std::int64_t>(model.label_names.size()),
                        {.progress = [&](std::int64_t done, std::int64_t) {
                          callbacks_.tell({.activity = "measuring " + result.stage,
                                           .unit = "examples",
                                           .done = done,
                                           .total = source->size()});
                          return !callbacks_.stops();
                        }});
    result.accuracy = seen.accuracy;
    result.tokens_per_second = static_cast<double>(seen.tokens) / seen.forward_seconds;
    return result;
  }

  // A target's stages are chosen once; a compression that is resumed keeps them.
  void plan() {
    if (!results_.contains("plan")) {
      const io::Model model = load(options_.model);
      read_data(model);
      if (train_.examples.empty())
        fail("target-size and max-loss: need data to choose by: give stages, or data");
      const data::Dataset some = data::take_some(train_, kPlanningRows);
      const auto source =
          train::make_evaluation_source(model, some, {}, execution_.pool, callbacks_.should_stop);
      json stages = json::array();
      for (const StageSpec& stage :
           plan_stages(model, options_.target, options_.storage, *source, execution_, callbacks_))
        stages.push_back(to_json(stage));
      results_["plan"] = stages;
      save();
    }
    for (const json& stage : results_["plan"])
      options_.stages.push_back({.kind = stage.at("kind"), .settings = stage.at("settings")});
  }

  fs::path directory_of(std::size_t index) const {
    return options_.out / "stages" / fmt::format("{}-{}", index + 1, options_.stages[index].kind);
  }

  void run_stage(std::size_t index, const std::string& original) {
    const StageSpec& stage = options_.stages[index];
    const fs::path out = directory_of(index);
    if (results_["stages"].size() > index) return;
    if (!options_.data.empty() && !has_read_) read_data(load(options_.model));
    const Clock::time_point start = Clock::now();
    const Callbacks inner{.progress =
                              [&](const Progress& now) {
                                Progress named = now;
                                named.activity =
                                    fmt::format("{}/{} {}: {}", index + 1, options_.stages.size(),
                                                stage.kind, now.activity);
                                callbacks_.tell(named);
                              },
                          .notice = callbacks_.notice,
                          .should_stop = callbacks_.should_stop};
    const auto work = [&] {
      find_stage(stage.kind)
          .run({.model = index == 0 ? original : directory_of(index - 1).string(),
                .original = original,
                .data = options_.data,
                .limit = options_.limit,
                .validation = held_out_.examples.empty() ? 0 : options_.validation,
                .train = train_,
                .held_out = held_out_,
                .seed = options_.seed,
                .settings = stage.settings,
                .out = out,
                .execution = execution_,
                .callbacks = inner});
    };
    // A checkpoint appears whole: where there is one, only measuring it was interrupted.
    if (!io::is_checkpoint(out)) with_place(stage.place.empty() ? stage.kind : stage.place, work);
    StageResult result{.stage = stage.kind, .summary = summary_of(stage)};
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const io::Model model = load(out);
    const io::ModelSize size = io::checkpoint_size(model, options_.storage);
    results_["stages"].push_back(to_json(measure(model, size, std::move(result))));
    save();
  }

  // The result lies in `out` itself: the files that are needed to run it, the manifest last.
  void write_result() {
    const fs::path aside = options_.out / "stages" / "result";
    std::error_code ignored;
    fs::remove_all(aside, ignored);
    io::write_checkpoint(aside, load(directory_of(options_.stages.size() - 1)), options_.storage);
    const io::ModelSize written = io::model_size(aside);
    for (const bool is_manifest : {false, true})
      for (const auto& [name, bytes] : written.files)
        if ((name == "manifest.json") == is_manifest) fs::rename(aside / name, options_.out / name);
    fs::remove_all(aside, ignored);
  }

  void test(const std::string& original) {
    if (!options_.is_tested || options_.data.empty() || results_.contains("test")) return;
    const io::Model model = load(options_.out);
    if (!data::has_split(options_.data, "test", {.reads = train::reads_of(*model.family)})) return;
    const auto measured = [&](const io::Model& tested) {
      return evaluate_on(tested, {.data = options_.data}, execution_, callbacks_).classes->accuracy;
    };
    results_["original_test"] = measured(load(original));
    results_["test"] = measured(model);
    save();
  }

  // What was asked for was planned; training changes how well codes compress, and what is lost.
  void check_target() const {
    const StageResult before = to_stage_result(results_.at("original"));
    const StageResult after = to_stage_result(results_.at("stages").back());
    const CompressionTarget& target = options_.target;
    if (!target.size.empty()) {
      const std::int64_t most = compress::parse_size_target(target.size).bytes_for(before.bytes);
      if (after.bytes > most)
        callbacks_.warn(fmt::format("target-size {}: was missed: {}, expected at most {}",
                                    target.size, compress::bytes_text(after.bytes),
                                    compress::bytes_text(most)));
    }
    if (target.max_loss && before.accuracy && after.accuracy) {
      const double lost = 100 * (*before.accuracy - *after.accuracy);
      if (lost > *target.max_loss)
        callbacks_.warn(fmt::format("max-loss {}: was missed: {:.2f} points on {}",
                                    *target.max_loss, lost,
                                    results_.value("measured_on", "the rows held out")));
    }
  }

  CompressResult collect() const {
    CompressResult result;
    result.stages.push_back(to_stage_result(results_.at("original")));
    for (const json& stage : results_.at("stages")) result.stages.push_back(to_stage_result(stage));
    result.measured_on = results_.value("measured_on", "");
    get(results_, "test", result.test_accuracy);
    get(results_, "original_test", result.original_test_accuracy);
    return result;
  }

  CompressOptions& options_;
  const engine::ExecutionOptions& execution_;
  const Callbacks& callbacks_;
  std::optional<io::DirectoryLock> lock_;
  json results_;
  bool has_read_ = false;
  data::Dataset train_, held_out_;
};

}  // namespace

CompressResult compress_model(CompressOptions options, const engine::ExecutionOptions& execution,
                              const Callbacks& callbacks) {
  if (options.model.empty()) fail("model: is missing: expected a directory");
  if (options.out.empty()) fail("out: is missing: expected a directory to write");
  const bool has_target = !options.target.size.empty() || options.target.max_loss;
  if (options.stages.empty() == !has_target)
    fail("expected either the stages of a pipeline, or a target to choose them by");
  if (!options.target.size.empty() && options.target.max_loss)
    fail("target-size and max-loss: expected one of the two");
  for (const StageSpec& stage : options.stages)
    with_place(stage.place.empty() ? stage.kind : stage.place,
               [&] { find_stage(stage.kind).check(stage.settings); });
  ThreadPool single(1);
  engine::ExecutionOptions pooled = execution;
  if (pooled.pool == nullptr) pooled.pool = &single;
  return Compression(options, pooled, callbacks).run();
}

}  // namespace lathe::experiment
