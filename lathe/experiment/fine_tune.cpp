#include "lathe/experiment/fine_tune.h"

#include "lathe/compress/packed_weights.h"
#include "lathe/compress/pruning/gradual_pruning.h"
#include "lathe/experiment/evaluation_json.h"
#include "lathe/experiment/fine_tune_examples.h"
#include "lathe/experiment/fine_tune_ranges.h"
#include "lathe/experiment/fine_tune_run.h"
#include "lathe/experiment/read_data.h"
#include "lathe/experiment/run_record.h"
#include "lathe/experiment/run_report.h"
#include "lathe/experiment/student.h"
#include "lathe/experiment/teachers.h"
#include "lathe/io/model_family.h"
#include "lathe/io/output_directory.h"
#include "lathe/train/make_source.h"
#include "lathe/train/train_model.h"
#include "lathe/train/training_feed.h"

namespace lathe::experiment {
namespace {

namespace fs = std::filesystem;

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
  const train::Augmentation augmentation =
      with_place("augment", [&] { return train::parse_augmentation(options.augment); });
  if (augmentation != train::Augmentation() && !options.teacher.empty())
    fail("augment: a teacher answers for images as they are");
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

fs::path teacher_cache(const FineTuneOptions& options) {
  if (!options.teacher_cache.empty()) return options.teacher_cache;
  return options.out.empty() ? fs::path() : options.out / "teachers";
}

train::TrainOptions to_train_options(const FineTuneOptions& options,
                                     const engine::ExecutionOptions& execution) {
  train::TrainOptions result;
  result.trainer = options.trainer;
  result.graph = options.graph;
  result.mask_share = options.mask;
  result.length = options.length;
  result.truncation = options.truncation;
  result.augmentation = train::parse_augmentation(options.augment);
  result.execution = execution;
  result.keep_checkpoints = options.keep_checkpoints;
  result.finish = [](io::Model model) {
    compress::pack_model(model);
    return model;
  };
  return result;
}

train::TrainCallbacks to_train_callbacks(const FineTuneCallbacks& callbacks, models::Reads reads) {
  train::TrainCallbacks result;
  // A single batch's loss jumps about: what is shown follows it slowly.
  struct Shown {
    double loss = 0, tokens = 0, seconds = 0;
  };
  const char* const counted = reads == models::Reads::Tokens ? "tokens" : "examples";
  result.step = [&callbacks, counted, shown = Shown()](const train::StepReport& report) mutable {
    shown.loss = shown.tokens == 0 ? report.loss : 0.95 * shown.loss + 0.05 * report.loss;
    shown.tokens += static_cast<double>(report.tokens);
    shown.seconds += report.seconds;
    if (callbacks.step) callbacks.step(report);
    callbacks.tell({.activity = "training",
                    .unit = "steps",
                    .done = report.step,
                    .total = report.num_steps,
                    .note = fmt::format("loss {:.4f}, {:.0f} {}/s", shown.loss,
                                        shown.tokens / shown.seconds, counted)});
  };
  result.validation = callbacks.validation;
  result.should_stop = callbacks.should_stop;
  return result;
}

}  // namespace

FineTuned fine_tune(FineTuneOptions options, const engine::ExecutionOptions& execution,
                    const FineTuneCallbacks& callbacks) {
  check_options(options);
  std::optional<train::RunDirectory> directory = open_run(options, callbacks);
  if (!directory && !options.out.empty() && !options.resumes)
    io::check_output_directory(options.out, options.replaces, needed_by(options), "a run");
  const train::TrainingCheckpoint* const checkpoint =
      directory && directory->checkpoint() ? &*directory->checkpoint() : nullptr;

  const std::string task = train::task_of(options.graph.objective);  // refuses an unknown one
  const models::ModelFamily& family = io::model_family(options.model);
  if (!directory)  // records of older runs have what changed nothing
    refuse_options_of_texts(
        family, {{"length", options.length > 0}, {"truncation", options.truncation.has_value()}});
  models::find_task(family, task);
  const data::ColumnOptions columns = columns_of(options);
  data::Dataset all = read_examples(
      options.model, options.data, options.split, options.limit, callbacks.should_stop, columns,
      train::labels_of(options.graph.objective), task, options.images);
  options.graph.objective = train::objective_for(options.graph.objective, all.label_kind);
  if (!options.teacher.empty() && options.graph.objective != "classify")
    fail("teacher: is for the objective classify, not {}", options.graph.objective);
  if (options.trainer.is_balanced && options.graph.objective != "classify")
    fail("balanced: is for the objective classify, not {}", options.graph.objective);
  check_classes(options, all);
  const bool validates_on_file = has_validation_file(options, train::reads_of(family, task));
  if (!validates_on_file && options.trainer.patience > 0 && options.validation == 0)
    throw UserError(fmt::format("patience {}: there are no rows held out to be patient with",
                                options.trainer.patience),
                    "validation N holds out so many");
  if (!validates_on_file)
    decide_validation(options, static_cast<std::int64_t>(all.examples.size()));
  io::Model model = checkpoint != nullptr ? checkpoint->model : load_student(options, all);
  if (models::gives_labels(task)) adopt_labels(model, all);
  if (!options.truncation && family.reads == models::Reads::Tokens)
    options.truncation = model.reading.truncation;
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
  RunExamples examples = hold_out(std::move(all), options.validation, !options.teacher.empty());
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
  train::TrainOutcome outcome = train::train_model(
      std::move(model), examples.train, examples.validation, training,
      to_train_callbacks(callbacks, family.reads), directory ? &*directory : nullptr);
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
