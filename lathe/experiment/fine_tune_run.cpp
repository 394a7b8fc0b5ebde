#include "lathe/experiment/fine_tune_run.h"

#include <algorithm>

#include "lathe/experiment/model_list.h"
#include "lathe/experiment/run_record.h"
#include "lathe/io/output_directory.h"

namespace lathe::experiment {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

void complete_recipe(FineTuneOptions& options, const std::set<std::string>& given) {
  // The two cycles of the default recipe are for its two epochs.
  if (given.contains("epochs") && !given.contains("cycles")) options.trainer.cycles = 1;
  if (!options.lora.empty() && !given.contains("lr")) options.trainer.learning_rate = kLoraRate;
}

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

std::vector<fs::path> needed_by(const FineTuneOptions& options) {
  std::vector<fs::path> needed{options.model};
  if (!options.teacher.empty())
    for (const std::string& name : model_list(options.teacher)) needed.emplace_back(name);
  return needed;
}

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

}  // namespace lathe::experiment
