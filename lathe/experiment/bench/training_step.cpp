#include "lathe/experiment/bench/training_step.h"

#include <algorithm>
#include <set>

#include "lathe/core/error.h"
#include "lathe/io/model.h"
#include "lathe/train/make_source.h"
#include "lathe/train/training_graph.h"

namespace lathe::experiment::bench {
namespace {

// Full rows of made-up ids.
Feed step_feed(const StepOptions& options, std::int64_t vocabulary) {
  std::vector<std::int32_t> ids, offsets{0}, labels, examples;
  for (std::int64_t i = 0; i < options.rows * options.length; ++i)
    ids.push_back(static_cast<std::int32_t>(i * 7919 % vocabulary));
  for (std::int64_t row = 0; row < options.rows; ++row) {
    offsets.push_back(static_cast<std::int32_t>((row + 1) * options.length));
    labels.push_back(static_cast<std::int32_t>(row % 2));
    examples.push_back(static_cast<std::int32_t>(row));
  }
  const auto tensor = [](const std::vector<std::int32_t>& values) {
    return Tensor::from<std::int32_t>({static_cast<std::int64_t>(values.size())},
                                      std::span<const std::int32_t>(values));
  };
  return {{"input_ids", tensor(ids)},    {"offsets", tensor(offsets)},
          {"labels", tensor(labels)},    {"examples", tensor(examples)},
          {"random", tensor({1, 0, 1})}, {"learning_rate", Tensor::from<float>({}, {1e-5f})}};
}

}  // namespace

Result time_step(const StepOptions& options, const engine::ExecutionOptions& execution,
                 const Callbacks& callbacks) {
  if (options.rows < 1 || options.length < 1)
    fail("rows {} and length {}: each must be positive", options.rows, options.length);
  const io::Model model = io::load_model(options.model, {.task = "classify", .seed = options.seed});
  if (model.family->reads != models::Reads::Tokens)
    fail("model {}: expected one that reads tokens", options.model);
  State state = model.state;
  const train::TrainingGraph training = train::make_training_graph(model, {}, state);
  const AttributeReader config(model.config, model.family->config);
  const std::int64_t most = train::max_length(model);
  if (options.length > most)
    fail("length {}: {} reads {} at most", options.length, options.model, most);
  Feed feed = step_feed(options, config.integer(model.family->token_keys.vocabulary));
  for (auto input = feed.begin(); input != feed.end();)
    input = training.graph.find(input->first) ? std::next(input) : feed.erase(input);
  const auto executor = engine::make_executor(training.graph, std::move(state), execution);
  Result result{
      .bench = "step",
      .title = fmt::format("training step, {} {}x{}", options.model, options.rows, options.length),
      .device = device_name(execution)};
  callbacks.tell({"timing", "forms", 0, 2});
  double flops = 0;
  executor->run(feed);
  const engine::PlanReport report = executor->report();
  std::set<int> launches;
  for (const engine::PlannedStep& step : report.steps) {
    // Attention's depend on lengths that a packed batch has no symbol for: left out.
    const std::vector<std::string> symbols = step.flops.symbols();
    if (std::all_of(symbols.begin(), symbols.end(),
                    [&](const std::string& symbol) { return report.last_sizes.contains(symbol); }))
      flops += static_cast<double>(step.flops.evaluate(report.last_sizes));
    launches.insert(step.stage);
  }
  const Timing once = time_runs(*executor, feed, options.repeats, callbacks);
  const bool can_repeat = !executor->repeat(1, true).empty();
  result.rows.push_back({.name = can_repeat ? "one captured graph" : "one plan",
                         .time = once,
                         .flops = flops,
                         .note = fmt::format("{} launches", launches.size())});
  if (can_repeat) {
    result.rows.push_back({.name = "kernel by kernel",
                           .time = time_runs(*executor, feed, options.repeats, callbacks, false),
                           .flops = flops,
                           .note = fmt::format("{} launches", launches.size())});
    result.notes.push_back(fmt::format("the captured graph is {:.2f}x as fast",
                                       result.rows[1].time.median / result.rows[0].time.median));
  } else {
    result.rows.back().note.clear();
    result.notes.push_back("captured graphs against none: needs --device cuda and a GPU");
  }
  result.limits.flops_per_second = product_peak(execution, callbacks);
  return result;
}

}  // namespace lathe::experiment::bench
