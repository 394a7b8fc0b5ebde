#include "lathe/search/finalist_training.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "lathe/experiment/evaluate.h"
#include "lathe/experiment/side_by_side.h"
#include "lathe/search/search_studies.h"
#include "lathe/train/make_source.h"

namespace lathe::search {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::uint64_t FinalistTraining::seed_of(int index) const {
  return options_.seed + 1 + static_cast<std::uint64_t>(index);
}
std::string FinalistTraining::run_name(const Finalist& finalist, int seed) const {
  return fmt::format("{}-{}-seed-{}", study_file_name(finalist.sampler), finalist.trial,
                     seed_of(seed));
}
fs::path FinalistTraining::path_of(const Finalist& finalist, int seed) const {
  return directory_.path() / "finalists" / run_name(finalist, seed);
}

void FinalistTraining::train_side_by_side(std::vector<Run>& runs, const char* activity,
                                          const Train& train) {
  std::vector<experiment::Job> jobs;
  for (Run& run : runs)
    jobs.emplace_back(
        [&](const engine::ExecutionOptions& execution, const experiment::Callbacks& callbacks) {
          try {
            train(run, execution, callbacks);
          } catch (const UserError& error) {
            run.error = error.message();
          }
          callbacks.tell({.activity = activity, .unit = "runs"});
        });
  experiment::do_side_by_side(jobs, options_.jobs, execution_, callbacks_);
}

void FinalistTraining::take_out(std::vector<Finalist>& finalists, const std::vector<Run>& runs) {
  std::vector<std::string> errors(finalists.size());
  for (const Run& run : runs)
    if (errors[run.finalist].empty()) errors[run.finalist] = run.error;
  std::vector<Finalist> kept;
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    if (errors[i].empty())
      kept.push_back(std::move(finalists[i]));
    else
      left_out_.push_back(fmt::format("{} {}, {}: {}", finalists[i].sampler, finalists[i].trial,
                                      candidate_text(finalists[i].candidate), errors[i]));
  }
  finalists = std::move(kept);
}

void FinalistTraining::train_again(std::vector<Finalist>& finalists) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    finalists[i].accuracies.resize(static_cast<std::size_t>(options_.seeds));
    finalists[i].losses.resize(static_cast<std::size_t>(options_.seeds));
    for (int seed = 0; seed < options_.seeds; ++seed) runs.push_back({i, seed});
  }
  train_side_by_side(runs, "training the best again",
                     [&](const Run& run, const auto& execution, const auto& callbacks) {
                       train_again(finalists[run.finalist], run.seed, execution, callbacks);
                     });
  take_out(finalists, runs);
  if (finalists.empty()) fail("none of the best could be trained again: {}", left_out_.front());
  for (Finalist& finalist : finalists)
    finalist.parameters = std::llround(finalist.costs.at("parameters"));
  // What no trial may have is there to compare with, not to be chosen.
  std::ranges::stable_sort(finalists, std::greater(), [](const Finalist& each) {
    return std::pair(each.found.has_value(), each.mean() - each.cost);
  });
}

void FinalistTraining::train_again(Finalist& finalist, int seed,
                                   const engine::ExecutionOptions& execution,
                                   const experiment::Callbacks& callbacks) {
  const fs::path path = path_of(finalist, seed);
  const std::string name = path.filename().string(), loss_name = "loss of " + name;
  double& accuracy = finalist.accuracies[static_cast<std::size_t>(seed)];
  double& loss = finalist.losses[static_cast<std::size_t>(seed)];
  std::error_code ignored;
  if (const auto known = directory_.find(name), known_loss = directory_.find(loss_name);
      known && known_loss && fs::exists(path, ignored)) {
    accuracy = *known;
    loss = *known_loss;
    return;
  }
  const auto trained = train_candidate(data_, finalist.candidate, seed_of(seed), rungs_, path, true,
                                       execution, {.callbacks = callbacks});
  accuracy = trained->accuracy;
  loss = trained->loss;
  directory_.keep({{name, accuracy}, {loss_name, loss}});
}

