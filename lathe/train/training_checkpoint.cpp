#include "lathe/train/training_checkpoint.h"

#include <algorithm>
#include <charconv>

#include "lathe/core/error.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/checkpoint_manifest.h"
#include "lathe/io/directory_access.h"
#include "lathe/io/json_file.h"
#include "lathe/io/new_directory.h"
#include "lathe/io/safetensors.h"

namespace lathe::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kPrefix = "step-";

json to_json(const TrainingProgress& progress) {
  return {{"step", progress.step},
          {"epoch", progress.epoch},
          {"batch", progress.batch},
          {"tokens", progress.tokens},
          {"epoch_loss_sum", progress.epoch_loss_sum},
          {"epoch_loss_count", progress.epoch_loss_count},
          {"best_score", progress.best_score ? json(*progress.best_score) : json(nullptr)},
          {"best_step", progress.best_step},
          {"num_worse", progress.num_worse}};
}

std::int64_t count_at(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned() ||
      found->get<std::uint64_t>() > std::uint64_t{INT64_MAX})
    fail("\"training\": \"{}\" is missing or no number", key);
  return found->get<std::int64_t>();
}

double number_at(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number())
    fail("\"training\": \"{}\" is missing or no number", key);
  return found->get<double>();
}

TrainingProgress progress_from(const json& object) {
  TrainingProgress progress{.step = count_at(object, "step"),
                            .epoch = count_at(object, "epoch"),
                            .batch = count_at(object, "batch"),
                            .tokens = count_at(object, "tokens"),
                            .epoch_loss_sum = number_at(object, "epoch_loss_sum"),
                            .epoch_loss_count = number_at(object, "epoch_loss_count"),
                            .best_score = {},
                            .best_step = count_at(object, "best_step"),
                            .num_worse = count_at(object, "num_worse")};
  if (object.contains("best_score") && !object["best_score"].is_null())
    progress.best_score = number_at(object, "best_score");
  return progress;
}

// The step in "step-17"; nullopt for anything else, such as what is being written or removed.
std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = std::string_view(name).substr(std::string_view(kPrefix).size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc{} || end != digits.data() + digits.size() || step < 0) return std::nullopt;
  return step;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error) fail("{}: cannot be read: {}", directory.string(), error.message());
  return names;
}

// Steps that have a checkpoint, newest first.
std::vector<std::int64_t> steps_in(const fs::path& checkpoints) {
  std::vector<std::int64_t> steps;
  for (const std::string& name : names_in(checkpoints))
    if (const std::optional<std::int64_t> step = step_of(name)) steps.push_back(*step);
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

fs::path path_of(const fs::path& checkpoints, std::int64_t step) {
  return checkpoints / fmt::format("{}{}", kPrefix, step);
}

// The manifest of the model's files, with the optimizer's file and the training record added.
void extend_manifest(const fs::path& directory, const TrainingProgress& progress,
                     const json& configuration) {
  io::Manifest manifest = io::read_manifest(directory);
  manifest.files.merge(io::describe_files(directory, {kOptimizerFile}));
  io::write_manifest(directory, manifest);
  json text = io::read_json(directory / io::kManifestName);
  text["training"] = to_json(progress);
  text["training"]["configuration"] = configuration;
  io::write_atomically(directory / io::kManifestName, text.dump(2) + "\n");
}

}  // namespace

fs::path write_training_checkpoint(const fs::path& checkpoints, io::Model model, const State& state,
                                   const TrainingProgress& progress, const json& configuration) {
  State optimizer;
  for (const auto& [name, tensor] : state) {
    const auto found = model.state.find(name);
    if (found == model.state.end())
      optimizer[name] = tensor;
    else
      found->second = tensor;
  }
  const fs::path target = path_of(checkpoints, progress.step);
  model.fresh.clear();  // what started fresh has been trained since
  // One of this step may be there from before: damaged, and the run went back behind it.
  io::NewDirectory directory(target, io::NewDirectory::Existing::Replace);
  io::fill_checkpoint(directory.path(), model);
  io::write_safetensors(directory.path() / kOptimizerFile, optimizer);
  extend_manifest(directory.path(), progress, configuration);
  directory.commit();
  io::write_atomically(checkpoints / "latest", target.filename().string() + "\n");
  return target;
}

void remove_old_checkpoints(const fs::path& checkpoints, int keep, std::int64_t keep_step) {
  const std::vector<std::int64_t> steps = steps_in(checkpoints);
  for (std::size_t i = static_cast<std::size_t>(std::max(2, keep)); i < steps.size(); ++i)
    if (steps[i] != keep_step) io::remove_directory(path_of(checkpoints, steps[i]));
  for (const std::string& name : names_in(checkpoints)) {
    std::error_code ignored;
    if (name.find(".tmp-") != std::string::npos || name.find(".trash-") != std::string::npos)
      fs::remove_all(checkpoints / name, ignored);
  }
}

TrainingCheckpoint read_training_checkpoint(const fs::path& path) {
  TrainingCheckpoint result;
  result.path = path;
  result.model = io::load_model(path.string());  // checks every file against the manifest
  const fs::path manifest_path = path / io::kManifestName;
  const json manifest = io::read_json(manifest_path);
  with_place(manifest_path.string(), [&] {
    const auto training = manifest.find("training");
    if (training == manifest.end() || !training->is_object())
      fail("\"training\" is missing: this is a model, not a checkpoint of its training");
    if (!manifest["files"].contains(kOptimizerFile)) fail("\"files\" lacks {}", kOptimizerFile);
    result.progress = progress_from(*training);
    result.configuration = training->value("configuration", json::object());
  });
  result.state = result.model.state;
  const io::SafetensorsFile optimizer(io::map_beneath(path, kOptimizerFile));
  for (const io::TensorInfo& info : optimizer.tensors())
    result.state[info.name] = optimizer.tensor(info.name);
  return result;
}

std::optional<TrainingCheckpoint> read_newest_checkpoint(const fs::path& checkpoints,
                                                         std::vector<std::string>& skipped) {
  std::error_code error;
  if (!fs::is_directory(checkpoints, error)) return std::nullopt;
  for (const std::int64_t step : steps_in(checkpoints)) {
    try {
      return read_training_checkpoint(path_of(checkpoints, step));
    } catch (const UserError& damage) {
      skipped.push_back(damage.message());
    }
  }
  if (!skipped.empty())
    fail("{}: none of the checkpoints is whole; the newest: {}", checkpoints.string(),
         skipped.front());
  return std::nullopt;
}

}  // namespace lathe::train
