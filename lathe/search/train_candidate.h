#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "lathe/search/candidate_space.h"
#include "lathe/search/trial_data.h"
#include "lathe/train/evaluation.h"

namespace lathe::search {

/// When a trial is looked at on its way: `count` times, each `factor` times as far as the one
/// before, the last at its end. A rung is known by its resource: 1, factor, factor^2, ...
struct Rungs {
  int factor = 3;
  int count = 3;

  int resource(int rung) const;
  /// The steps that are done at a rung.
  std::int64_t step(int rung, std::int64_t num_steps) const;
};

/// What training tells on its way, and asks.
struct CandidateCallbacks {
  /// Hears of the accuracy at a rung before the last; false gives the trial up. May be empty.
  std::function<bool(int resource, double accuracy)> goes_on = {};
  /// Hear of the accuracy after each epoch, on all rows, and of every step's loss. May be empty:
  /// measuring takes time.
  std::function<void(std::int64_t epoch, double accuracy)> epoch = {};
  std::function<void(std::int64_t step, double loss)> loss = {};
  experiment::Callbacks callbacks = {};
};

/// A candidate after its training.
struct TrainedCandidate {
  io::Model model;
  double accuracy = 0;
  double loss = 0;     ///< mean cross-entropy of the same rows
  double seconds = 0;  ///< of training and measuring
};

/// The candidate's model before its training: a function of the candidate and the seed. A model
/// that was trained is compressed by the candidate, any other has its architecture.
io::Model build_candidate(const TrialData& data, const Candidate& candidate, std::uint64_t seed,
                          const engine::ExecutionOptions& execution);

/// Whether the candidate's model is trained, compressed and trained on: it starts from nothing.
bool is_compressed_on_the_way(const TrialData& data, const Candidate& candidate);
/// Epochs of such a one behind its compression.
std::int64_t epochs_after(const Candidate& candidate);
/// The same candidate without its compression, trained for as many epochs in all.
Candidate uncompressed(const Candidate& candidate);

/// Builds, trains and measures a candidate; nothing when it was given up on the way. A recipe of 0
/// epochs trains nothing. One that is compressed on the way is trained before by the recipe's
/// epochs, and behind by `epochs-after`.
///
/// One that is interrupted leaves a checkpoint in `directory` and goes on from it the next time,
/// to the same bits. Otherwise nothing is left there, except for the trained model where `keeps`.
std::optional<TrainedCandidate> train_candidate(const TrialData& data, const Candidate& candidate,
                                                std::uint64_t seed, const Rungs& rungs,
                                                const std::filesystem::path& directory, bool keeps,
                                                const engine::ExecutionOptions& execution,
                                                const CandidateCallbacks& callbacks);

/// The model as it is written: one with formats as its codes.
io::Model as_stored(io::Model model);

/// How well a model does on examples.
train::Evaluation measure(const io::Model& model, train::ExampleSource& examples,
                          const engine::ExecutionOptions& execution,
                          const experiment::Callbacks& callbacks);

}  // namespace lathe::search
