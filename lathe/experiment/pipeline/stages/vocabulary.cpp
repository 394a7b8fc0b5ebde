#include "lathe/compress/shrinking/vocabulary.h"

#include "lathe/experiment/pipeline/stage.h"
#include "lathe/experiment/pipeline/stage_settings.h"
#include "lathe/train/make_source.h"

// vocabulary: tokens that occur in train less often than asked for go, and texts that hold them are
// read as something else. The rows held out show what that costs.
namespace lathe::experiment::vocabulary_stage {
namespace {

using nlohmann::json;

std::int64_t read_min_count(const json& settings) {
  std::int64_t min_count = 1;
  read_settings(settings, [&](const auto& visit) { visit("min-count", min_count); });
  if (min_count < 1) fail("min-count = {}: expected 1 or more", min_count);
  return min_count;
}

void run(const StageRun& stage) {
  if (stage.train.examples.empty()) fail("the stage needs data to count tokens in");
  const std::int64_t min_count = read_min_count(stage.settings);
  io::Model model = io::load_model(stage.model, {.seed = stage.seed, .with_masters = true});
  const std::shared_ptr<const data::Tokenizer> before = train::load_tokenizer(model);
  ThreadPool& pool = *stage.execution.pool;
  const std::vector<std::int64_t> counts = compress::count_tokens(*before, stage.train, pool);
  std::vector<std::int32_t> kept;
  for (std::size_t id = 0; id < counts.size(); ++id)
    if (counts[id] >= min_count) kept.push_back(static_cast<std::int32_t>(id));
  const compress::VocabularyReport report = compress::shrink_vocabulary(model, kept);
  stage.callbacks.warn(fmt::format("{} of {} tokens stay", report.rows_after, report.rows_before));
  if (!stage.held_out.examples.empty()) {
    const compress::UnknownTokens cost =
        compress::compare_tokenizers(*before, *train::load_tokenizer(model), stage.held_out, pool);
    stage.callbacks.warn(fmt::format(
        "of the rows held out, {} of {} texts are read as other tokens; {:.3f} % of tokens are "
        "unknown now",
        cost.changed_texts, cost.texts, 100 * cost.share()));
  }
  io::write_checkpoint(stage.out, model);
}

const Register registration{Stage{
    .name = "vocabulary",
    .summary = "take away tokens that train does not hold, or hardly",
    .check = [](const json& settings) { read_min_count(settings); },
    .run = run,
}};

}  // namespace
}  // namespace lathe::experiment::vocabulary_stage
