#include "lathe/train/testing/golden_bert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "lathe/core/pass.h"
#include "lathe/engine/executor.h"
#include "lathe/engine/testing/cuda_gpu.h"
#include "lathe/io/json_file.h"
#include "lathe/io/model.h"

namespace lathe::train {
namespace {

using nlohmann::json;

// Logits and hidden states that PyTorch computed in float32, against ours. Two float32 evaluations
// of this model differ by rounding only: logits within 2e-5, hidden states (of size about 1, after
// up to 13 roundings of sums of 128 to 512 products) within 5e-5.
constexpr double kLogitTolerance = 2e-5;
constexpr double kHiddenTolerance = 5e-5;

struct Case {
  const char* executor;
  bool is_packed;
  const char* isa;
};

class GoldenBert : public testing::TestWithParam<Case> {};

// The value that Hugging Face lists as hidden state `layer`: the embedding's output or a layer's.
std::string hidden_node(int layer) {
  if (layer == 0) return "bert.embeddings.dropout";
  return fmt::format("bert.encoder.layer.{}.output.LayerNorm", layer - 1);
}

TEST_P(GoldenBert, AgreesWithPyTorch) {
  const std::filesystem::path shared = LATHE_SHARED_DIR;
  const std::filesystem::path path = shared / "golden/bert_tiny_forward_backward.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  if (std::string_view(GetParam().executor) == "cuda") LATHE_NEEDS_GPU();
  const std::optional<Isa> isa = parse_isa(GetParam().isa);
  ASSERT_TRUE(isa);
  if (!is_supported(*isa)) GTEST_SKIP() << "this processor has no " << GetParam().isa;

  const json golden = io::read_json(path);
  const io::Model model = golden_model(golden, shared);
  Graph graph = model.graph;
  for (int layer = 0; layer <= 2; ++layer)
    graph.set_output(fmt::format("hidden{}", layer), {graph.at(hidden_node(layer)), 0});
  if (GetParam().is_packed) run_pass("pack-sequences", graph);
  ThreadPool pool(2);
  const auto executor = engine::make_executor(
      graph, model.state, {.device = GetParam().executor, .pool = &pool, .isa = *isa});
  const Feed feed = golden_feed(golden, GetParam().is_packed);
  const Feed outputs = executor->run(feed);

  double worst_logit = 0;
  for (std::size_t row = 0; row < golden["logits"].size(); ++row)
    for (std::size_t label = 0; label < 2; ++label)
      worst_logit =
          std::max(worst_logit,
                   std::fabs(outputs.at("logits").at(static_cast<std::int64_t>(2 * row + label)) -
                             golden["logits"][row][label].get<double>()));
  EXPECT_LE(worst_logit, kLogitTolerance);
  EXPECT_NEAR(outputs.at("loss").at(0), golden["loss"].get<double>(), 1e-5);

  double worst_hidden = 0;
  for (const json& hidden : golden["hidden"]) {
    const Tensor& values = outputs.at(fmt::format("hidden{}", hidden["layer"].get<int>()));
    const auto row = hidden["row"].get<std::int64_t>();
    const auto position = hidden["position"].get<std::int64_t>();
    const std::int64_t token =
        GetParam().is_packed
            ? feed.at("offsets").data<std::int32_t>()[static_cast<std::size_t>(row)] + position
            : row * values.dim(1) + position;
    for (std::int64_t feature = 0; feature < 128; ++feature)
      worst_hidden =
          std::max(worst_hidden,
                   std::fabs(values.at(token * 128 + feature) -
                             hidden["values"][static_cast<std::size_t>(feature)].get<double>()));
  }
  EXPECT_LE(worst_hidden, kHiddenTolerance);
  RecordProperty("worst_logit", fmt::format("{:.2e}", worst_logit));
  RecordProperty("worst_hidden", fmt::format("{:.2e}", worst_hidden));
  std::printf("worst logit %.2e, worst hidden %.2e\n", worst_logit, worst_hidden);
}

INSTANTIATE_TEST_SUITE_P(EveryExecutor, GoldenBert,
                         testing::Values(Case{"reference", false, "plain"},
                                         Case{"reference", true, "plain"},
                                         Case{"cpu", false, "avx512"}, Case{"cpu", true, "avx512"},
                                         Case{"cpu", false, "avx2"}, Case{"cpu", true, "avx2"},
                                         Case{"cpu", false, "plain"}, Case{"cpu", true, "plain"},
                                         Case{"cuda", false, "plain"}, Case{"cuda", true, "plain"}),
                         [](const auto& test) {
                           return fmt::format("{}_{}_{}", test.param.executor,
                                              test.param.is_packed ? "packed" : "padded",
                                              test.param.isa);
                         });

}  // namespace
}  // namespace lathe::train
