#include "lathe/train/targets.h"

#include <gmock/gmock.h>

#include <cmath>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/engine/executor.h"

namespace lathe::train {
namespace {

using testing::ElementsAre;

TEST(WeighClasses, CountsAnExampleByTheWeightOfItsClass) {
  Graph graph = parse_graph(R"(
    logits = input() : f32[B,2]
    labels = input() : i32[B]
    total = cross_entropy(logits, labels)
    loss = div(total, total#1)
    output logits <- logits
    output loss <- loss
  )");
  weigh_classes(graph);
  const auto executor = engine::make_executor(graph, {}, {.device = "reference"});
  // Probabilities of the labels are 1/2 and 1/4, with weights 1 and 3.
  const Feed outputs =
      executor->run({{"logits", Tensor::from<float>({2, 2}, {0, 0, std::log(3.0f), 0})},
                     {"labels", Tensor::from<std::int32_t>({2}, {0, 1})},
                     {kWeightedLabelsInput, Tensor::from<float>({2, 2}, {1, 0, 0, 3})}});
  EXPECT_NEAR(outputs.at("loss").at(0), (std::log(2.0) + 3 * std::log(4.0)) / 4, 1e-6);
}

TEST(BalancedWeights, MakeClassesCountAlike) {
  data::Dataset examples{.examples = {{"", 0}, {"", 1}, {"", 0}, {"", 0}},
                         .label_names = {"a", "b"}};
  EXPECT_THAT(balanced_weights(examples), ElementsAre(4 / 6.0f, 2.0f));
  examples.label_names.emplace_back("c");
  EXPECT_EQ(error_text([&] { balanced_weights(examples); }),
            "class-weights balanced: no example has the label c");
}

}  // namespace
}  // namespace lathe::train
