#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lathe/data/dataset.h"
#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/io/model.h"
#include "lathe/search/search_options.h"
#include "lathe/train/example_source.h"

namespace lathe::search {

/// What all trials of a search share: labels, tokenizer, and texts that were read and tokenized
/// once. Trials may use it side by side.
class TrialData {
 public:
  /// `builder` makes the models where the options name none; reading is told to the callbacks.
  TrialData(const SearchOptions& options, const std::string& builder,
            const engine::ExecutionOptions& execution, const experiment::Callbacks& callbacks);

  /// The model of the options, or the builder's own with the data's labels and tokenizer.
  const io::Model& base() const { return base_; }
  const std::string& builder() const { return builder_; }
  const data::Dataset& examples() const { return examples_; }
  const std::shared_ptr<train::ExampleSource>& training() const { return training_; }
  /// What accuracies are of, and the part of it that trials are judged by on the way.
  train::ExampleSource& measured() const { return *measured_; }
  train::ExampleSource& early() const { return *early_; }
  /// Examples of training that show the range of activations.
  train::ExampleSource* calibration() const { return calibration_.get(); }
  /// The model whose weights all others start from; null: they start from nothing.
  const io::Model* parent() const { return parent_ ? &*parent_ : nullptr; }
  void set_parent(io::Model parent) { parent_ = std::move(parent); }
  /// Whether the examples of training come with what teachers answer.
  bool has_teachers() const { return has_teachers_; }
  /// "5000 rows held out of train", "25000 rows of the split test".
  const std::string& measured_on() const { return measured_on_; }
  /// An accuracy that guessing has by luck in one of a thousand searches: three deviations above
  /// the share of the commonest label.
  double chance_level() const { return chance_level_; }

 private:
  data::Dataset read_training(const SearchOptions& options, const std::string& builder,
                              const experiment::Callbacks& callbacks);

  std::string builder_;
  io::Model base_;
  std::optional<io::Model> parent_;
  bool has_teachers_ = false;
  data::Dataset examples_, held_out_, some_held_out_, calibrating_;
  std::string measured_on_;
  double chance_level_ = 0;
  std::shared_ptr<train::ExampleSource> training_;
  std::unique_ptr<train::ExampleSource> measured_, early_, calibration_;
};

}  // namespace lathe::search
