#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "lathe/core/differentiate.h"
#include "lathe/core/pass.h"
#include "lathe/engine/executor.h"
#include "lathe/engine/testing/cuda_gpu.h"
#include "lathe/io/json_file.h"
#include "lathe/io/model.h"
#include "lathe/train/testing/golden_bert.h"

namespace lathe::train {
namespace {

using nlohmann::json;

struct Case {
  const char* executor;
  bool is_packed;
  bool selects_rows;
};

class GoldenGradients : public testing::TestWithParam<Case> {};

// Gradients of the mean loss that PyTorch computed in float32. Both sides round sums of thousands
// of products, so a value is right within 1e-4 of itself plus 1e-6 of the parameter's largest.
TEST_P(GoldenGradients, AgreeWithPyTorch) {
  const std::filesystem::path shared = LATHE_SHARED_DIR;
  const std::filesystem::path path = shared / "golden/bert_tiny_forward_backward.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  if (std::string_view(GetParam().executor) == "cuda") LATHE_NEEDS_GPU();
  const json golden = io::read_json(path);
  const io::Model model = golden_model(golden, shared);
  Graph graph = model.graph;
  if (GetParam().is_packed) run_pass("pack-sequences", graph);
  run_pass("remove-dropout", graph);
  if (GetParam().selects_rows) run_pass("select-rows-early", graph);

  std::vector<Value> parameters;
  for (const NodeId id : graph.nodes_of("state")) parameters.push_back({id, 0});
  const Value loss = *graph.output("loss");
  const std::vector<Value> gradients = differentiate(graph, graph.input(loss.node, 0), parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    ASSERT_FALSE(gradients[i].is_none()) << graph.name(parameters[i].node);
    graph.set_output(graph.name(parameters[i].node), gradients[i]);
  }
  ThreadPool pool(2);
  const auto executor =
      engine::make_executor(graph, model.state, {.device = GetParam().executor, .pool = &pool});
  const Feed outputs = executor->run(golden_feed(golden, GetParam().is_packed));
  const auto rows = static_cast<double>(golden["labels"].size());
  EXPECT_NEAR(outputs.at("loss").at(0), golden["loss"].get<double>(), 1e-5);

  int checked = 0;
  for (const auto& [name, expected] : golden["grads"].items()) {
    const Tensor& actual = outputs.at(name);
    const auto largest = expected["max"].get<double>();
    double squares = 0;
    for (std::int64_t i = 0; i < actual.num_elements(); ++i)
      squares += std::pow(actual.at(i) / rows, 2);
    const auto norm = expected["norm"].get<double>();
    if (norm > 1e-6) {
      EXPECT_NEAR(std::sqrt(squares), norm, 1e-4 * norm) << name;
    }
    for (std::size_t i = 0; i < expected["index"].size(); ++i) {
      const auto value = expected["value"][i].get<double>();
      const double ours = actual.at(expected["index"][i].get<std::int64_t>()) / rows;
      // A bias that cannot matter (the key's) has no gradient but rounding noise.
      const double slack = 1e-4 * std::fabs(value) + 1e-6 * largest + (norm > 1e-6 ? 0 : 1e-8);
      EXPECT_NEAR(ours, value, slack) << name << "[" << expected["index"][i] << "]";
      ++checked;
    }
  }
  EXPECT_GE(checked, 600);
}

INSTANTIATE_TEST_SUITE_P(
    EveryExecutor, GoldenGradients,
    testing::Values(Case{"reference", true, false}, Case{"reference", false, false},
                    Case{"cpu", true, false}, Case{"cpu", false, false}, Case{"cpu", true, true},
                    Case{"cpu", false, true}, Case{"cuda", true, false}, Case{"cuda", false, false},
                    Case{"cuda", true, true}, Case{"cuda", false, true}),
    [](const auto& test) {
      return fmt::format("{}_{}{}", test.param.executor, test.param.is_packed ? "packed" : "padded",
                         test.param.selects_rows ? "_selected" : "");
    });

}  // namespace
}  // namespace lathe::train
