#include "lathe/compress/lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/trained_parameters.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/engine/executor.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"
#include "lathe/models/initialize.h"
#include "lathe/train/classifier.h"
#include "lathe/train/text_source.h"
#include "lathe/train/train_model.h"
#include "lathe/train/training_graph.h"

namespace lathe::compress {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const char* const kTwoLinears = R"(lathe-ir 2
symbols B
x = input() : f32[B,4]
up.weight = state() : f32[3,4]
up.bias = state() : f32[3]
up = linear(x, up.weight, up.bias) : f32[B,3]
down.weight = state() : f32[2,3]
down = linear(up, down.weight, none) : f32[B,2]
output hidden <- up
output y <- down
)";

TEST(InsertLora, AddsAPathThatEveryReaderSees) {
  Graph graph = parse_graph(kTwoLinears);
  State state = models::initialize(graph, 1);
  EXPECT_EQ(
      insert_lora(graph, state, {.rank = 2, .alpha = 3, .dropout = 0.1, .targets = {"up"}}, 1), 1);
  EXPECT_EQ(print(graph), R"(lathe-ir 2
symbols B
x = input() : f32[B,4]
up.weight = state() : f32[3,4]
up.bias = state() : f32[3]
up = linear(x, up.weight, up.bias) : f32[B,3]
up.lora_A.weight = state() {init="uniform", scale=0.5} : f32[2,4]
up.lora_B.weight = state() {init="zeros"} : f32[3,2]
up/lora_dropout = dropout(x) {rate=0.1, site=0} : f32[B,4]
up/lora_A = linear(up/lora_dropout, up.lora_A.weight, none) : f32[B,2]
up/lora_B = linear(up/lora_A, up.lora_B.weight, none) : f32[B,3]
up/lora_factor = constant() {values=[1.5]} : f32[]
up/lora_scale = mul(up/lora_B, up/lora_factor) : f32[B,3]
up/lora = add(up, up/lora_scale) : f32[B,3]
down.weight = state() : f32[2,3]
down = linear(up/lora, down.weight, none) : f32[B,2]
output hidden <- up/lora
output y <- down
)");
  verify(graph);
  const std::vector<LoraPath> paths = find_lora(graph);
  ASSERT_EQ(paths.size(), 1u);
  EXPECT_EQ(paths[0].rank, 2);
  EXPECT_EQ(paths[0].scaling, 1.5);
  EXPECT_EQ(paths[0].dropout_rate, 0.1);
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(state.at("up.lora_B.weight").at(i), 0);
  for (std::int64_t i = 0; i < 8; ++i) {
    EXPECT_NE(state.at("up.lora_A.weight").at(i), 0);
    EXPECT_LE(std::fabs(state.at("up.lora_A.weight").at(i)), 0.5);
  }
}

TEST(InsertLora, DrawsFromASiteOfItsOwn) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    d = dropout(x) {rate=0.1, site=6}
    w = state() : f32[3,4]
    one = linear(d, w, none)
    v = state() : f32[3,3]
    two = linear(one, v, none)
    output y <- two
  )");
  State state = models::initialize(graph, 1);
  insert_lora(graph, state, {.rank = 1, .dropout = 0.5, .targets = {"one|two"}}, 1);
  EXPECT_EQ(print(graph, "one/lora_dropout"),
            "one/lora_dropout = dropout(d) {rate=0.5, site=7} : f32[B,4]");
  EXPECT_EQ(print(graph, "two/lora_dropout"),
            "two/lora_dropout = dropout(one/lora) {rate=0.5, site=8} : f32[B,3]");
}

TEST(FuseLora, AddsTheScaledProductToTheWeight) {
  Graph graph = parse_graph(kTwoLinears);
  State state = models::initialize(graph, 1);
  state["down.weight"] = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  insert_lora(graph, state, {.rank = 1, .alpha = 2, .targets = {"down"}}, 1);
  state["down.lora_A.weight"] = Tensor::from<float>({1, 3}, {1, 10, 100});
  state["down.lora_B.weight"] = Tensor::from<float>({2, 1}, {1, -1});
  EXPECT_EQ(fuse_lora(graph, state), 1);
  EXPECT_TRUE(
      identical(state.at("down.weight"), Tensor::from<float>({2, 3}, {3, 22, 203, 2, -15, -194})));
  EXPECT_EQ(print(graph), kTwoLinears);
  EXPECT_EQ(state.size(), 3u);
  EXPECT_EQ(fuse_lora(graph, state), 0);
}

