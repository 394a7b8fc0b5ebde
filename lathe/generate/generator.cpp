#include "lathe/generate/generator.h"

#include <algorithm>

#include "lathe/engine/backend.h"
#include "lathe/io/json_file.h"
#include "lathe/models/set_inputs.h"

namespace lathe::generate {
namespace {

using End = Continuation::End;

// A prompt under way: its tokens and those behind them, how many the caches hold, and where.
struct Sequence {
  std::size_t prompt = 0;
  Tokens tokens = {};
  std::int64_t prompt_length = 0, start = 0, cached = 0;

  std::int64_t pending() const { return std::ssize(tokens) - cached; }
};

// What one run is fed with: the next tokens of sequences, as many of each as there is room for.
class Batch {
 public:
  Batch(std::vector<Sequence*> sequences, std::int64_t max_tokens) {
    for (Sequence* const sequence : sequences) {
      const std::int64_t count = std::min(sequence->pending(), max_tokens - std::ssize(tokens_));
      if (count <= 0) break;
      const auto first = sequence->tokens.begin() + sequence->cached;
      tokens_.insert(tokens_.end(), first, first + count);
      for (std::int64_t i = 0; i < count; ++i)
        positions_.push_back(static_cast<std::int32_t>(sequence->cached + i));
      offsets_.push_back(static_cast<std::int32_t>(tokens_.size()));
      starts_.push_back(static_cast<std::int32_t>(sequence->start));
      lengths_.push_back(static_cast<std::int32_t>(sequence->cached));
      sequence->cached += count;
      members_.push_back(sequence);
    }
  }

  Feed feed() const {
    return {{"input_ids", tensor(tokens_)},
            {"offsets", tensor(offsets_)},
            {kPositions, tensor(positions_)},
            {kStarts, tensor(starts_)},
            {kLengths, tensor(lengths_)}};
  }
  const std::vector<Sequence*>& members() const { return members_; }

 private:
  static Tensor tensor(const Tokens& values) {
    return Tensor::from<std::int32_t>({std::ssize(values)}, std::span<const std::int32_t>(values));
  }

  Tokens tokens_, positions_, offsets_{0}, starts_, lengths_;
  std::vector<Sequence*> members_;
};

void add_end_ids(const nlohmann::json& config, Tokens& ids) {
  if (!config.is_object()) fail("expected an object of configuration keys");
  const auto found = config.find("eos_token_id");
  if (found == config.end() || found->is_null()) return;
  for (const nlohmann::json& id : found->is_array() ? *found : nlohmann::json::array({*found})) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < -1 ||
        id.get<std::int64_t>() > std::int64_t{INT32_MAX})
      fail("eos_token_id is {}: expected an id or a list of ids", found->dump());
    if (id.get<std::int32_t>() >= 0) ids.push_back(id.get<std::int32_t>());
  }
}

// What comes behind the sequence in a row of a run's outputs.
std::int32_t next_token(const Feed& outputs, std::size_t row, const Sequence& sequence,
                        const Sampling& sampling) {
  if (const auto chosen = outputs.find(kLikeliest); chosen != outputs.end())
    return chosen->second.data<std::int32_t>()[row];
  const Tensor& logits = outputs.at("logits");
  const auto width = static_cast<std::size_t>(logits.dims().back());
  return choose_token(logits.data<float>().subspan(row * width, width), sampling,
                      static_cast<std::uint32_t>(sequence.prompt),
                      static_cast<std::uint32_t>(sequence.tokens.size()));
}

// Whether the device has a kernel that chooses the likeliest token.
bool can_choose(const Graph& graph, const engine::Backend& backend) {
  Graph choosing = graph;
  choose_likeliest(choosing);
  return backend.can_run(choosing, choosing.at(kLikeliest));
}

}  // namespace

std::string_view name(Continuation::End end) {
  constexpr std::string_view kNames[] = {"limit", "end", "positions", "stopped"};
  return kNames[static_cast<std::size_t>(end)];
}

Tokens end_ids_of(const io::Model& model) {
  Tokens ids;
  const std::filesystem::path beside = model.directory / "generation_config.json";
  if (!model.directory.empty() && std::filesystem::exists(beside)) {
    const nlohmann::json config = io::read_json(beside);
    with_place(beside.string(), [&] { add_end_ids(config, ids); });
  }
  if (ids.empty() && !model.config_text.empty())
    with_place("config.json", [&] { add_end_ids(nlohmann::json::parse(model.config_text), ids); });
  return ids;
}

