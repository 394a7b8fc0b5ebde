#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lathe::search {

/// A search: over what, on what data, how trials are proposed and judged. Everything down to `seed`
/// decides the results, and is what the directory remembers.
struct SearchOptions {
  std::string space = "lab2";   ///< a file, or one that is shipped
  std::string space_text = {};  ///< what it holds, where the file itself is elsewhere
  /// Directory of the classifier whose formats are searched; empty: models are built by the space.
  std::string model = {};
  std::string data = {};       ///< directory, or `reviews`
  std::string tokenizer = {};  ///< directory with the tokenizer of the models
  /// Directory of a model that those of the space take their weights from, cut or grown to size.
  std::string from = {};
  /// Epochs in which such a model, as large as the largest of the space, learns words first; 0:
  /// none.
  int supernet = 0;
  /// What is done to images, where the model does not say so itself, and to those that train.
  std::string images = {}, augment = {};
  std::string teacher = {};  ///< classifiers to learn from as well, separated by commas
  bool compresses = false;   ///< trials train a model, compress it and train it on
  /// Instead of what the space's recipe says: epochs of training, and behind a compression.
  std::optional<int> epochs = {}, epochs_after = {};
  std::int64_t length = 0;      ///< most tokens of a text; 0: the model's most
  std::string truncation = {};  ///< what is kept of longer ones; empty: as the model has it, head
  std::int64_t limit = 0;       ///< examples to train on; 0: all
  /// What accuracies are of; empty: rows held out of train, so many, a fifth at most.
  std::string objective_split = {};
  std::int64_t validation = 5000;
  /// How points are proposed: a study for each, `tpe:gamma=0.3` and the like.
  std::vector<std::string> samplers = {"auto"};
  int trials = 100;  ///< of each study
  /// Of so many trials one goes on at a rung; 0: all train to their end.
  int halving = 3;
  int rungs = 3;  ///< how often a trial is looked at, the end included
  /// Rows that trials are judged by on the way; at the end all count.
  std::int64_t rung_rows = 2000;
  /// What an average bit of weights and data costs: trials are compared by the accuracy less that.
  double bit_cost = 0;
  /// The most average stored bits of weights and of data.
  std::optional<double> max_weight_bits = {}, max_data_bits = {};
  std::map<std::string, double> limits = {};  ///< the most of other costs (candidate_costs.h)
  std::string front = {};  ///< a cost to make small as well: accuracies that none beats in both
  /// Whether each trial that is compressed on the way is also trained without, for as many epochs
  /// in all, and measured before and after it is compressed then.
  bool compares = false;
  /// Whether the damage of each layer's formats is measured first, for trials to start from.
  bool is_damage_measured = true;
  std::int64_t calibration = 256;  ///< examples that show ranges and damage
  int finalists = 5;               ///< the best trials, to be trained again before one is chosen
  int seeds = 2;                   ///< how often each
  std::uint64_t seed = 0;

  /// A last study of a grid of so many points, made of the values of trials above `above`; 0: none.
  int narrow = 0;
  double above = 0;
  /// A study of every format of the space for all layers alike, to compare with; those of a front
  /// begin with its trials.
  bool tries_uniform = false;
  int family_trials = 0;  ///< of a study for each family of formats alone; 0: none
  int longer = 0;         ///< epochs to train the chosen one once more, its accuracy after each
  int whole = 0;          ///< how often the chosen one is trained on all of train and tested
  std::optional<int> whole_epochs = {};  ///< of that training, behind a compression; as the trials'
  /// What that training begins with and learns from instead of `model` and `teacher`: those that
  /// chose have not seen the rows they chose by, these may have.
  std::string whole_model = {}, whole_teacher = {};

  std::optional<double> target = {};  ///< an accuracy that is good enough
  std::optional<int> patience = {};   ///< trials without a better one until a study stops
  /// Starts no trial after so long; the same search goes on later.
  std::optional<std::chrono::milliseconds> time = {};
  std::string storage = {};  ///< of the studies; empty: a file in `out`
  std::string study = {};    ///< what their names begin with in a storage that others use too
  int jobs = 1;              ///< trials side by side
  bool is_tested = true;     ///< the chosen model, on the split `test`, where there is one
  std::filesystem::path out = {};
  bool replaces = false;   ///< may replace the search that is in `out`
  bool is_worker = false;  ///< works on trials of a search that somebody else began and will end
};

/// What the directory remembers, by the names users know.
nlohmann::json to_json(const SearchOptions& options);
/// Takes what was remembered; fails on what is not of its kind.
void take_recorded(SearchOptions& options, const nlohmann::json& recorded);

/// Fails on what no search can have.
void check_options(const SearchOptions& options);

}  // namespace lathe::search
