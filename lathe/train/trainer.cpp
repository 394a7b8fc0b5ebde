#include "lathe/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>

#include "lathe/core/error.h"
#include "lathe/train/non_finite.h"
#include "lathe/train/training_feed.h"

namespace lathe::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kCalmerTraining = "try a smaller learning rate, or clip gradients";

std::int64_t steps_of(const data::BatchPlan& plan, std::int64_t accumulation) {
  return (plan.num_batches() + accumulation - 1) / accumulation;
}

void check_options(const TrainerOptions& options) {
  if (options.epochs < 1) fail("{} epochs: expected at least 1", options.epochs);
  if (options.accumulation < 1)
    fail("{} batches a step: expected at least 1", options.accumulation);
  if (!(options.learning_rate >= 0) || !std::isfinite(options.learning_rate))
    fail("a learning rate of {}: expected 0 or more", options.learning_rate);
}

class Loop {
 public:
  Loop(engine::Executor& executor, ExampleSource& source, const TrainerOptions& options,
       const TrainerHooks& hooks, const TrainingProgress& progress)
      : executor_(executor),
        source_(source),
        options_(options),
        hooks_(hooks),
        progress_(progress),
        // Without a token budget lengths do not matter, and nobody has to wait for them.
        lengths_(options.batch_tokens > 0
                     ? source.lengths()
                     : std::vector<std::int64_t>(static_cast<std::size_t>(source.size()), 1)) {
    if (options.is_balanced)
      for (std::int64_t i = 0; i < source.size(); ++i) labels_.push_back(source.label(i));
    std::vector<std::int64_t> ends = options.ended;
    ends.push_back(options.epochs);
    for (const std::int64_t end : ends) {
      Schedule part{.peak = options.learning_rate, .decay = options.decay};
      part.num_steps = count_steps(end) - num_steps_;
      part.cycles = parts_.empty() ? options.cycles : 1;
      part.warmup_steps = warmup_steps(options.warmup, part.cycle_steps());
      parts_.push_back(part);
      num_steps_ += part.num_steps;
    }
    last_step_ = options.pause_after > 0 ? std::min(num_steps_, count_steps(options.pause_after))
                                         : num_steps_;
  }

  TrainingResult run() {
    while (!is_over()) {
      const data::BatchPlan plan = plan_epoch(options_, lengths_, labels_, progress_.epoch);
      while (progress_.batch < plan.num_batches() && !is_over()) {
        step(plan);
        if (after_step(progress_.batch == plan.num_batches())) return result(Ending::Interrupted);
      }
      if (is_over()) break;
      ++progress_.epoch;
      progress_.batch = 0;
      progress_.epoch_loss_sum = progress_.epoch_loss_count = 0;
    }
    if (has_lost_patience()) return result(Ending::StoppedEarly);
    return result(progress_.step < num_steps_ ? Ending::Paused : Ending::Finished);
  }

 private:
  // The steps of the first so many epochs.
  std::int64_t count_steps(std::int64_t epochs) const {
    std::int64_t count = 0;
    if (options_.batch_tokens > 0) {
      for (std::int64_t epoch = 0; epoch < epochs; ++epoch)
        count += steps_of(plan_epoch(options_, lengths_, labels_, epoch), options_.accumulation);
    } else {
      count = epochs * steps_of(plan_epoch(options_, lengths_, labels_, 0), options_.accumulation);
    }
    return options_.max_steps > 0 ? std::min(options_.max_steps, count) : count;
  }

  // Each part of an extended run has a schedule of its own.
  double rate(std::int64_t step) const {
    for (const Schedule& part : parts_) {
      if (step < part.num_steps) return part.rate(step);
      step -= part.num_steps;
    }
    return 0;
  }

  bool has_lost_patience() const {
    return options_.patience > 0 && progress_.num_worse >= options_.patience;
  }
  bool is_over() const { return progress_.step >= last_step_ || has_lost_patience(); }

  // A batch whose run was begun.
  struct BegunBatch {
    Feed feed;
    std::int64_t tokens = 0;
    bool ends_step = false;
    StepReport report;  // of its step, as far as it is known before it runs
    Clock::time_point start;
  };

