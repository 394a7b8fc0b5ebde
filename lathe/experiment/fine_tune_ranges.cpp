#include "lathe/experiment/fine_tune_ranges.h"

#include <cmath>

#include "lathe/core/error.h"

namespace lathe::experiment {
namespace {

void require_count(const char* name, std::int64_t value, std::int64_t least) {
  if (value < least) fail("{} {}: expected a whole number, at least {}", name, value, least);
}

// NaN is within no range.
void require_number(const char* name, double value, bool is_within, const char* words) {
  if (!is_within || !std::isfinite(value)) fail("{} {:g}: expected {}", name, value, words);
}

}  // namespace

void check_ranges(const FineTuneOptions& options) {
  require_count("limit", options.limit, 0);
  require_count("length", options.length, 0);
  require_count("validation", options.validation, 0);
  require_number("mask", options.mask, options.mask > 0 && options.mask <= 1,
                 "more than 0, at most 1");
  require_count("keep", options.keep_checkpoints, 1);

  const train::TrainerOptions& trainer = options.trainer;
  require_count("epochs", trainer.epochs, 1);
  require_count("steps", trainer.max_steps, 0);
  require_count("batch-size", trainer.batch_examples, 1);
  require_count("batch-tokens", trainer.batch_tokens, 0);
  require_count("accumulate", trainer.accumulation, 1);
  require_count("cycles", trainer.cycles, 1);
  require_count("validate-every", trainer.validate_every, 0);
  require_count("patience", trainer.patience, 0);
  require_count("checkpoint-every", trainer.checkpoint_every, 0);
  require_number("lr", trainer.learning_rate, trainer.learning_rate > 0, "more than 0");
  require_number("warmup", trainer.warmup, trainer.warmup >= 0,
                 "a share of the steps below 1, or a number of steps");

  const train::TrainingGraphOptions& graph = options.graph;
  require_number("weight-decay", graph.weight_decay, graph.weight_decay >= 0, "at least 0");
  require_number("momentum", graph.momentum, graph.momentum >= 0 && graph.momentum < 1,
                 "at least 0, below 1");
  require_number("clip", graph.max_norm, graph.max_norm >= 0, "at least 0; 0: no limit");
}

}  // namespace lathe::experiment
