#include "lathe/experiment/fine_tune.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lathe/compress/layer_match.h"
#include "lathe/compress/lora.h"
#include "lathe/compress/lora_adapter.h"
#include "lathe/compress/lora_options.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/compress/pruning/gradual_pruning.h"
#include "lathe/compress/quantizers.h"
#include "lathe/compress/trained_parameters.h"
#include "lathe/core/role.h"
#include "lathe/data/match_labels.h"
#include "lathe/data/validation_split.h"
#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/evaluation_json.h"
#include "lathe/experiment/fine_tune_ranges.h"
#include "lathe/experiment/model_list.h"
#include "lathe/experiment/read_data.h"
#include "lathe/experiment/run_record.h"
#include "lathe/experiment/run_report.h"
#include "lathe/experiment/teachers.h"
#include "lathe/io/model_family.h"
#include "lathe/io/output_directory.h"
#include "lathe/train/make_source.h"
#include "lathe/train/targets.h"
#include "lathe/train/train_model.h"
#include "lathe/train/training_feed.h"

namespace lathe::experiment {
namespace {

namespace fs = std::filesystem;

// Rows held out where something is chosen by them and no number was given.
constexpr std::int64_t kHeldOut = 2000;

struct Examples {
  data::Dataset train, validation;
};

// What whoever runs the model must know of its examples.
void remember_reading(io::Model& model, const FineTuneOptions& options) {
  io::Reading& reading = model.reading;
  if (options.length > 0) reading.length = options.length;
  reading.truncation = options.truncation.value_or(reading.truncation);
  if (!options.text_column.empty()) reading.text_columns = options.text_column;
  if (!options.label_column.empty()) reading.label_columns = options.label_column;
  reading.label_separator = options.label_separator;
}

// The same rows are held out whatever the seed, so that runs can be compared; with `labelled`, of
// those that have a label, whatever others there are.
Examples hold_out(data::Dataset all, std::int64_t count, bool labelled) {
  if (count == 0) return {.train = std::move(all), .validation = {}};
  std::vector<std::int64_t> candidates, others;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(all.examples.size()); ++i) {
    const std::int32_t label = all.examples[static_cast<std::size_t>(i)].label;
    if (labelled && label == data::kNoLabel) {
      others.push_back(i);
      continue;
    }
    candidates.push_back(i);
    labels.push_back(label);
  }
  const auto size = static_cast<std::int64_t>(candidates.size());
  if (count >= size)
    fail("validation {}: the data has {} examples only{}", count, size,
         others.empty() ? "" : " with a label");
  data::ValidationSplit split = data::split_validation(labels, count, 0);
  for (std::vector<std::int64_t>* part : {&split.train, &split.validation})
    for (std::int64_t& position : *part) position = candidates[static_cast<std::size_t>(position)];
  split.train.insert(split.train.end(), others.begin(), others.end());
  return {.train = data::select(all, split.train),
          .validation = data::select(all, split.validation)};
}

data::ColumnOptions columns_of(const FineTuneOptions& options) {
  const io::Reading known = io::model_reading(options.model);
  return {.text = options.text_column,
          .label = options.label_column,
          .known_text = known.text_columns,
          .known_label = known.label_columns,
          .header = options.header,
          .separator = options.label_separator};
}

// Data of its own to validate on; made-up data has some for whoever asks.
bool has_validation_file(const FineTuneOptions& options, data::Reads reads) {
  if (!data::is_directory_of_data(options.data) ||
      !data::has_split(options.data, "validation", {.reads = reads}))
    return false;
  if (options.validation > 0)
    throw UserError(fmt::format("validation {}: {} has a validation split of its own",
                                options.validation, options.data),
                    "leave the option out to validate on it");
  return true;
}

// What cannot be learned is said before anything is.
void check_classes(const FineTuneOptions& options, const data::Dataset& examples) {
  if (examples.label_kind != LabelKind::Class || options.graph.objective != "classify") return;
  if (examples.label_names.size() == 1)
    fail("{}: every example of {} has the label \"{}\": expected two labels or more to tell apart",
         options.data, options.split, examples.label_names.front());
}

// `balanced`, or a weight for each name.
std::vector<float> class_weights_of(const FineTuneOptions& options, const io::Model& model,
                                    const data::Dataset& examples) {
  if (options.class_weights.empty()) return {};
  if (options.graph.objective != "classify")
    fail("class-weights: is for the objective classify, not {}", options.graph.objective);
  if (!options.teacher.empty()) fail("class-weights: cannot be given together with a teacher");
  if (options.class_weights == "balanced") return train::balanced_weights(examples);
  std::vector<float> weights(model.label_names.size(), 1);
  for (std::size_t begin = 0; begin < options.class_weights.size();) {
    const std::size_t end =
        std::min(options.class_weights.find(',', begin), options.class_weights.size());
    const std::string part = options.class_weights.substr(begin, end - begin);
    const std::size_t equals = part.rfind('=');
    const auto label = std::ranges::find(model.label_names, part.substr(0, equals));
    double weight = 0;
    const char* const stop = part.data() + part.size();
    const auto [read, error] =
        equals == part.npos ? std::from_chars_result{part.data(), std::errc::invalid_argument}
                            : std::from_chars(part.data() + equals + 1, stop, weight);
    if (error != std::errc{} || read != stop || !(weight >= 0) || !std::isfinite(weight))
      fail("class-weights {}: expected NAME=WEIGHT with a weight of 0 or more, or balanced", part);
    if (label == model.label_names.end())
      fail("class-weights {}: the labels are {}", part, fmt::join(model.label_names, ", "));
    weights[static_cast<std::size_t>(label - model.label_names.begin())] =
        static_cast<float>(weight);
    begin = end + 1;
  }
  return weights;
}

// What is decided by held-out rows needs some.
void decide_validation(FineTuneOptions& options, std::int64_t examples) {
  const bool is_choosing = options.trainer.validate_every > 0;
  if (is_choosing && options.validation == 0) options.validation = std::min(kHeldOut, examples / 5);
}

void check_options(const FineTuneOptions& options) {
  if (options.model.empty()) fail("model: is missing: expected a directory or a builder's name");
  if (options.data.empty()) fail("data: is missing: expected a directory, or reviews");
  check_ranges(options);
  if (!options.lora.empty() && !options.graph.freeze.empty())
    fail("freeze: with lora everything but its paths and fresh heads is frozen already");
  if (!options.lora.empty() && !options.prune.empty())
    fail("prune: with lora the weights do not train: prune the model before, or after");
  if (!options.teacher.empty() && options.graph.objective != "classify")
    fail("teacher: is for the objective classify, not {}", options.graph.objective);
  train::check_distillation(options.graph.distillation);
  const train::DistillationOptions &how = options.graph.distillation, defaults;
  if (!options.teacher.empty()) {
    if (how.weight == 0 && !how.follows_layers())
      fail("teacher-weight 0: nothing would be learned from the teacher");
    return;
  }
  if (how.weight != defaults.weight) fail("teacher-weight: needs a teacher");
  if (how.temperature != defaults.temperature) fail("temperature: needs a teacher");
  if (how.hidden != 0) fail("teacher-hidden: needs a teacher");
  if (how.attention != 0) fail("teacher-attention: needs a teacher");
  if (!options.teacher_cache.empty()) fail("teacher-cache: needs a teacher");
}

// What must not be replaced by the run: it is read.
std::vector<fs::path> needed_by(const FineTuneOptions& options) {
  std::vector<fs::path> needed{options.model};
  if (!options.teacher.empty())
    for (const std::string& name : model_list(options.teacher)) needed.emplace_back(name);
  return needed;
}

fs::path teacher_cache(const FineTuneOptions& options) {
  if (!options.teacher_cache.empty()) return options.teacher_cache;
  return options.out.empty() ? fs::path() : options.out / "teachers";
}

// A graph that is trained needs its loss, and with it the input of labels.
std::vector<std::string> inputs_with_labels(const models::ModelFamily& family,
                                            const std::string& task) {
  std::vector<std::string> inputs = models::find_task(family, task).inputs;
  if (std::find(inputs.begin(), inputs.end(), "labels") == inputs.end()) inputs.push_back("labels");
  return inputs;
}

// A classifier that was trained and knows the data's labels keeps its head; any other starts one
// with a logit for each of them.
bool keeps_labels(const io::Model& model, const data::Dataset& examples) {
  if (model.labels != examples.label_kind) return false;
  if (examples.label_kind == LabelKind::Number) return true;
  const std::string& layer = models::find_task(*model.family, model.task).label_layer;
  for (const std::string& name : model.fresh)
    if (layer.empty() || name.starts_with(layer + ".")) return false;
  data::Dataset names{.examples = {}, .label_names = examples.label_names};
  for (std::int32_t label = 0; label < examples.num_labels(); ++label)
    names.examples.push_back({.text = {}, .label = label});
  try {
    data::match_labels(std::move(names), model.label_names);
    return true;
  } catch (const UserError&) {
    return examples.label_names.size() == model.label_names.size();
  }
}

io::Model unpacked(io::Model model) {
  compress::unpack_model(model);
  return model;
}

io::Model load_student(const FineTuneOptions& options, const data::Dataset& examples) {
  const std::string task = train::task_of(options.graph.objective);
  io::LoadOptions loading{.task = task,
                          .inputs = inputs_with_labels(io::model_family(options.model), task),
                          .seed = options.trainer.seed,
                          .with_masters = true};
  const bool is_classifier = task == "classify";
  if (is_classifier) loading.labels = examples.label_kind;
  if (is_classifier && examples.label_kind == LabelKind::Number) loading.num_labels = 1;
  if (examples.has_pairs) {
    const std::vector<std::string>& others =
        models::find_task(io::model_family(options.model), task).optional_inputs;
    if (std::ranges::find(others, train::kTokenTypes) != others.end())
      loading.inputs.emplace_back(train::kTokenTypes);
  }
  if (options.labels > 0 || options.new_head) {
    if (!is_classifier) fail("labels: a model for {} has none to choose", task);
    if (options.labels > 0 && options.labels < examples.num_labels())
      fail("labels {}: the data has {}: {}", options.labels, examples.num_labels(),
           fmt::join(examples.label_names, ", "));
    loading.new_head = options.new_head;
    if (examples.label_kind != LabelKind::Number)
      loading.num_labels = options.labels > 0 ? options.labels : examples.num_labels();
    return unpacked(load_with_tokenizer(options.model, options.tokenizer, options.data, loading));
  }
  io::LoadOptions first = loading;
  first.labels = std::nullopt;  // as it was trained, to see whether that fits
  if (examples.label_kind == LabelKind::Number) first.num_labels = 0;
  io::Model model = load_with_tokenizer(options.model, options.tokenizer, options.data, first);
  if (is_classifier && !keeps_labels(model, examples)) {
    if (examples.label_kind != LabelKind::Number)
      loading.num_labels =
          std::max(examples.label_kind == LabelKind::Class ? 2 : 1, examples.num_labels());
    if (loading.num_labels != static_cast<std::int64_t>(model.label_names.size()) ||
        model.labels != examples.label_kind) {
      // What told classes apart has nothing to say of numbers or sets.
      loading.new_head = model.labels != examples.label_kind && model.fresh.empty();
      model = load_with_tokenizer(options.model, options.tokenizer, options.data, loading);
    }
  }
  return unpacked(std::move(model));
}

// A pattern that freezes nothing is a typing error as a rule.
void warn_of_idle_patterns(const FineTuneOptions& options, const Graph& graph,
                           const Callbacks& callbacks) {
  for (const std::string& pattern : options.graph.freeze) {
    with_place("freeze", [&] { compress::check_match(compress::MatchBy::Regex, pattern); });
    const std::vector<NodeId> states = states_of(graph, StateRole::Parameter);
    const bool is_idle = std::ranges::none_of(states, [&](NodeId id) {
      return compress::matches(compress::MatchBy::Regex, pattern, "state", graph.name(id));
    });
    if (is_idle) callbacks.warn(fmt::format("freeze \"{}\": matches no parameter", pattern));
  }
}

// Puts LoRA's paths into a model; of one that is resumed they are there. Returns what trains.
std::vector<std::string> prepare_lora(io::Model& model, const FineTuneOptions& options,
                                      const train::TrainingCheckpoint* resumed,
                                      const Callbacks& callbacks) {
  if (resumed != nullptr) {
    State state = model.state;
    return compress::parameters_with_moments(
        train::make_training_graph(model, options.graph, state).graph, resumed->state);
  }
  const compress::LoraOptions lora =
      with_place("lora", [&] { return compress::parse_lora_options(options.lora); });
  if (compress::is_quantized(model.graph))
    callbacks.warn(
        "lora: the model is quantized, so that its paths cannot be fused into the weights; to have "
        "one model in the end, fuse on the float model and quantize that");
  // Before the insertion, after which the paths' states would count as the file's.
  const std::vector<std::string> fresh = compress::fresh_head(model);
  with_place("lora",
             [&] { compress::insert_lora(model.graph, model.state, lora, options.trainer.seed); });
  return compress::lora_parameters(model.graph, fresh);
}

void save_adapter(const fs::path& run, const io::Model& model,
                  const std::vector<std::string>& trained, const std::string& base,
                  const Callbacks& callbacks) {
  for (const compress::LoraPath& path : compress::find_lora(model.graph))
    if (path.mask.index >= 0) {
      callbacks.warn(
          "no adapter is written: masks cover the LoRA paths, which an adapter has no place for");
      return;
    }
  std::vector<std::string> saved = trained;
  for (const compress::LoraPath& path : compress::find_lora(model.graph))
    for (const NodeId id : {path.a, path.b}) std::erase(saved, model.graph.name(id));
  compress::save_adapter(run / "adapter", model, saved, base);
}

train::TrainOptions to_train_options(const FineTuneOptions& options,
                                     const engine::ExecutionOptions& execution) {
  train::TrainOptions result;
  result.trainer = options.trainer;
  result.graph = options.graph;
  result.mask_share = options.mask;
  result.length = options.length;
  result.truncation = options.truncation;
  result.execution = execution;
  result.keep_checkpoints = options.keep_checkpoints;
  result.finish = [](io::Model model) {
    compress::pack_model(model);
    return model;
  };
  return result;
}

train::TrainCallbacks to_train_callbacks(const FineTuneCallbacks& callbacks) {
  train::TrainCallbacks result;
  // A single batch's loss jumps about: what is shown follows it slowly.
  struct Shown {
    double loss = 0, tokens = 0, seconds = 0;
  };
  result.step = [&callbacks, shown = Shown()](const train::StepReport& report) mutable {
    shown.loss = shown.tokens == 0 ? report.loss : 0.95 * shown.loss + 0.05 * report.loss;
    shown.tokens += static_cast<double>(report.tokens);
    shown.seconds += report.seconds;
    if (callbacks.step) callbacks.step(report);
    callbacks.tell({.activity = "training",
                    .unit = "steps",
                    .done = report.step,
                    .total = report.num_steps,
                    .note = fmt::format("loss {:.4f}, {:.0f} tokens/s", shown.loss,
                                        shown.tokens / shown.seconds)});
  };
  result.validation = callbacks.validation;
  result.should_stop = callbacks.should_stop;
  return result;
}

EvaluateOptions test_options(const FineTuneOptions& options) {
  EvaluateOptions result{.data = options.data,
                         .split = "test",
                         .length = options.length,
                         .limit = options.limit,
                         .truncation = options.truncation};
  result.columns = columns_of(options);
  return result;
}

// The directory of a run that is resumed; nothing for a new one.
std::optional<train::RunDirectory> open_run(const FineTuneOptions& options,
                                            const Callbacks& callbacks) {
  if (!options.resumes) return std::nullopt;
  if (options.out.empty()) fail("resume: needs out, the directory of the run");
  std::optional<train::RunDirectory> directory = train::RunDirectory::open(options.out);
  if (directory)
    for (const std::string& line : directory->skipped())
      callbacks.warn("passed over a damaged checkpoint: " + line);
  return directory;
}

train::RunDirectory create_run(const FineTuneOptions& options) {
  // A run that is resumed may have been stopped before it wrote anything.
  if (!options.resumes || fs::exists(options.out / "manifest.json"))
    io::clear_output_directory(options.out, options.replaces, needed_by(options));
  return train::RunDirectory::create(options.out, to_json(options));
}

// What is wrong with resuming a run that was never started, with the run of the nearest name.
UserError no_run_error(const fs::path& out) {
  std::error_code ignored;
  const fs::path parent = out.has_parent_path() ? out.parent_path() : fs::path(".");
  std::vector<std::string> runs;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, ignored))
    if (fs::exists(entry.path() / "run.json", ignored))
      runs.push_back(entry.path().filename().string());
  std::ranges::sort(runs);
  const std::string nearest = nearest_name(out.filename().string(), runs);
  return UserError(
      fmt::format("out {}: {}", out.string(),
                  fs::exists(out, ignored) ? "holds no run to resume" : "there is no such run"),
      !nearest.empty() ? fmt::format("did you mean \"{}\"?", nearest)
      : runs.empty()   ? "lathe train --model M --data D --out DIR starts one"
                       : fmt::format("runs beside it: {}", fmt::join(runs, ", ")));
}

