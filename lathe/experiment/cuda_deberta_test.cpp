// DeBERTa on a GPU: every op has a kernel there, and small models of both versions give what they
// give on the CPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/pass.h"
#include "lathe/engine/backend.h"
#include "lathe/engine/lower.h"
#include "lathe/engine/parameter_graph.h"
#include "lathe/engine/testing/cuda_gpu.h"
#include "lathe/io/model.h"

namespace lathe::experiment {
namespace {

io::Model small(const std::string& name) {
  Attributes config{
      {"hidden_size", std::int64_t{64}},        {"num_hidden_layers", std::int64_t{2}},
      {"num_attention_heads", std::int64_t{2}}, {"intermediate_size", std::int64_t{96}},
      {"vocab_size", std::int64_t{50}},         {"initializer_range", 0.1}};
  if (name == "deberta-base") config["max_position_embeddings"] = std::int64_t{40};
  return io::load_model(name, {.task = "classify", .config = config});
}

class EveryDeberta : public testing::TestWithParam<const char*> {};

TEST_P(EveryDeberta, HasAKernelForEveryOp) {
  Graph graph = small(GetParam()).graph;
  run_pass("pack-sequences", graph);
  const engine::SplitGraph split = engine::split_parameters(graph);
  for (const char* const device : {"cpu", "cuda"}) {
    const engine::Backend& backend = engine::find_backend(device);
    EXPECT_THAT(engine::count_fallbacks(split.main, backend), testing::IsEmpty()) << device;
    EXPECT_THAT(engine::count_fallbacks(split.parameters, backend), testing::IsEmpty()) << device;
  }
}

// Logits of size 1, of sums over 96 numbers in two layers.
TEST_P(EveryDeberta, GivesWhatItGivesOnTheCpu) {
  LATHE_NEEDS_GPU();
  const io::Model model = small(GetParam());
  constexpr std::int64_t kRows = 3, kLength = 37;
  Feed feed;
  for (const NodeId id : model.graph.nodes_of("input")) {
    const std::string& name = model.graph.name(id);
    Tensor tensor(model.graph.types(id)[0].dtype,
                  model.graph.types(id)[0].dims({{"B", kRows}, {"L", kLength}}));
    const auto value = [&](std::int64_t i) -> std::int64_t {
      if (name == "input_ids") return i * 7 % 50;
      if (name == "attention_mask") return i % kLength < kLength - i / kLength * 5 ? 1 : 0;
      return 0;
    };
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i)
      if (tensor.dtype() == DType::I32)
        tensor.mutable_data<std::int32_t>()[static_cast<std::size_t>(i)] =
            static_cast<std::int32_t>(value(i));
      else
        tensor.mutable_data<std::int64_t>()[static_cast<std::size_t>(i)] = value(i);
    feed[name] = std::move(tensor);
  }
  const Tensor expected =
      engine::make_executor(model.graph, model.state, {.device = "cpu"})->run(feed).at("logits");
  const Tensor logits =
      engine::make_executor(model.graph, model.state, {.device = "cuda"})->run(feed).at("logits");
  for (std::int64_t i = 0; i < expected.num_elements(); ++i)
    EXPECT_NEAR(logits.at(i), expected.at(i), 1e-4) << i;
}

INSTANTIATE_TEST_SUITE_P(Versions, EveryDeberta,
                         testing::Values("deberta-base", "deberta-v3-base"));

}  // namespace
}  // namespace lathe::experiment
