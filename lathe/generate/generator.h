#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lathe/core/interrupt.h"
#include "lathe/engine/executor.h"
#include "lathe/generate/add_cache.h"
#include "lathe/generate/sampling.h"
#include "lathe/io/model.h"

namespace lathe::generate {

using Tokens = std::vector<std::int32_t>;

struct GenerateOptions {
  std::int64_t max_new_tokens = 64;
  Sampling sampling = {};
  Tokens end_ids = {};  ///< a continuation ends with the first of these
  /// Most tokens that one run adds; longer prompts are read in parts.
  std::int64_t batch_tokens = 1024;
};

/// What was put behind a prompt.
struct Continuation {
  Tokens tokens = {};
  enum class End {
    Limit,      ///< as many tokens as were asked for
    EndToken,   ///< one of `end_ids`, which is the last token
    Positions,  ///< the model's positions are used up
    Stopped,    ///< somebody asked to stop
  };
  End end = End::Stopped;
  std::int64_t cache_bytes = 0;  ///< what the keys and values of its tokens take
};
/// "limit", "end", "positions", "stopped".
std::string_view name(Continuation::End end);

/// The tokens that a model's configuration, or the `generation_config.json` beside it, ends texts
/// with; none where it says nothing.
Tokens end_ids_of(const io::Model& model);

/// Continues prompts with a causal language model. One plan reads prompts and adds tokens, with
/// weights as they are prepared once and keys and values in caches that grow in place.
class Generator {
 public:
  /// Fails for a model that predicts no next tokens, or whose head nobody trained.
  Generator(const io::Model& model, const engine::ExecutionOptions& execution,
            CacheFormat cache = CacheFormat::Float32);

  /// Continues the prompts side by side; what comes behind one does not depend on the others.
  /// `on_token(prompt, id)` hears of tokens as they come. Asked to stop, it gives what is there.
  /// Fails on a prompt that is empty, longer than the model's positions or has an unknown id.
  std::vector<Continuation> run(std::span<const Tokens> prompts, const GenerateOptions& options,
                                const std::function<void(std::size_t, std::int32_t)>& on_token = {},
                                const ShouldStop& should_stop = {});

  std::int64_t vocabulary() const { return vocabulary_; }
  std::int64_t positions() const { return positions_; }
  /// The plan of the last run, for whoever measures it.
  engine::Executor& executor() { return *executor_; }

 private:
  void check_prompts(std::span<const Tokens> prompts) const;
  /// Plans anew where there is no room for so many rows, or tokens are chosen in another way.
  void reserve(std::int64_t rows, bool is_greedy);

  Graph graph_;
  State state_;
  engine::ExecutionOptions execution_;
  CacheFormat cache_;
  std::int64_t vocabulary_ = 0, positions_ = 0, rows_ = 0;
  std::int64_t row_bytes_ = 0;  // of all caches
  bool is_greedy_ = false;
  std::unique_ptr<engine::Executor> executor_;
};

}  // namespace lathe::generate