// Removes the directory of a run that failed before it had anything worth keeping, so that the same
// command can be tried again.
class FailedRun {
 public:
  explicit FailedRun(const train::RunDirectory* directory, fs::path path)
      : directory_(directory), path_(std::move(path)) {}
  ~FailedRun() {
    std::error_code ignored;
    if (directory_ != nullptr && std::uncaught_exceptions() > uncaught_ &&
        !has_checkpoint(path_ / "checkpoints"))
      fs::remove_all(path_, ignored);
  }
  // There is something worth keeping now.
  void keep() { directory_ = nullptr; }
  FailedRun(const FailedRun&) = delete;
  FailedRun& operator=(const FailedRun&) = delete;

 private:
  static bool has_checkpoint(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored) && !fs::is_empty(path, ignored);
  }
  const train::RunDirectory* directory_;
  fs::path path_;
  int uncaught_ = std::uncaught_exceptions();
};

// More epochs: in cycles as long as those before, where whole ones make them, so that the run is as
// one that was started with so many; else in one cycle more.
void extend_run(FineTuneOptions& options, std::int64_t epochs) {
  train::TrainerOptions& trainer = options.trainer;
  if (epochs < trainer.epochs)
    throw UserError(fmt::format("epochs {}: the run in {} was started with {}", epochs,
                                options.out.string(), trainer.epochs),
                    "more of them extend it; fewer cannot be taken back");
  if (trainer.max_steps > 0)
    fail("epochs {}: the run in {} was started with steps {}, which end it", epochs,
         options.out.string(), trainer.max_steps);
  if (trainer.ended.empty() && epochs * trainer.cycles % trainer.epochs == 0)
    trainer.cycles = epochs * trainer.cycles / trainer.epochs;
  else
    trainer.ended.push_back(trainer.epochs);
  trainer.epochs = epochs;
}

