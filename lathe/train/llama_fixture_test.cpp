// A small Llama from its Hugging Face directory: grouped-query attention, rotary positions, RMS
// norms and a gated feed-forward part, against logits computed in float64 by a program of its own.

#include <gtest/gtest.h>

#include <filesystem>

#include "lathe/core/pass.h"
#include "lathe/engine/executor.h"
#include "lathe/io/json_file.h"
#include "lathe/io/model.h"

namespace lathe::train {
namespace {

using nlohmann::json;

class LlamaFixture : public testing::TestWithParam<const char*> {};

TEST_P(LlamaFixture, GivesTheReferenceLogits) {
  const std::filesystem::path folder =
      std::filesystem::path(LATHE_SHARED_DIR) / "data/llama-260k-fixture";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not here";
  const json reference = io::read_json(folder / "reference_logits.json");
  io::Model llama =
      io::load_model(folder.string(), {.task = {}, .inputs = {"input_ids", "attention_mask"}});
  EXPECT_EQ(llama.task, "causal-lm");
  run_pass("pack-sequences", llama.graph);

  // The sequence twice, behind each other: neither may see the other.
  const auto tokens = reference["tokens"].get<std::vector<std::int32_t>>();
  std::vector<std::int32_t> ids;
  for (int copy = 0; copy < 2; ++copy) ids.insert(ids.end(), tokens.begin(), tokens.end());
  const auto length = static_cast<std::int32_t>(tokens.size());
  const auto tensor = [](const std::vector<std::int32_t>& values) {
    return Tensor::from<std::int32_t>({static_cast<std::int64_t>(values.size())},
                                      std::span<const std::int32_t>(values));
  };
  const Feed outputs =
      engine::make_executor(llama.graph, llama.state, {.device = GetParam()})
          ->run({{"input_ids", tensor(ids)}, {"offsets", tensor({0, length, 2 * length})}});

  const auto expected = reference["logits_last_row"].get<std::vector<double>>();
  const auto vocabulary = static_cast<std::int64_t>(expected.size());
  for (const std::int64_t row : {length - 1, 2 * length - 1})
    for (std::int64_t i = 0; i < vocabulary; ++i)
      ASSERT_NEAR(outputs.at("logits").at(row * vocabulary + i),
                  expected[static_cast<std::size_t>(i)], 1e-4)
          << "row " << row << ", token " << i;
}

INSTANTIATE_TEST_SUITE_P(EveryExecutor, LlamaFixture, testing::Values("reference", "cpu"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace lathe::train