  // Begins a step. Where the device works beside us, the step before is finished meanwhile: its
  // loss is known one step later, and the GPU never waits for the next inputs.
  void step(const data::BatchPlan& plan) {
    StepReport report{
        .step = progress_.step + 1, .num_steps = num_steps_, .learning_rate = rate(progress_.step)};
    if (hooks_.before_step) hooks_.before_step(progress_.step, num_steps_);
    bool ends_step = false;
    for (std::int64_t micro = 0; !ends_step; ++micro) {
      const Clock::time_point start = Clock::now();
      ExampleBatch batch = source_.training_batch(plan.examples(progress_.batch), progress_.epoch);
      ++progress_.batch;
      ends_step = micro + 1 == options_.accumulation || progress_.batch == plan.num_batches();
      report.epoch = static_cast<double>(progress_.epoch) +
                     static_cast<double>(progress_.batch) / static_cast<double>(plan.num_batches());
      set_step_inputs(batch.feed, report.learning_rate, options_.seed, report.step, ends_step,
                      options_.changed_at);
      executor_.start(batch.feed);
      begun_.push_back({std::move(batch.feed), batch.tokens, ends_step, report, start});
      finish_all_but(executor_.most_begun() - 1);
    }
    ++progress_.step;
  }

  void finish_all_but(int count) {
    while (begun_.size() > static_cast<std::size_t>(count)) finish_one();
  }

  void finish_one() {
    const Feed outputs = executor_.finish();
    BegunBatch batch = std::move(begun_.front());
    begun_.pop_front();
    StepReport& report = batch.report;
    const double sum = outputs.at("loss_sum").at(0);
    report.gradient_norm = outputs.at("gradient_norm").at(0);
    if (!std::isfinite(sum) || !std::isfinite(report.gradient_norm))
      fail_not_finite(report, sum, batch.feed);
    step_.loss_sum += sum;
    step_.loss_count += outputs.at("loss_count").at(0);
    step_.tokens += batch.tokens;
    // Runs that overlap share their time: each has what passed since the one before ended.
    const Clock::time_point end = Clock::now();
    step_.seconds += std::chrono::duration<double>(end - std::max(batch.start, last_end_)).count();
    last_end_ = end;
    if (!batch.ends_step) return;
    progress_.tokens += step_.tokens;
    progress_.epoch_loss_sum += step_.loss_sum;
    progress_.epoch_loss_count += step_.loss_count;
    report.loss = step_.loss_sum / std::max(1.0, step_.loss_count);
    report.tokens = step_.tokens;
    report.seconds = step_.seconds;
    seconds_ += report.seconds;
    num_tokens_ += report.tokens;
    step_ = {};
    if (hooks_.report) hooks_.report(report);
  }

  [[noreturn]] void fail_not_finite(const StepReport& report, double loss_sum, const Feed& feed) {
    std::string message = fmt::format("step {}: the {} is not finite", report.step,
                                      std::isfinite(loss_sum) ? "gradient" : "loss");
    if (hooks_.explain) message += "; " + hooks_.explain(executor_.state(), feed);
    throw UserError(message + last_checkpoint_text(), kCalmerTraining);
  }

  // A finite gradient times an absurd rate can still overflow: such weights are not worth keeping,
  // and replacing good ones by them would be worse.
  void refuse_damaged(const State& state) const {
    for (const auto& [name, tensor] : state) {
      if (is_finite(tensor)) continue;
      throw UserError(fmt::format("step {}: the update made \"{}\" infinite{}", progress_.step,
                                  name, last_checkpoint_text()),
                      kCalmerTraining);
    }
  }

  std::string last_checkpoint_text() const {
    const std::string last = hooks_.last_checkpoint ? hooks_.last_checkpoint() : "";
    return last.empty() ? "; no checkpoint was written before"
                        : fmt::format("; the last good checkpoint is {}", last);
  }