// The test split as the trained model will see it, and its labels: a mistake there is found before
// hours of training, not after them.
std::optional<data::Dataset> read_test(const FineTuneOptions& options, const io::Model& model,
                                       const Callbacks& callbacks) {
  if (!options.is_tested || model.task != "classify" ||
      !data::has_split(options.data, "test", {.reads = train::reads_of(*model.family)}))
    return std::nullopt;
  return read_for(model, test_options(options), callbacks.should_stop);
}

}  // namespace

bool take_up_run(FineTuneOptions& options, const std::set<std::string>& given) {
  if (options.out.empty()) fail("resume: needs out, the directory of the run");
  const std::optional<nlohmann::json> recorded =
      train::RunDirectory::recorded_configuration(options.out);
  if (!recorded && options.model.empty()) throw no_run_error(options.out);
  if (!recorded) return false;
  const std::int64_t asked = given.contains("epochs") ? options.trainer.epochs : 0;
  std::set<std::string> fixed = given;
  fixed.erase("epochs");
  take_recorded(options, *recorded, fixed);
  if (asked > 0 && asked != options.trainer.epochs) extend_run(options, asked);
  return true;
}

FineTuned fine_tune(FineTuneOptions options, const engine::ExecutionOptions& execution,
                    const FineTuneCallbacks& callbacks) {
  check_options(options);
  std::optional<train::RunDirectory> directory = open_run(options, callbacks);
  if (!directory && !options.out.empty() && !options.resumes)
    io::check_output_directory(options.out, options.replaces, needed_by(options), "a run");
  const train::TrainingCheckpoint* const checkpoint =
      directory && directory->checkpoint() ? &*directory->checkpoint() : nullptr;

  train::task_of(options.graph.objective);  // refuses an unknown one
  const data::ColumnOptions columns = columns_of(options);
  data::Dataset all =
      read_examples(options.model, options.data, options.split, options.limit,
                    callbacks.should_stop, columns, train::labels_of(options.graph.objective));
  options.graph.objective = train::objective_for(options.graph.objective, all.label_kind);
  if (!options.teacher.empty() && options.graph.objective != "classify")
    fail("teacher: is for the objective classify, not {}", options.graph.objective);
  if (options.trainer.is_balanced && options.graph.objective != "classify")
    fail("balanced: is for the objective classify, not {}", options.graph.objective);
  check_classes(options, all);
  const bool validates_on_file =
      has_validation_file(options, train::reads_of(io::model_family(options.model)));
  if (!validates_on_file && options.trainer.patience > 0 && options.validation == 0)
    throw UserError(fmt::format("patience {}: there are no rows held out to be patient with",
                                options.trainer.patience),
                    "validation N holds out so many");
  if (!validates_on_file)
    decide_validation(options, static_cast<std::int64_t>(all.examples.size()));
  io::Model model = checkpoint != nullptr ? checkpoint->model : load_student(options, all);
  const bool has_labels = train::task_of(options.graph.objective) == "classify";
  if (has_labels) adopt_labels(model, all);
  if (!options.truncation) options.truncation = model.reading.truncation;
  remember_reading(model, options);
  options.graph.class_weights = class_weights_of(options, model, all);
  std::optional<data::Dataset> validation_file;
  if (validates_on_file) {
    EvaluateOptions reading = test_options(options);
    reading.split = "validation";
    validation_file = read_for(model, reading, callbacks.should_stop);
  }
  const std::optional<data::Dataset> test = read_test(options, model, callbacks);
  warn_of_idle_patterns(options, model.graph, callbacks);
  if (!options.lora.empty())
    options.graph.train_only = prepare_lora(model, options, checkpoint, callbacks);
  std::optional<compress::GradualPruning> pruning;
  if (!options.prune.empty()) {
    pruning = with_place("prune", [&] {
      return compress::GradualPruning(model.graph, model.state,
                                      compress::parse_gradual_options(options.prune),
                                      options.trainer.seed);
    });
    options.graph.movement = pruning->movement();
  }
  std::optional<Teachers> teachers;
  if (!options.teacher.empty()) {
    teachers = load_teachers(options);
    options.teacher_hashes = teachers->hashes;
    if (options.graph.distillation.follows_layers()) {
      check_layers_can_be_followed(*teachers, model, options.length);
      for (const io::Model& teacher : teachers->models)
        options.graph.distillation.teachers.push_back(&teacher);
    }
  }
  Examples examples = hold_out(std::move(all), options.validation, !options.teacher.empty());
  if (validation_file) examples.validation = std::move(*validation_file);
  const bool is_new = !options.out.empty() && !directory;
  if (is_new)
    directory = create_run(options);
  else if (directory)
    directory->set_configuration(to_json(options));
  FailedRun failed(is_new ? &*directory : nullptr, options.out);

  train::TrainOptions training = to_train_options(options, execution);
  if (pruning) {
    training.before_step = [&](const train::BeforeStep& at) { pruning->before_step(at); };
    training.is_eligible = [&](std::int64_t done, std::int64_t num_steps) {
      return pruning->is_done(done, num_steps);
    };
  }
  if (callbacks.start)
    callbacks.start({.options = options,
                     .model = model,
                     .examples = static_cast<std::int64_t>(examples.train.examples.size()),
                     .held_out = static_cast<std::int64_t>(examples.validation.examples.size()),
                     .length = train::text_length(model, options.length),
                     .resumed_step = checkpoint != nullptr ? checkpoint->progress.step : 0,
                     .trained = options.graph.train_only});
  if (teachers && options.graph.distillation.weight > 0)
    training.soft_labels = ask_teachers(*teachers, model, examples.train, options,
                                        teacher_cache(options), execution, callbacks);
  // Unless they are followed step by step, the teachers have said all they have to say.
  if (options.graph.distillation.teachers.empty()) teachers.reset();
  train::TrainOutcome outcome =
      train::train_model(std::move(model), examples.train, examples.validation, training,
                         to_train_callbacks(callbacks), directory ? &*directory : nullptr);
  failed.keep();
  FineTuned result{std::move(outcome.model), std::move(outcome.result), std::nullopt, {}};
  if (result.training.ending == train::Ending::Interrupted) return result;
  if (directory && !options.lora.empty())
    save_adapter(options.out, result.model, options.graph.train_only,
                 to_json(options)["model"].get<std::string>(), callbacks);
  if (directory) write_curves(options.out);
  if (!test) return result;
  result.measured =
      evaluate_examples(result.model, *test, test_options(options), execution, callbacks);
  result.test = result.measured.classes;
  if (directory)
    write_results(options.out, options.data, "test", to_json(result.measured, result.model));
  return result;
}

}  // namespace lathe::experiment