TEST(FindLora, KnowsAPathWhateverItIsCalled) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[3,4]
    y = linear(x, w)
    first = state() : f32[2,4]
    second = state() : f32[3,2]
    d = dropout(x) {rate=0.25}
    p = linear(d, first)
    q = linear(p, second)
    half = constant() {values=[0.5]} : f32[]
    r = mul(half, q)
    sum = add(r, y)
    output y <- sum
  )");
  const std::vector<LoraPath> paths = find_lora(graph);
  ASSERT_EQ(paths.size(), 1u);
  EXPECT_EQ(paths[0].name, "y");
  EXPECT_EQ(graph.name(paths[0].a), "first");
  EXPECT_EQ(graph.name(paths[0].b), "second");
  EXPECT_EQ(paths[0].rank, 2);
  EXPECT_EQ(paths[0].scaling, 0.5);
  EXPECT_EQ(paths[0].dropout_rate, 0.25);
  EXPECT_THAT(lora_parameters(graph, {}), ElementsAre("first", "second"));
  State state{{"w", Tensor::from<float>({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})},
              {"first", Tensor::from<float>({2, 4}, {2, 0, 0, 0, 0, 4, 0, 0})},
              {"second", Tensor::from<float>({3, 2}, {1, 0, 0, 1, 0, 0})}};
  EXPECT_EQ(fuse_lora(graph, state), 1);
  EXPECT_TRUE(identical(state.at("w"),
                        Tensor::from<float>({3, 4}, {2, 2, 3, 4, 5, 8, 7, 8, 9, 10, 11, 12})));
  EXPECT_EQ(graph.name(graph.output("y")->node), "y");
}

TEST(FindLora, TakesNoOtherSumForAPath) {
  // Another input, a second reader of A, a bias on the way.
  for (const char* const rest : {"p = linear(z, a)\n q = linear(p, b)\n",
                                 "p = linear(x, a)\n q = linear(p, b)\n o = relu(a)\n",
                                 "p = linear(x, a, c)\n q = linear(p, b)\n"}) {
    const Graph graph = parse_graph(fmt::format(R"(
      x = input() : f32[B,4]
      z = relu(x)
      w = state() : f32[3,4]
      y = linear(x, w)
      a = state() : f32[2,4]
      b = state() : f32[3,2]
      c = state() : f32[2]
      {}
      half = constant() {{values=[0.5]}} : f32[]
      r = mul(q, half)
      sum = add(y, r)
      output y <- sum
    )",
                                                rest));
    EXPECT_THAT(find_lora(graph), IsEmpty()) << rest;
  }
}

TEST(InsertLora, StandsBesideAProductWithAParameter) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,3]
    w = state() : f32[3,2]
    y = matmul(x, w)
    output y <- y
  )");
  State state{{"w", Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6})}};
  EXPECT_EQ(insert_lora(graph, state, {.rank = 1, .alpha = 2, .targets = {"y"}}, 1), 1);
  state["y.lora_A.weight"] = Tensor::from<float>({1, 3}, {1, 10, 100});
  state["y.lora_B.weight"] = Tensor::from<float>({2, 1}, {1, -1});
  EXPECT_EQ(fuse_lora(graph, state), 1);
  EXPECT_TRUE(identical(state.at("w"), Tensor::from<float>({3, 2}, {3, 0, 23, -16, 205, -194})));
}

// Weights of four bits with a path of floats beside them: it trains, but is not fused.
TEST(FuseLora, RefusesARoundedWeight) {
  Graph graph = parse_graph(kTwoLinears);
  State state = models::initialize(graph, 1);
  insert_quantizers(graph, state, {{.formats = {{TensorRole::Weights, "int:4,channel"}}}});
  insert_lora(graph, state, {.targets = {"up"}}, 1);
  EXPECT_THAT(lora_parameters(graph, {}), ElementsAre("up.lora_A.weight", "up.lora_B.weight"));
  const std::string before = print(graph);
  EXPECT_EQ(io::refusal("", [&] { fuse_lora(graph, state); }),
            "linear \"up\": its weight or its LoRA path is rounded, so the two cannot be fused "
            "without rounding anew");
  EXPECT_EQ(print(graph), before);
}

