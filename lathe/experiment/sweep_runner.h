#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/data/dataset.h"
#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/experiment/figures.h"
#include "lathe/io/directory_lock.h"
#include "lathe/io/model.h"
#include "lathe/train/example_source.h"

namespace lathe::experiment {

/// What every sweep is told: which model is changed, how it is trained after that, and what it is
/// measured on.
struct SweepSettings {
  std::string model = {};
  std::string data = {};
  std::string split = {};          ///< what accuracies are of; empty: rows held out of train
  std::int64_t validation = 5000;  ///< rows held out, a fifth of train at most
  /// Of training after the change; 0: none. Several: one run, measured after each of these. An
  /// epoch is a cycle of the rate, so that a run of so many epochs alone gives the same.
  std::vector<std::int64_t> epochs = {1};
  double learning_rate = 2e-4;
  std::int64_t batch_size = 32;
  std::int64_t limit = 0;   ///< examples to train on; 0: all
  std::string images = {};  ///< what is done to images, where the model does not say so itself
  std::uint64_t seed = 0;
  int jobs = 1;  ///< runs side by side; decides no result

  std::filesystem::path out = {};  ///< gets results.json, table.md and sweep.svg
  bool resumes = false, replaces = false;
};

/// What results.json calls the figures of the model as it came, of a changed one, and of one that
/// was trained after the change.
struct SweepWords {
  std::string plain, changed, trained;
};

/// A figure after so many epochs of training.
using FigureByEpochs = std::map<std::int64_t, double>;

/// The figure after so many epochs, where it was measured.
std::optional<double> after_epochs(const FigureByEpochs& figures, std::int64_t epochs);

/// How a changed model did.
struct SweepFigures {
  double changed = 0;
  FigureByEpochs trained = {};
  std::int64_t bytes = 0;                        ///< of its files
  std::optional<double> tokens_per_second = {};  ///< of this machine, while it was measured
};

/// A way to change a model, and what stands beside its figures in results.json.
struct SweepChange {
  std::string point;
  nlohmann::json facts;
  std::function<io::Model(const engine::ExecutionOptions&, const Callbacks&)> change;
};

/// How the model did as it came, after the same training without any change, and changed.
struct SweepOutcome {
  double plain = 0;
  std::int64_t plain_bytes = 0;
  std::optional<double> plain_speed = {};  ///< tokens per second
  FigureByEpochs controls = {};
  std::vector<SweepFigures> changed;
};

/// Changes a model in one way after another, measures it, trains it on, measures it again. What is
/// done is kept in the directory: one that was interrupted goes on where it was, if it is asked for
/// with the same configuration.
class SweepRunner {
 public:
  /// Takes up the directory and reads the data. `other` holds whatever decides the results besides
  /// the settings, by the names that users know.
  SweepRunner(const SweepSettings& settings, io::Model model, SweepWords words,
              const nlohmann::json& other, const engine::ExecutionOptions& execution,
              const Callbacks& callbacks);

  const io::Model& model() const { return model_; }
  /// What models are compared by: accuracy, F1 or squared error, as the model's labels are.
  Figure figure() const { return first_figure(model_.labels); }
  /// What models are trained on.
  const data::Dataset& examples() const { return examples_; }
  /// "5000 rows held out of train", "25000 rows of the split test".
  const std::string& measured_on() const { return measured_on_; }
  std::int64_t num_measured() const { return measured_->size(); }

  /// Measures the model as it came, with `has_control` after training alone, and as each change
  /// makes it, before and after training; as many at once as the settings say.
  SweepOutcome run(const std::vector<SweepChange>& changes, bool has_control);

 private:
  // What one run works with.
  struct Run {
    const engine::ExecutionOptions& execution;
    const Callbacks& callbacks;
  };
  // Where a figure stands in the results, name by name.
  using Place = std::vector<std::string>;
  void take_up();
  void read_data();
  bool has(const Place& place) const;
  void keep(const Place& place, const nlohmann::json& value);
  void save() const;
  Place place_of_epochs(Place place, std::int64_t epochs) const;
  FigureByEpochs by_epochs(const nlohmann::json& kept) const;
  UserError leave_after(const UserError& error);
  void measure(const SweepChange& change, const Run& run);
  void train_and_measure(const io::Model& model, const std::string& point, const Place& place,
                         const Run& run);
  double value(const io::Model& model, const std::string& label, const Run& run);
  io::Model train(io::Model model, const std::string& point, std::int64_t epochs,
                  const Run& run) const;
  std::optional<double> speed_of(const std::string& label) const;

  const SweepSettings settings_;
  io::Model model_;
  const SweepWords words_;
  const engine::ExecutionOptions& execution_;
  const Callbacks& callbacks_;
  nlohmann::json configuration_;
  mutable std::mutex mutex_;  // of the results
  nlohmann::json results_;
  nlohmann::json speeds_ = nlohmann::json::object();  // apart: they differ from run to run
  std::optional<io::DirectoryLock> lock_;
  std::string measured_on_;
  data::Dataset examples_, held_out_;
  std::unique_ptr<train::ExampleSource> trained_, measured_;
};

/// Reads the epochs of a sweep: `2`, `0,1,4` or `1..8`.
std::vector<std::int64_t> parse_epochs(const std::string& text);

/// Fails unless a sweep has what it needs.
void check_sweep(const SweepSettings& settings);

}  // namespace lathe::experiment