  // Validates and saves when it is time to; true when the run was asked to stop.
  bool after_step(bool ends_epoch) {
    const bool ends_run = progress_.step == last_step_;
    const auto is_due = [&](std::int64_t every) {
      return ends_run || (every > 0 ? progress_.step % every == 0 : ends_epoch);
    };
    const bool is_stopping = hooks_.should_stop && hooks_.should_stop();
    bool saves = hooks_.save && (is_stopping || is_due(options_.checkpoint_every));
    const bool validates = hooks_.validate && is_due(options_.validate_every);
    if (saves || validates || is_stopping || ends_run || ends_epoch) finish_all_but(0);
    std::optional<State> state;
    if (validates) {
      state = executor_.state();
      const double score = hooks_.validate(*state, progress_);
      if (hooks_.is_eligible && !hooks_.is_eligible(progress_.step, num_steps_)) {
        // Too early to be the best, or to lose patience.
      } else if (!progress_.best_score || score > *progress_.best_score) {
        progress_.best_score = score;
        progress_.best_step = progress_.step;
        progress_.num_worse = 0;
        best_ = *state;
        saves = static_cast<bool>(hooks_.save);  // the best weights must outlive this process
      } else {
        ++progress_.num_worse;
        saves = saves || (hooks_.save && has_lost_patience());
      }
    }
    if (saves) {
      if (!state) state = executor_.state();
      refuse_damaged(*state);
      hooks_.save(*state, progress_);
    }
    return is_stopping && !ends_run && !has_lost_patience();
  }

  TrainingResult result(Ending ending) {
    return {.ending = ending,
            .progress = progress_,
            .num_steps = num_steps_,
            .state = executor_.state(),
            .best = std::move(best_),
            .loss = progress_.epoch_loss_sum / std::max(1.0, progress_.epoch_loss_count),
            .seconds = seconds_,
            .tokens = num_tokens_};
  }

  engine::Executor& executor_;
  ExampleSource& source_;
  const TrainerOptions& options_;
  const TrainerHooks& hooks_;
  TrainingProgress progress_;
  std::vector<std::int64_t> lengths_;
  std::vector<std::int32_t> labels_;  // where they say what is drawn
  std::vector<Schedule> parts_;
  std::int64_t num_steps_ = 0, last_step_ = 0;  // of the whole run, and before a pause
  std::optional<State> best_;
  std::deque<BegunBatch> begun_;
  struct {
    double loss_sum = 0, loss_count = 0, seconds = 0;
    std::int64_t tokens = 0;
  } step_;  // of the batches of the step that is being finished
  Clock::time_point last_end_;
  double seconds_ = 0;
  std::int64_t num_tokens_ = 0;
};

}  // namespace

data::BatchPlan plan_epoch(const TrainerOptions& options, std::span<const std::int64_t> lengths,
                           std::span<const std::int32_t> labels, std::int64_t epoch) {
  data::BatchOptions batching;
  batching.max_examples = options.batch_tokens > 0 ? 0 : options.batch_examples;
  batching.max_tokens = options.batch_tokens;
  batching.order = data::BatchOrder::Shuffled;
  batching.seed = options.seed;
  batching.epoch = epoch;
  if (options.is_balanced) batching.balanced = labels;
  return data::plan_batches(lengths, batching);
}

std::vector<std::int64_t> next_examples(const TrainerOptions& options,
                                        std::span<const std::int32_t> labels,
                                        const TrainingProgress& progress) {
  // The order of examples does not depend on where it is cut into batches, nor on lengths.
  const std::vector<std::int64_t> lengths(labels.size(), 1);
  data::BatchPlan plan = plan_epoch(options, lengths, labels, progress.epoch);
  const std::int64_t batch =
      options.batch_tokens > 0 ? 0 : std::min(progress.batch, plan.num_batches());
  const auto start = plan.starts[static_cast<std::size_t>(batch)];
  std::rotate(plan.order.begin(), plan.order.begin() + start, plan.order.end());
  if (!options.is_balanced) return plan.order;
  // Some are drawn several times, others in a later epoch.
  std::vector<std::int64_t> order;
  std::vector<bool> is_known(labels.size());
  for (std::int64_t example = 0; example < static_cast<std::int64_t>(labels.size()); ++example)
    plan.order.push_back(example);
  for (const std::int64_t example : plan.order) {
    if (is_known[static_cast<std::size_t>(example)]) continue;
    is_known[static_cast<std::size_t>(example)] = true;
    order.push_back(example);
  }
  return order;
}

TrainingResult run_training(engine::Executor& executor, ExampleSource& source,
                            const TrainerOptions& options, const TrainerHooks& hooks,
                            TrainingProgress progress) {
  check_options(options);
  check(source.size() > 0, "at least one example to train on");
  return Loop(executor, source, options, hooks, progress).run();
}

}  // namespace lathe::train