TEST(InsertLora, AdaptsTheLayersOfEveryFamilyByDefault) {
  const auto adapted = [](const char* builder, const char* task) {
    io::Model model = io::load_model(builder, {.task = task});
    return insert_lora(model.graph, model.state, {.rank = 2}, 1);
  };
  EXPECT_EQ(adapted("bert-tiny", "classify"), 2 * 6);    // neither pooler nor classifier
  EXPECT_EQ(adapted("llama-tiny", "causal-lm") % 7, 0);  // no head
  EXPECT_GT(adapted("llama-tiny", "causal-lm"), 0);
  EXPECT_GT(adapted("gpt2-tiny", "causal-lm"), 0);
}

TEST(InsertLora, NamesTheEndingsOfLinearsThatThereAre) {
  io::Model model = io::load_model("llama-tiny", {.task = "causal-lm"});
  try {
    insert_lora(model.graph, model.state, {.targets = {"query"}}, 1);
    FAIL() << "a target that matches nothing was taken";
  } catch (const UserError& error) {
    EXPECT_EQ(error.hint(),
              "linears end in self_attn.q_proj, self_attn.k_proj, self_attn.v_proj, "
              "self_attn.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj, lm_head");
  }
}

TEST(InsertLora, RefusesWhatCannotBe) {
  const auto refusal = [](const LoraOptions& options) {
    Graph graph = parse_graph(kTwoLinears);
    State state = models::initialize(graph, 1);
    return io::refusal("", [&] { insert_lora(graph, state, options, 1); });
  };
  EXPECT_EQ(refusal({.targets = {"up", "encoder"}}),
            "targets=\"encoder\": no linear of the model matches it");
  EXPECT_EQ(refusal({.targets = {"("}}), "targets=\"(\": missing ): (");
  EXPECT_EQ(refusal({.rank = 0, .targets = {"up"}}), "rank=0: expected 1 to 65536");
  EXPECT_EQ(refusal({.alpha = 0, .targets = {"up"}}), "alpha=0: expected a number above 0");
  EXPECT_EQ(refusal({.dropout = 1, .targets = {"up"}}), "dropout=1: expected 0 up to below 1");
  Graph tied = parse_graph(R"(
    i = input() : i32[B]
    w = state() : f32[5,4]
    e = embedding(i, w)
    decoder = linear(e, w, none)
    output y <- decoder
  )");
  State state = models::initialize(tied, 1);
  EXPECT_EQ(io::refusal("", [&] { insert_lora(tied, state, {.targets = {"decoder"}}, 1); }),
            "linear \"decoder\": its weight \"w\" is also read by \"e\", so LoRA cannot be fused "
            "into it");
  Graph computed = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[5,4]
    v = state() : f32[5,4]
    sum = add(w, v)
    y = linear(x, sum, none)
    output y <- y
  )");
  state = models::initialize(computed, 1);
  EXPECT_EQ(io::refusal("", [&] { insert_lora(computed, state, {.targets = {"y"}}, 1); }),
            "linear \"y\": its weight is computed by \"sum\", so LoRA could not be fused into it");
  Graph twice = parse_graph(kTwoLinears);
  state = models::initialize(twice, 1);
  insert_lora(twice, state, {.targets = {"up"}}, 1);
  EXPECT_EQ(io::refusal("", [&] { insert_lora(twice, state, {.targets = {"down"}}, 1); }),
            "the model has LoRA paths already");
}

TEST(LoraOptions, AreReadFromText) {
  const LoraOptions options =
      parse_lora_options("alpha=32,rank=4,dropout=0.05,targets=query|layer.{1,2}value");
  EXPECT_EQ(options.rank, 4);
  EXPECT_EQ(options.alpha, 32);
  EXPECT_EQ(options.dropout, 0.05);
  EXPECT_THAT(options.targets, ElementsAre("query|layer.{1,2}value"));
  EXPECT_THAT(parse_lora_options("rank=2").targets, ElementsAre(kNumberedLayers));
}

TEST(LoraOptions, NameWhatIsWrong) {
  const auto refusal = [](const char* text) {
    return io::refusal("", [&] { parse_lora_options(text); });
  };
  EXPECT_EQ(refusal("rnk=8"), "unknown setting \"rnk\"; known: alpha, dropout, rank, targets");
  EXPECT_EQ(refusal("8"), "unknown setting \"8\"; known: alpha, dropout, rank, targets");
  EXPECT_EQ(refusal("rank"), "rank: expected rank=VALUE");
  EXPECT_EQ(refusal("rank,alpha=3"), "rank: expected rank=VALUE");
  EXPECT_EQ(refusal("rank=2.5"), "rank=2.5: expected a whole number from 1 to 65536");
  EXPECT_EQ(refusal("alpha=big"), "alpha=\"big\": expected a number");
  EXPECT_EQ(refusal("targets="), "targets: expected a pattern of the linears to adapt");
}

