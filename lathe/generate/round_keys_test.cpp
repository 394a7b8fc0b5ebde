#include "lathe/generate/round_keys.h"

#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/models/set_inputs.h"

namespace lathe::generate {
namespace {

io::Model small() {
  return io::load_model("llama-tiny", {.task = "causal-lm",
                                       .config = {{"vocab_size", std::int64_t{50}},
                                                  {"max_position_embeddings", std::int64_t{40}},
                                                  {"initializer_range", 0.15}}});
}

Tensor integers(std::vector<std::int64_t> dims, std::vector<std::int32_t> values) {
  return Tensor::from<std::int32_t>(std::move(dims), std::span<const std::int32_t>(values));
}

// The whole text at once with rounded keys, and with a cache that rounds them.
TEST(RoundKeys, PredictsWhatIsPredictedWithTheCache) {
  const io::Model model = small();
  const std::vector<std::int32_t> tokens{3, 1, 4, 1, 5, 9, 2, 6, 5};
  const auto length = static_cast<std::int32_t>(tokens.size());
  std::vector<std::int32_t> positions;
  for (std::int32_t i = 0; i < length; ++i) positions.push_back(i);
  std::vector<Tensor> results;
  for (const CacheFormat format : {CacheFormat::Float32, CacheFormat::Bf16, CacheFormat::Int8}) {
    Graph whole = model.graph;
    models::set_inputs(whole, *model.family, models::find_task(*model.family, "causal-lm"),
                       {"input_ids"});
    round_keys(whole, format);
    const Tensor expected = engine::make_executor(whole, model.state, {})
                                ->run({{"input_ids", integers({1, length}, tokens)}})
                                .at("logits");
    Graph cached = model.graph;
    models::set_inputs(cached, *model.family, models::find_task(*model.family, "causal-lm"),
                       {"input_ids", "attention_mask"});
    cached = with_cache(cached, 16, format);
    State state = empty_caches(cached);
    state.insert(model.state.begin(), model.state.end());
    const Tensor found = engine::make_executor(cached, state, {})
                             ->run({{"input_ids", integers({length}, tokens)},
                                    {"offsets", integers({2}, {0, length})},
                                    {kPositions, integers({length}, positions)},
                                    {kStarts, integers({1}, {0})},
                                    {kLengths, integers({1}, {0})}})
                             .at("logits");
    for (std::int64_t i = 0; i < found.num_elements(); ++i)
      ASSERT_NEAR(found.at(i), expected.at((length - 1) * 50 + i), 1e-4)
          << name(format) << ", token " << i;
    results.push_back(found);
  }
  EXPECT_NE(results[0].at(0), results[1].at(0)) << "rounding changes something";
  EXPECT_NE(results[1].at(0), results[2].at(0));
}

TEST(RoundKeys, NeedsAModelThatKeepsThem) {
  Graph graph = io::load_model("bert-tiny", {.task = "classify"}).graph;
  EXPECT_EQ(error_text([&] { round_keys(graph, CacheFormat::Int8); }),
            "cache int:8: the model keeps no keys; expected a causal language model");
}

}  // namespace
}  // namespace lathe::generate