LearningCurve FinalistTraining::train_longer(const Finalist& chosen) {
  Candidate longer = chosen.candidate;
  longer.recipe[is_compressed_on_the_way(data_, longer) ? kEpochsAfter : "epochs"] =
      options_.longer;
  LearningCurve curve;
  train_candidate(
      data_, longer, options_.seed, {.factor = 1, .count = 1}, directory_.path() / "longer", false,
      execution_,
      {.epoch = [&](std::int64_t, double accuracy) { curve.accuracies.push_back(accuracy); },
       .loss = [&](std::int64_t, double loss) { curve.losses.push_back(loss); },
       .callbacks = callbacks_});
  return curve;
}

void FinalistTraining::train_on_all(std::vector<Finalist>& finalists) {
  const bool all_count = !options_.front.empty() || options_.tries_uniform;
  const std::size_t count = all_count ? finalists.size() : 1;
  SearchOptions options = options_;
  options.objective_split = "test";
  if (!options.whole_model.empty()) options.model = options.whole_model;
  if (!options.whole_teacher.empty()) options.teacher = options.whole_teacher;
  const std::string begun = options_.whole_model.empty() && options_.whole_teacher.empty()
                                ? ""
                                : fmt::format(" from {}, {}", options.model, options.teacher);
  const auto candidate_of = [&](const Finalist& finalist) {
    Candidate candidate = finalist.candidate;
    if (options_.whole_epochs)
      candidate.recipe[is_compressed_on_the_way(data_, candidate) ? kEpochsAfter : "epochs"] =
          *options_.whole_epochs;
    return candidate;
  };
  const auto name_of = [&](const Candidate& candidate, int seed) {
    return fmt::format("test of {} trained on all{}, seed {}", to_json(candidate).dump(), begun,
                       seed_of(seed));
  };
  std::vector<Run> runs;
  for (std::size_t i = 0; i < count; ++i) {
    finalists[i].whole_accuracies.assign(static_cast<std::size_t>(options_.whole), 0);
    for (int seed = 0; seed < options_.whole; ++seed) {
      if (const auto known = directory_.find(name_of(candidate_of(finalists[i]), seed)))
        finalists[i].whole_accuracies[static_cast<std::size_t>(seed)] = *known;
      else
        runs.push_back({i, seed});
    }
  }
  if (runs.empty()) return;
  TrialData data(options, builder_, execution_, callbacks_);
  if (data_.parent() != nullptr) data.set_parent(*data_.parent());
  train_side_by_side(runs, "training on all rows",
                     [&](const Run& run, const auto& execution, const auto& callbacks) {
                       Finalist& finalist = finalists[run.finalist];
                       const Candidate candidate = candidate_of(finalist);
                       const double accuracy =
                           train_candidate(
                               data, candidate, seed_of(run.seed), {.factor = 1, .count = 1},
                               directory_.path() / "whole" / run_name(finalist, run.seed), true,
                               execution, {.callbacks = callbacks})
                               ->accuracy;
                       directory_.keep(name_of(candidate, run.seed), accuracy);
                       finalist.whole_accuracies[static_cast<std::size_t>(run.seed)] = accuracy;
                     });
  for (const Run& run : runs)
    if (run.finalist == 0 && !run.error.empty())
      fail("the chosen one, trained on all rows: {}", run.error);
  take_out(finalists, runs);
}

std::optional<double> FinalistTraining::test(const Finalist& chosen) {
  const auto best = std::ranges::max_element(chosen.accuracies) - chosen.accuracies.begin();
  const io::Model model = io::load_model(path_of(chosen, static_cast<int>(best)).string());
  const fs::path target = directory_.path() / "best";
  std::error_code ignored;
  fs::remove_all(target, ignored);
  io::write_checkpoint(target, model);
  const std::string name = "test of " + path_of(chosen, static_cast<int>(best)).filename().string();
  if (const auto known = directory_.find(name)) return known;
  if (!options_.is_tested ||
      !data::has_split(options_.data, "test", {.reads = train::reads_of(*model.family)}))
    return std::nullopt;
  const double accuracy =
      experiment::evaluate_on(model,
                              {.data = options_.data, .split = "test", .length = options_.length},
                              execution_, callbacks_)
          .classes->accuracy;
  directory_.keep(name, accuracy);
  return accuracy;
}

}  // namespace lathe::search
