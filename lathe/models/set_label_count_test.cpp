#include "lathe/models/set_label_count.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_difference.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"

namespace lathe::models {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const TaskRecord kTask{
    .name = "classify", .architecture = "Test", .inputs = {"x"}, .label_layer = "top"};

Graph graph_of(const char* weight) {
  return parse_graph(fmt::format(R"(
    symbols B
    x = input() : f32[B,4]
    w = state() : f32[2,4]
    b = state() : f32[2]
    m = state() {{role="mask"}} : f32[2,4]
    pruned = mul(w, m) : f32[2,4]
    top = linear(x, {}, b) : f32[B,2]
    output logits <- top
  )",
                                 weight));
}

TEST(SetLabelCount, MakesOfAnyGraphTheOneTheFamilyBuildsForThatMany) {
  const ModelFamily& family = FamilyRegistry::instance().at("bert", "model");
  const TaskRecord& task = find_task(family, "classify");
  const auto built = [&](std::int64_t labels) {
    return build(family, parse_attributes("hidden_size=12, num_hidden_layers=1"),
                 {.task = "classify", .num_labels = labels});
  };
  for (const std::int64_t from : {1, 2, 3})
    for (const std::int64_t to : {1, 2, 3}) {
      Graph graph = built(from);
      const std::vector<std::string> fresh = set_label_count(graph, task, to);
      EXPECT_EQ(describe_difference(graph, built(to)), std::nullopt) << from << " to " << to;
      if (from == to)
        EXPECT_THAT(fresh, IsEmpty());
      else
        EXPECT_THAT(fresh, ElementsAre("classifier.weight", "classifier.bias"));
    }
}

TEST(SetLabelCount, RefusesALayerWhoseWeightIsComputed) {
  Graph graph = graph_of("pruned");
  EXPECT_EQ(error_text([&] { set_label_count(graph, kTask, 3); }),
            "layer \"top\" cannot be given 3 labels: its weight is computed by \"pruned\" (mul)");
}

TEST(SetLabelCount, RefusesALayerWhoseWeightIsReadElsewhere) {
  Graph graph = graph_of("w");
  EXPECT_EQ(error_text([&] { set_label_count(graph, kTask, 3); }),
            "layer \"top\" cannot be given 3 labels: its weight \"w\" is also read by \"pruned\" "
            "(mul)");
}

TEST(SetLabelCount, RefusesALayerThatSomethingStandsBeside) {
  Graph graph = parse_graph(R"(
    symbols B
    x = input() : f32[B,4]
    w = state() : f32[2,4]
    v = state() : f32[2,4]
    top = linear(x, w) : f32[B,2]
    side = linear(x, v) : f32[B,2]
    top/lora = add(top, side) : f32[B,2]
    output logits <- top/lora
  )");
  EXPECT_EQ(error_text([&] { set_label_count(graph, kTask, 1); }),
            "layer \"top\" cannot be given 1 labels: the logits come from \"top/lora\" (add), "
            "which stands behind it");
}

TEST(SetLabelCount, SaysWhenSizesFixTheNumber) {
  Graph graph = graph_of("w");
  TaskRecord task = kTask;
  task.label_layer.clear();
  EXPECT_EQ(error_text([&] { set_label_count(graph, task, 3); }),
            "the model cannot be given 3 labels: its sizes fix 2 logits");
  EXPECT_THAT(set_label_count(graph, task, 2), IsEmpty());
}

}  // namespace
}  // namespace lathe::models