Generator::Generator(const io::Model& model, const engine::ExecutionOptions& execution,
                     CacheFormat cache)
    : graph_(model.graph), state_(model.state), execution_(execution), cache_(cache) {
  if (model.task != "causal-lm")
    fail("the model is for {}: expected a causal language model", model.task);
  if (!model.fresh.empty())
    fail("{} is untrained: expected a model that was trained for causal-lm", model.fresh.front());
  if (execution.precision != engine::Precision::Float32)
    fail("precision {}: generation computes in float32", name(execution.precision));
  const AttributeReader config(model.config, model.family->config);
  vocabulary_ = config.integer(model.family->token_keys.vocabulary);
  positions_ = config.integer(model.family->token_keys.length);
  models::set_inputs(graph_, *model.family, models::find_task(*model.family, model.task),
                     {"input_ids", "attention_mask"}, model.labels);
}

void Generator::check_prompts(std::span<const Tokens> prompts) const {
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i].empty()) fail("no tokens in prompt {}", i);
    if (std::ssize(prompts[i]) > positions_)
      fail("{} tokens in prompt {}, but the model reads {} at most", prompts[i].size(), i,
           positions_);
    for (const std::int32_t id : prompts[i])
      if (id < 0 || id >= vocabulary_)
        fail("id {} in prompt {}: expected 0 to {}", id, i, vocabulary_ - 1);
  }
}

void Generator::reserve(std::int64_t rows, bool is_greedy) {
  if (executor_ != nullptr && rows <= rows_ && is_greedy == is_greedy_) return;
  rows_ = std::max(rows, rows_);
  is_greedy_ = is_greedy;
  Graph cached = with_cache(graph_, rows_, cache_);
  if (is_greedy && can_choose(cached, engine::find_backend(execution_.device)))
    choose_likeliest(cached);
  State state = empty_caches(cached);
  row_bytes_ = 0;
  for (const auto& [name, tensor] : state) row_bytes_ += tensor.num_bytes() / rows_;
  state.insert(state_.begin(), state_.end());
  executor_ = engine::make_executor(cached, std::move(state), execution_);
}

std::vector<Continuation> Generator::run(
    std::span<const Tokens> prompts, const GenerateOptions& options,
    const std::function<void(std::size_t, std::int32_t)>& on_token, const ShouldStop& should_stop) {
  check_sampling(options.sampling);
  if (options.max_new_tokens < 1)
    fail("max-new-tokens is {}: expected 1 or more", options.max_new_tokens);
  check_prompts(prompts);
  std::vector<Continuation> results(prompts.size());
  std::vector<Sequence> sequences;
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::int64_t length = std::ssize(prompts[i]);
    sequences.push_back({i, prompts[i], length, rows, 0});
    // The last token is chosen and never read.
    rows += std::min(positions_, length + options.max_new_tokens - 1);
  }
  if (rows > std::int64_t{INT32_MAX}) fail("the prompts need {} rows of cache: too many", rows);
  reserve(rows, options.sampling.temperature == 0);

  std::vector<Sequence*> active;
  for (Sequence& sequence : sequences) active.push_back(&sequence);
  while (!active.empty()) {
    if (should_stop && should_stop()) return results;
    const Batch batch(active, std::max<std::int64_t>(options.batch_tokens, 1));
    const Feed outputs = executor_->run(batch.feed());
    for (std::size_t row = 0; row < batch.members().size(); ++row) {
      Sequence& sequence = *batch.members()[row];
      results[sequence.prompt].cache_bytes = sequence.cached * row_bytes_;
      if (sequence.pending() > 0) continue;  // the rest of its prompt comes with the next run
      const std::int32_t token = next_token(outputs, row, sequence, options.sampling);
      if (token == kNoToken)
        fail(
            "the logits behind {} tokens of prompt {} are not finite: expected a model "
            "whose weights do not overflow",
            sequence.tokens.size(), sequence.prompt);
      sequence.tokens.push_back(token);
      Continuation& result = results[sequence.prompt];
      result.tokens.push_back(token);
      if (on_token) on_token(sequence.prompt, token);
      std::optional<End> end;
      if (std::ranges::count(options.end_ids, token) > 0)
        end = End::EndToken;
      else if (std::ssize(result.tokens) >= options.max_new_tokens)
        end = End::Limit;
      else if (std::ssize(sequence.tokens) > positions_)
        end = End::Positions;
      if (!end) continue;
      result.end = *end;
      std::erase(active, &sequence);
    }
    // Sequences that had no room go first next time.
    std::ranges::stable_partition(active, [&](const Sequence* sequence) {
      return std::ranges::count(batch.members(), sequence) == 0;
    });
  }
  return results;
}

}  // namespace lathe::generate
