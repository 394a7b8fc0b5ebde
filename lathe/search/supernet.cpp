#include "lathe/search/supernet.h"

#include <algorithm>
#include <random>

#include "lathe/core/error.h"
#include "lathe/core/interrupt.h"
#include "lathe/experiment/read_data.h"
#include "lathe/search/builder_sizes.h"
#include "lathe/search/parent_weights.h"
#include "lathe/train/train_model.h"
#include "lathe/train/training_feed.h"

namespace lathe::search {
namespace {

constexpr double kRate = 5e-4;

struct Sizes {
  std::vector<std::int64_t> layers, hidden, heads, intermediate;
  explicit Sizes(const ArchitectureSpace& space)
      : layers(values_or_default(space, space.layers, "num_hidden_layers")),
        hidden(values_or_default(space, space.hidden, "hidden_size")),
        heads(values_or_default(space, space.heads, "num_attention_heads")),
        intermediate(values_or_default(space, space.intermediate, "intermediate_size")) {}

  // With values that `choose` takes from each list; of heads, from those that divide.
  template <typename Choose>
  std::optional<Attributes> architecture(Choose choose) const {
    const std::int64_t width = choose(hidden);
    std::vector<std::int64_t> possible;
    for (const std::int64_t count : heads)
      if (width % count == 0) possible.push_back(count);
    if (possible.empty()) return std::nullopt;
    return Attributes{{"hidden_size", width},
                      {"num_attention_heads", choose(possible)},
                      {"num_hidden_layers", choose(layers)},
                      {"intermediate_size", choose(intermediate)}};
  }
};

Attributes largest(const Sizes& sizes) {
  const auto found = sizes.architecture(
      [](const std::vector<std::int64_t>& values) { return std::ranges::max(values); });
  if (!found) fail("supernet: no number of heads divides the largest hidden size");
  return *found;
}

Attributes drawn(const Sizes& sizes, std::uint64_t seed, std::int64_t round) {
  std::mt19937_64 random(seed * 1000003 + static_cast<std::uint64_t>(round));
  while (true)
    if (const auto found = sizes.architecture([&](const std::vector<std::int64_t>& values) {
          return values[random() % values.size()];
        }))
      return *found;
}

}  // namespace

io::Model train_supernet(const SearchOptions& options, const ArchitectureSpace& space,
                         const io::Model& base, const std::filesystem::path& directory,
                         const engine::ExecutionOptions& execution,
                         const experiment::Callbacks& callbacks) {
  const auto load = [&] {
    return io::load_model(directory.string(),
                          {.task = base.task,
                           .num_labels = static_cast<std::int64_t>(base.label_names.size()),
                           .seed = options.seed});
  };
  if (io::is_checkpoint(directory)) return load();
  const std::string task = train::task_of("mlm");
  std::string splits = "train";
  if (data::has_split(options.data, "unsup")) splits += ",unsup";
  const data::Dataset texts =
      experiment::read_examples(space.model, options.data, splits, options.limit,
                                callbacks.should_stop, {}, std::nullopt, task);
  const Sizes sizes(space);
  const auto build = [&](const Attributes& architecture) {
    Attributes config = base.config;
    for (const auto& [key, value] : architecture) config[key] = value;
    io::Model model = io::load_model(
        space.model, {.task = task, .config = std::move(config), .seed = options.seed});
    model.tokenizer = base.tokenizer;
    return model;
  };
  train::TrainOptions training;
  training.graph.objective = "mlm";
  training.trainer.epochs = options.supernet;
  training.trainer.cycles = 1;
  training.trainer.learning_rate = kRate;
  training.trainer.seed = options.seed;
  training.length = options.length;
  training.execution = execution;
  train::TrainCallbacks told;
  told.should_stop = callbacks.should_stop;
  told.step = [&](const train::StepReport& step) {
    callbacks.tell({.activity = "training what all start from",
                    .unit = "steps",
                    .done = step.step,
                    .total = step.num_steps,
                    .note = fmt::format("loss {:.4f}", step.loss)});
  };
  io::Model whole = build(largest(sizes));
  State states = whole.state;
  train::PausedRun paused;
  for (std::int64_t round = 0; round < options.supernet; ++round) {
    io::Model model = round % 2 == 0 ? whole : build(drawn(sizes, options.seed, round));
    paused.state = cut_states(states, model.state);
    for (auto& [name, tensor] : model.state) tensor = paused.state.at(name);
    training.trainer.pause_after = round + 1;
    training.after = round > 0 ? &paused : nullptr;
    const train::TrainOutcome outcome =
        train::train_model(std::move(model), texts, {}, training, told);
    if (outcome.result.ending == train::Ending::Interrupted) throw Interrupted();
    paused.progress = outcome.result.progress;
    if (round == 0)
      states = outcome.result.state;
    else
      return_states(states, outcome.result.state);
  }
  for (auto& [name, tensor] : whole.state) tensor = states.at(name);
  whole.fresh.clear();
  io::write_checkpoint(directory, whole);
  return load();
}

}  // namespace lathe::search
