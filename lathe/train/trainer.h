#pragma once

#include <functional>
#include <string>

#include "lathe/data/batching.h"
#include "lathe/engine/executor.h"
#include "lathe/train/example_source.h"
#include "lathe/train/schedule.h"
#include "lathe/train/training_progress.h"

namespace lathe::train {

/// How long and in which batches a run trains, and when it stops to look at itself.
///
/// The defaults are the recipe for whoever asks for none: two passes, each with a rate that rises
/// and falls. On held-out reviews it did as well as three passes with one fall, in two thirds of
/// the time.
struct TrainerOptions {
  std::int64_t epochs = 2;
  std::int64_t max_steps = 0;  ///< 0: as many as the epochs have
  std::int64_t batch_examples = 32;
  std::int64_t batch_tokens = 0;  ///< instead of a number of examples; needs every text's length
  std::int64_t accumulation = 1;  ///< batches a step
  double learning_rate = 2e-4;
  Decay decay = Decay::Linear;
  double warmup = 0.06;     ///< a share of a cycle's steps below 1, or a number of steps
  std::int64_t cycles = 2;  ///< times the rate rises and falls
  /// Epochs after which the run had ended before it was extended; each extension is one cycle of
  /// the rate, and `cycles` are those of the first part.
  std::vector<std::int64_t> ended = {};
  /// Epochs after which the run pauses for its model to be changed; 0: it does not.
  std::int64_t pause_after = 0;
  /// Steps that were done when the model got its late parameters (TrainingGraphOptions::late).
  std::int64_t changed_at = 0;
  bool is_balanced = false;  ///< draws as many examples of each class, as many in all as there are
  std::uint64_t seed = 0;
  std::int64_t validate_every = 0;    ///< steps; 0: after each epoch
  std::int64_t patience = 0;          ///< validations without a better one until it stops; 0: never
  std::int64_t checkpoint_every = 0;  ///< steps; 0: after each epoch
};

/// What one optimizer step did.
struct StepReport {
  std::int64_t step = 0;  ///< from 1
  std::int64_t num_steps = 0;
  double epoch = 0;  ///< epochs done, as a fraction
  double loss = 0;   ///< mean over the step
  double learning_rate = 0;
  double gradient_norm = 0;  ///< before clipping
  std::int64_t tokens = 0;   ///< of this step
  double seconds = 0;        ///< of this step
};

/// What the loop tells and asks the world; each may be empty.
struct TrainerHooks {
  /// Called before every step with the number of steps that are done and of all; may give states of
  /// the executor other values.
  std::function<void(std::int64_t done, std::int64_t num_steps)> before_step = {};
  /// Scores the states, higher is better. Empty: no validation.
  std::function<double(const State&, const TrainingProgress&)> validate = {};
  /// Whether the weights after so many steps may be chosen as the best. Empty: all may.
  std::function<bool(std::int64_t done, std::int64_t num_steps)> is_eligible = {};
  /// Makes a checkpoint durable. Empty: none are written.
  std::function<void(const State&, const TrainingProgress&)> save = {};
  /// Hears of every step.
  std::function<void(const StepReport&)> report = {};
  /// Asked after every step; true ends the run with a checkpoint.
  std::function<bool()> should_stop = {};
  /// Says, for inputs that gave a loss or gradient that is not finite, where that began.
  std::function<std::string(const State&, const Feed&)> explain = {};
  /// The last checkpoint's name, for messages; empty text: none.
  std::function<std::string()> last_checkpoint = {};
};

enum class Ending : std::uint8_t { Finished, StoppedEarly, Interrupted, Paused };

/// How a run ended.
struct TrainingResult {
  Ending ending = Ending::Finished;
  TrainingProgress progress;
  std::int64_t num_steps = 0;
  State state;                ///< after the last step
  std::optional<State> best;  ///< at the best validation of this call; empty if there was none
  double loss = 0;            ///< mean over the last epoch
  double seconds = 0;         ///< of the steps of this call alone
  std::int64_t tokens = 0;    ///< of this call
};

/// The batches of an epoch: a function of the options, the epoch, by tokens the lengths, and of
/// balanced ones the classes.
data::BatchPlan plan_epoch(const TrainerOptions& options, std::span<const std::int64_t> lengths,
                           std::span<const std::int32_t> labels, std::int64_t epoch);

/// The order in which a run that has come to `progress` needs its examples next, each once.
std::vector<std::int64_t> next_examples(const TrainerOptions& options,
                                        std::span<const std::int32_t> labels,
                                        const TrainingProgress& progress);

/// Trains from `progress` to the end. A run that is continued gives the same bits as one that was
/// never stopped.
///
/// Fails on a loss or gradient that is not finite; the states are then as they were before that
/// step. On a device that works beside the caller a step's loss is known while the next one runs.
TrainingResult run_training(engine::Executor& executor, ExampleSource& source,
                            const TrainerOptions& options, const TrainerHooks& hooks,
                            TrainingProgress progress = {});

}  // namespace lathe::train
