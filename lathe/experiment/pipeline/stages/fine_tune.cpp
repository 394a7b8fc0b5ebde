#include "lathe/experiment/fine_tune.h"

#include "lathe/compress/quantizers.h"
#include "lathe/experiment/fine_tune_run.h"
#include "lathe/experiment/pipeline/stage.h"
#include "lathe/experiment/run_record.h"

// fine-tune, qat, distil: training, with the options of `lathe train` by the names that run.json
// has for them. qat is training of a quantized model, and refuses another; distil learns from the
// model that the pipeline began with.
namespace lathe::experiment::fine_tune_stage {
namespace {

using nlohmann::json;

// What the pipeline decides for all of its stages, and what a run finds out itself.
constexpr const char* kNotOfAStage[] = {"model",      "data", "split",         "limit",
                                        "validation", "seed", "teacher-sha256"};

FineTuneOptions read_options(const json& settings) {
  for (const char* name : kNotOfAStage)
    if (settings.contains(name)) fail("{}: is not a stage's to say", name);
  FineTuneOptions options;
  options.trainer.epochs = options.trainer.cycles = 1;
  set_options(options, settings);
  std::set<std::string> given;
  for (const auto& [name, value] : settings.items()) given.insert(name);
  complete_recipe(options, given);
  return options;
}

void train(const StageRun& stage, FineTuneOptions options) {
  if (stage.data.empty()) fail("the stage needs data to train on");
  options.model = stage.model;
  options.data = stage.data;
  options.limit = stage.limit;
  options.validation = stage.validation;
  options.trainer.seed = stage.seed;
  options.out = stage.out;
  options.is_tested = false;
  options.resumes = std::filesystem::exists(stage.out);
  if (options.resumes) take_up_run(options, {});
  FineTuneCallbacks callbacks;
  static_cast<Callbacks&>(callbacks) = stage.callbacks;
  const FineTuned result = fine_tune(options, stage.execution, callbacks);
  if (result.training.ending == train::Ending::Interrupted) throw Interrupted();
}

void check(const json& settings) {
  read_options(settings);
}

const Register fine_tuning{Stage{
    .name = "fine-tune",
    .summary = "train, with the options of lathe train",
    .check = check,
    .run = [](const StageRun& stage) { train(stage, read_options(stage.settings)); },
}};

const Register quantization_aware{Stage{
    .name = "qat",
    .summary = "train a quantized model",
    .check = check,
    .run =
        [](const StageRun& stage) {
          if (!compress::is_quantized(io::load_model(stage.model).graph))
            fail("{}: is not quantized: qat comes after a stage that quantizes", stage.model);
          train(stage, read_options(stage.settings));
        },
}};

const Register distillation{Stage{
    .name = "distil",
    .summary = "train with the original model as teacher",
    .check = check,
    .run =
        [](const StageRun& stage) {
          FineTuneOptions options = read_options(stage.settings);
          if (options.teacher.empty()) options.teacher = stage.original;
          train(stage, options);
        },
}};

}  // namespace
}  // namespace lathe::experiment::fine_tune_stage