// The base model without its heads' weights, as after pretraining.
State headless_weights() {
  State weights = io::tiny_weights();
  std::erase_if(weights, [](const auto& entry) {
    return entry.first.starts_with("classifier") || entry.first.starts_with("bert.pooler");
  });
  return weights;
}

data::Dataset opinions() {
  data::Dataset dataset;
  dataset.label_names = {"0", "1"};
  for (int i = 0; i < 16; ++i)
    dataset.examples.push_back({i % 2 == 1 ? "a fine film" : "the poor plot .", i % 2});
  return dataset;
}

class LoraOnBert : public testing::TestWithParam<const char*> {
 protected:
  io::Model load() const { return io::load_model(directory_, {.task = "classify"}); }
  Tensor logits(const io::Model& model) const {
    Feed feed;
    feed["input_ids"] = Tensor::from<std::int32_t>({2, 5}, {2, 5, 8, 7, 3, 2, 6, 9, 3, 0});
    feed["attention_mask"] = Tensor::from<std::int32_t>({2, 5}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 0});
    feed["labels"] = Tensor::from<std::int32_t>({2}, {1, 0});
    for (auto entry = feed.begin(); entry != feed.end();)
      entry = model.graph.find(entry->first) ? std::next(entry) : feed.erase(entry);
    return engine::make_executor(model.graph, model.state, {.device = GetParam()})
        ->run(feed)
        .at("logits");
  }
  // Trains for two epochs with LoRA beside every linear of the encoder.
  train::TrainOutcome train(io::Model model) const {
    train::TrainOptions options;
    options.execution.device = GetParam();
    options.trainer.epochs = 2;
    options.trainer.batch_examples = 8;
    options.trainer.learning_rate = 1e-2;
    options.graph.train_only = lora_parameters(model.graph, fresh_head(model));
    return train::train_model(std::move(model), opinions(), {}, options);
  }

  io::ScratchDirectory scratch_;
  std::string directory_ = io::write_tiny_bert(scratch_, "m", headless_weights());
};

TEST_P(LoraOnBert, StartsWithTheBaseModelsOutputsBitForBit) {
  io::Model model = load();
  const Tensor before = logits(model);
  EXPECT_EQ(insert_lora(model.graph, model.state, {.dropout = 0.1}, 3), 6);
  EXPECT_TRUE(identical(logits(model), before));
}

TEST_P(LoraOnBert, TrainsItsPathsAndTheFreshHeadAlone) {
  io::Model before = load();
  insert_lora(before.graph, before.state, {.rank = 2, .dropout = 0.1}, 3);
  const State after = train(before).model.state;
  ASSERT_EQ(after.size(), before.state.size());
  for (const auto& [name, tensor] : before.state) {
    const bool is_trained = name.find("lora_") != name.npos || name.starts_with("bert.pooler") ||
                            name.starts_with("classifier");
    EXPECT_EQ(!identical(after.at(name), tensor), is_trained) << name;
  }
}

// Two roundings of weights near 1 against sums of 16 terms: a few times 1e-7 a layer.
TEST_P(LoraOnBert, FusesIntoTheOriginalGraphWithTheSameLogits) {
  io::Model model = load();
  const std::string original = print(model.graph);
  insert_lora(model.graph, model.state, {.rank = 2, .dropout = 0.1}, 3);
  io::Model trained = train(model).model;
  const Tensor with_paths = logits(trained);
  EXPECT_EQ(fuse_lora(trained.graph, trained.state), 6);
  EXPECT_EQ(print(trained.graph), original);
  const Tensor fused = logits(trained);
  double moved = 0;
  const Tensor base = logits(load());
  for (std::int64_t i = 0; i < fused.num_elements(); ++i) {
    EXPECT_NEAR(fused.at(i), with_paths.at(i), 1e-5);
    moved += std::fabs(fused.at(i) - base.at(i));
  }
  EXPECT_GT(moved, 1e-3);
}

TEST_P(LoraOnBert, SurvivesACheckpoint) {
  io::Model model = load();
  insert_lora(model.graph, model.state, {.rank = 2}, 3);
  const io::Model trained = train(model).model;
  io::write_checkpoint(scratch_ / "out", trained);
  const io::Model read = io::load_model((scratch_ / "out").string());
  EXPECT_EQ(find_lora(read.graph).size(), 6u);
  EXPECT_TRUE(identical(logits(read), logits(trained)));
}

// A real model fuses activations and additions into other kernels with the paths than without.
TEST_P(LoraOnBert, StartsBitForBitFromARealModelPaddedAndPacked) {
  const std::filesystem::path directory =
      std::filesystem::path(LATHE_SHARED_DIR) / "data/bert-tiny-imdb-mlm";
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << directory << " is not there";
  io::Model model = io::load_model(directory.string(), {.task = "classify"});
  const data::Batch batch{.ids = {2, 1996, 2143, 2001, 2986, 3, 2, 3532, 5436, 3},
                          .offsets = {0, 6, 10},
                          .labels = {1, 0},
                          .example_indices = {0, 1}};
  const auto answer = [&](bool is_padded) {
    train::ClassifierOptions options;
    options.execution.device = GetParam();
    options.allows_fresh = true;
    options.is_padded = is_padded;
    train::TextFeeding feeding;
    if (is_padded) feeding.padding_id = 0;
    return train::Classifier(model, options).logits(train::evaluation_feed(batch, feeding));
  };
  const Tensor padded = answer(true), packed = answer(false);
  EXPECT_EQ(insert_lora(model.graph, model.state, {}, 3), 12);
  EXPECT_TRUE(identical(answer(true), padded));
  EXPECT_TRUE(identical(answer(false), packed));
}

INSTANTIATE_TEST_SUITE_P(Executors, LoraOnBert, testing::Values("reference", "cpu"));

TEST(LoraPasses, FuseWhatTheyInserted) {
  Graph graph = parse_graph(kTwoLinears);
  State state = models::initialize(graph, 1);
  PassContext context{.options = {{"targets", std::string(".")}}, .state = &state};
  EXPECT_EQ(run_pass("insert-lora", graph, context).changed, 2);
  context.options = {};
  EXPECT_EQ(run_pass("fuse-lora", graph, context).changed, 2);
  EXPECT_EQ(print(graph), kTwoLinears);
}

TEST(TrainedParameters, AreCountedByModule) {
  Graph graph = parse_graph(kTwoLinears);
  State state = models::initialize(graph, 1);
  insert_lora(graph, state, {.rank = 2, .targets = {"up"}}, 1);
  const std::vector<std::string> trained = lora_parameters(graph, {"down.weight"});
  EXPECT_THAT(trained, ElementsAre("up.lora_A.weight", "up.lora_B.weight", "down.weight"));
  const std::vector<ModuleParameters> modules = count_parameters(graph, trained);
  ASSERT_EQ(modules.size(), 2u);
  EXPECT_EQ(modules[0].module, "up");
  EXPECT_EQ(modules[0].trained, 14);
  EXPECT_EQ(modules[0].frozen, 15);
  EXPECT_EQ(modules[1].module, "down");
  EXPECT_EQ(modules[1].trained, 6);
  EXPECT_EQ(modules[1].frozen, 0);
}

TEST(TrainedParameters, OfAFreshModelAreItsHeadsAlone) {
  const io::Model model = io::load_model("bert-tiny", {.task = "classify"});
  EXPECT_THAT(fresh_head(model), ElementsAre("bert.pooler.dense.bias", "bert.pooler.dense.weight",
                                             "classifier.bias", "classifier.weight"));
}

TEST(TrainedParameters, AreThoseWhoseMomentsARunLeft) {
  const io::ScratchDirectory scratch;
  const io::Model model = io::load_model(io::write_tiny_bert(scratch, "m"), {.task = "classify"});
  for (const train::OptimizerKind optimizer :
       {train::OptimizerKind::AdamW, train::OptimizerKind::Sgd}) {
    State left = model.state, all = model.state;
    train::make_training_graph(
        model, {.optimizer = optimizer, .train_only = {"classifier.bias", "classifier.weight"}},
        left);
    const Graph graph = train::make_training_graph(model, {.optimizer = optimizer}, all).graph;
    EXPECT_THAT(parameters_with_moments(graph, left),
                ElementsAre("classifier.bias", "classifier.weight"));
    EXPECT_THAT(parameters_with_moments(graph, model.state), IsEmpty());
  }
}

}  // namespace
}  // namespace lathe::compress
