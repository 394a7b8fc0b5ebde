#include "lathe/compress/low_rank/low_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/insert_quantizers.h"
#include "lathe/compress/lora.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/compress/pruning/insert_masks.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/engine/executor.h"
#include "lathe/io/testing/tiny_bert.h"

namespace lathe::compress {
namespace {

constexpr double kUnit = 0x1p-24;  // half a unit in the last place of a float

Tensor random_tensor(std::vector<std::int64_t> dims, unsigned seed) {
  std::mt19937 random(seed);
  Tensor tensor(DType::F32, std::move(dims));
  for (float& value : tensor.mutable_data<float>())
    value = static_cast<float>(random() % 2000) / 1000 - 1;
  return tensor;
}

State random_state(const Graph& graph) {
  State state;
  unsigned seed = 1;
  for (const NodeId id : graph.nodes_of("state"))
    state[graph.name(id)] = random_tensor(graph.types(id)[0].dims({}), seed++);
  return state;
}

Graph one_linear() {
  return parse_graph(R"(
    x = input() : f32[B,10]
    m.weight = state() {init="normal", scale=0.02} : f32[12,10]
    m.bias = state() : f32[12]
    m = linear(x, m.weight, m.bias)
    output y <- m
  )");
}

TEST(FactorizeWeights, MakesALinearTwo) {
  Graph graph = one_linear();
  State state = random_state(graph);
  const LowRankReport report = factorize_weights(graph, state, {.targets = {"m"}, .rank = 3});
  EXPECT_EQ(print(graph), print(parse_graph(R"(
    x = input() : f32[B,10]
    m.weight = state() {init="normal", scale=0.02} : f32[12,3]
    m.low_rank.weight = state() {init="normal", scale=0.02} : f32[3,10]
    m.bias = state() : f32[12]
    m/low_rank = linear(x, m.low_rank.weight)
    m = linear(m/low_rank, m.weight, m.bias)
    output y <- m
  )")));
  ASSERT_EQ(report.weights.size(), 1u);
  EXPECT_EQ(report.weights[0].state, "m.weight");
  EXPECT_EQ(report.weights[0].factor, "m.low_rank.weight");
  EXPECT_EQ(report.weights[0].readers, std::vector<std::string>{"m"});
  EXPECT_EQ(report.weights[0].rank, 3);
  // Errors count alike, so what is lost of the energy is the square of the error; floats add a few
  // roundings.
  EXPECT_NEAR(std::pow(report.weights[0].error, 2), 1 - report.weights[0].energy, 16 * kUnit);
  EXPECT_EQ(report.parameters_before, 12 * 10 + 12);
  EXPECT_EQ(report.parameters_after, 3 * (12 + 10) + 12);
}

// A weight that is a product of rank 3 is found to be one: L and R are rounded once each and what
// they add up to again. The sum of their columns' lengths is at most sqrt(3) |W|.
TEST(FactorizeWeights, FindsTheRankOfAProduct) {
  Graph graph = one_linear();
  State state = random_state(graph);
  const Tensor left = random_tensor({12, 3}, 7), right = random_tensor({3, 10}, 8);
  for (std::int64_t i = 0; i < 12; ++i)
    for (std::int64_t j = 0; j < 10; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < 3; ++p) sum += left.at(i * 3 + p) * right.at(p * 10 + j);
      state.at("m.weight").mutable_data<float>()[static_cast<std::size_t>(i * 10 + j)] =
          static_cast<float>(sum);
    }
  // Rounding the product left an energy of about the square of a unit outside of rank 3.
  const LowRankReport report =
      factorize_weights(graph, state, {.targets = {"m"}, .energy = 1 - 1e-12});
  EXPECT_EQ(report.weights.at(0).rank, 3);
  EXPECT_LT(report.weights[0].error, (2 * std::sqrt(3.0) + 2) * kUnit);
}

// The factorised graph against the product of its factors as one weight: the narrow values z are
// rounded to floats, the product's elements and both results too.
void expect_product_in_one(const std::string& device) {
  Graph graph = one_linear();
  State state = random_state(graph);
  factorize_weights(graph, state, {.targets = {"m"}, .share = 0.6});
  EXPECT_EQ(state.at("m.weight").dim(1), 3);  // 0.6 * 120 / 22
  const Tensor x = random_tensor({4, 10}, 9);
  const Tensor y = engine::make_executor(graph, state, {.device = device})->run({{"x", x}}).at("y");
  const Tensor &left = state.at("m.weight"), &right = state.at("m.low_rank.weight");
  for (std::int64_t b = 0; b < 4; ++b)
    for (std::int64_t i = 0; i < 12; ++i) {
      double exact = state.at("m.bias").at(i), size = std::fabs(exact);
      for (std::int64_t p = 0; p < 3; ++p)
        for (std::int64_t j = 0; j < 10; ++j) {
          const double term = left.at(i * 3 + p) * right.at(p * 10 + j) * x.at(b * 10 + j);
          exact += term;
          size += std::fabs(term);
        }
      // Sums of 10 and of 4 terms in floats, at the most.
      EXPECT_NEAR(y.at(b * 12 + i), exact, (10 + 4 + 2) * kUnit * size);
    }
}
TEST(FactorizeWeights, ComputesTheProduct) {
  expect_product_in_one("reference");
  expect_product_in_one("cpu");
}

TEST(FactorizeWeights, KeepsTheLayoutOfAProduct) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,10]
    w = state() : f32[10,12]
    y = matmul(x, w)
    output y <- y
  )");
  State state = random_state(graph);
  const Tensor before = state.at("w");
  factorize_weights(graph, state, {.targets = {"y"}, .rank = 4});
  EXPECT_EQ(state.at("w").dims(), (std::vector<std::int64_t>{4, 12}));
  EXPECT_EQ(state.at("w.low_rank.weight").dims(), (std::vector<std::int64_t>{10, 4}));
  // The best product of rank 4 explains most of the weight.
  double error = 0, norm = 0;
  for (std::int64_t i = 0; i < 10; ++i)
    for (std::int64_t j = 0; j < 12; ++j) {
      double value = 0;
      for (std::int64_t p = 0; p < 4; ++p)
        value += state.at("w.low_rank.weight").at(i * 4 + p) * state.at("w").at(p * 12 + j);
      error += std::pow(before.at(i * 12 + j) - value, 2);
      norm += std::pow(before.at(i * 12 + j), 2);
    }
  EXPECT_LT(error, norm * 6 / 10);  // at least the share of 4 of 10 directions
}

TEST(FactorizeWeights, PutsALinearBehindALookup) {
  Graph graph = parse_graph(R"(
    ids = input() : i32[B]
    t.weight = state() : f32[20,10]
    t = embedding(ids, t.weight)
    y = relu(t)
    output y <- y
  )");
  State state = random_state(graph);
  factorize_weights(graph, state, {.targets = {"t"}, .rank = 3});
  EXPECT_EQ(print(graph), print(parse_graph(R"(
    ids = input() : i32[B]
    t.weight = state() : f32[20,3]
    t.low_rank.weight = state() : f32[10,3]
    t = embedding(ids, t.weight)
    t/low_rank = linear(t, t.low_rank.weight)
    y = relu(t/low_rank)
    output y <- y
  )")));
}

// Rows that are looked up often are kept better than others.
TEST(FactorizeWeights, WeighsRowsByLookups) {
  Graph graph = parse_graph(R"(
    ids = input() : i32[B]
    t = state() : f32[20,10]
    y = embedding(ids, t)
    output y <- y
  )");
  const State state = random_state(graph);
  const auto error_of_first_rows = [&](const LowRankEvidence& evidence) {
    Graph changed = graph;
    State values = state;
    factorize_weights(changed, values, {.targets = {"y"}, .rank = 5}, evidence);
    double error = 0;
    for (std::int64_t i = 0; i < 5; ++i)
      for (std::int64_t j = 0; j < 10; ++j) {
        double value = 0;
        for (std::int64_t p = 0; p < 5; ++p)
          value += values.at("t").at(i * 5 + p) * values.at("t.low_rank.weight").at(j * 5 + p);
        error += std::pow(state.at("t").at(i * 10 + j) - value, 2);
      }
    return error;
  };
  std::vector<std::int64_t> counts(20, 0);
  for (std::size_t i = 0; i < 5; ++i) counts[i] = 1'000'000;
  // Five rows span five directions: with nearly all the weight they are kept nearly whole.
  EXPECT_LT(error_of_first_rows({.lookups = {{"t", counts}}}), 1e-3 * error_of_first_rows({}));
  EXPECT_EQ(error_text([&] {
              error_of_first_rows({.lookups = {{"t", {1, 2}}}});
            }),
            "lookups of 2 rows of \"t\", which has 20");
}

// Inputs that lie in four directions need a weight of rank four, whatever else it holds.
TEST(FactorizeWeights, WeighsErrorsByWhatLayersRead) {
  Graph graph = one_linear();
  State state = random_state(graph);
  InputProducts products{{"m", std::vector<double>(100, 0.0)}};
  for (std::size_t i = 0; i < 4; ++i) products.at("m")[i * 10 + i] = 1;
  const std::vector<LowRankWeight> plain = measure_low_rank(graph, state, {"m"});
  const std::vector<LowRankWeight> aware =
      measure_low_rank(graph, state, {"m"}, {.products = products});
  ASSERT_EQ(aware.size(), 1u);
  EXPECT_EQ(aware[0].rows, 12);
  EXPECT_EQ(aware[0].num_elements(4), 4 * 22);
  // A hundredth of the mean counts in the six directions that were never seen.
  EXPECT_LT(aware[0].loss(4), 0.02);
  EXPECT_GT(plain[0].loss(4), 0.1);
}

std::vector<std::string> notes_of(Graph graph, State state, const std::string& target,
                                  std::int64_t rank = 2) {
  const std::string text = print(graph);
  const LowRankReport report = factorize_weights(graph, state, {.targets = {target}, .rank = rank});
  EXPECT_TRUE(report.weights.empty());
  EXPECT_EQ(print(graph), text);
  return report.notes;
}

TEST(FactorizeWeights, NamesWhatItLeaves) {
  const Graph plain = one_linear();
  const State values = random_state(plain);
  using Notes = std::vector<std::string>;
  EXPECT_EQ(notes_of(plain, values, "m", 6),
            Notes{"\"m\" is not factorised: at rank 6 it would have 132 numbers instead of 120"});
  {
    Graph graph = plain;
    State state = values;
    Tensor mask = state.at("m.weight");
    std::ranges::fill(mask.mutable_data<float>(), 1.0f);
    insert_masks(graph, state, {{"m.weight", mask}});
    EXPECT_EQ(
        notes_of(graph, state, "m"),
        Notes{"\"m\" is not factorised: its weight is computed by \"m.weight/masked\" (mul)"});
  }
  {
    io::Model model{.graph = plain, .state = values};
    insert_quantizers(model.graph, model.state,
                      {{.by = QuantizationRule::By::Type,
                        .match = "linear",
                        .formats = {{TensorRole::Weights, "int:8"}}}});
    set_parameter_scales(model.graph, model.state, {});
    EXPECT_EQ(notes_of(model.graph, model.state, "m").at(0).substr(0, 56),
              "\"m\" is not factorised: its weight is computed by \"m.weig");
    pack_model(model);
    EXPECT_NE(notes_of(model.graph, model.state, "m").at(0).find("(decode)"), std::string::npos);
  }
  {
    Graph graph = plain;
    State state = values;
    insert_lora(graph, state, {.rank = 2, .targets = {"m"}}, 1);
    EXPECT_EQ(
        notes_of(graph, state, "m"),
        Notes{"\"m\" is not factorised: \"m\" has a LoRA path beside it, which is to be fused "
              "first"});
  }
  {
    Graph graph = plain;
    graph.set_output("w", {graph.at("m.weight"), 0});
    EXPECT_EQ(notes_of(graph, values, "m"),
              Notes{"\"m\" is not factorised: its weight \"m.weight\" is also read by others"});
  }
}

TEST(FactorizeWeights, RefusesOptionsThatSayNothing) {
  Graph graph = one_linear();
  State state = random_state(graph);
  const auto refusal = [&](const LowRankOptions& options) {
    return error_text([&] { factorize_weights(graph, state, options); });
  };
  EXPECT_EQ(refusal({.targets = {"m"}}), "expected one of rank, energy and share");
  EXPECT_EQ(refusal({.targets = {"m"}, .rank = 2, .share = 0.5}),
            "expected one of rank, energy and share");
  EXPECT_EQ(refusal({.targets = {"m"}, .rank = -1}), "rank -1: expected 1 or more");
  EXPECT_EQ(refusal({.targets = {"m"}, .energy = 1.5}), "energy 1.5: expected above 0 and up to 1");
  EXPECT_EQ(refusal({.targets = {"m"}, .share = 1}), "share 1: expected above 0 and below 1");
  EXPECT_EQ(refusal({.targets = {"q"}, .rank = 2}),
            "targets \"q\": no layer or lookup of the model matches it\n"
            "hint: they have names such as \"m\"");
}

TEST(FactorizeWeights, IsAPass) {
  Graph graph = one_linear();
  State state = random_state(graph);
  PassContext context{.options = {{"targets", std::string("m")}, {"rank", std::int64_t{2}}},
                      .state = &state};
  const PassResult result = run_pass("factorize-weights", graph, context);
  EXPECT_EQ(result.changed, 1);
  EXPECT_EQ(result.report.substr(0, 27), "m.weight: 12x10 at rank 2, ");
}

// A BERT for masked language modelling, whose table is its last layer too, or is not.
io::Model small_model(const std::string& task, bool is_tied = true) {
  io::Model model = io::load_model("bert-tiny", {.task = task,
                                                 .inputs = {"input_ids"},
                                                 .config = {{"vocab_size", std::int64_t{40}},
                                                            {"hidden_size", std::int64_t{16}},
                                                            {"tie_word_embeddings", is_tied}}});
  unsigned seed = 1;
  for (auto& [name, tensor] : model.state) tensor = random_tensor(tensor.dims(), seed++);
  model.fresh.clear();
  return model;
}

Tensor answer(const io::Model& model, const std::string& device = "reference") {
  return engine::make_executor(model.graph, model.state, {.device = device})
      ->run({{"input_ids", Tensor::from<std::int32_t>({2, 3}, {5, 3, 39, 0, 17, 17})}})
      .at("logits");
}

// A row of the product is what the linear behind the lookup gives: the same sum of doubles in the
// same order, rounded once. So whole models give the same bits.
TEST(FactorizeWeights, OfATableGivesTheSameAnswersAsItsProduct) {
  io::Model model = small_model("classify");
  const std::string text = print(model.graph);
  const LowRankReport report =
      factorize_weights(model, {.targets = {"word_embeddings"}, .rank = 6});
  EXPECT_EQ(report.weights.size(), 1u);
  const Tensor before = answer(model);
  const io::ScratchDirectory scratch;
  io::write_checkpoint(scratch / "c", model);
  io::Model loaded = io::load_model((scratch / "c").string());
  EXPECT_TRUE(identical(answer(loaded), before));
  EXPECT_EQ(error_text([&] { io::write_huggingface(scratch / "h", loaded); }).substr(0, 20),
            (scratch / "c").string().substr(0, 20));
  EXPECT_EQ(multiply_factors(loaded), 1);
  EXPECT_EQ(print(loaded.graph), text);
  EXPECT_TRUE(identical(answer(loaded), before));
  io::write_huggingface(scratch / "h", loaded);
  EXPECT_TRUE(identical(answer(io::load_model((scratch / "h").string(), {.inputs = {"input_ids"}})),
                        before));
}

TEST(FactorizeWeights, OfAllLayersCanBeMultipliedAgain) {
  for (const bool is_tied : {true, false}) {
    io::Model model = small_model("mlm", is_tied);
    const io::Model original = model;
    const LowRankReport report = factorize_weights(model, {.targets = {"."}, .share = 0.7});
    EXPECT_GT(report.weights.size(), 12u);
    const auto states = static_cast<std::int64_t>(model.state.size());
    EXPECT_EQ(states - static_cast<std::int64_t>(original.state.size()),
              static_cast<std::int64_t>(report.weights.size()));
    EXPECT_LT(report.parameters_after, report.parameters_before);
    for (const char* device : {"reference", "cpu"})
      EXPECT_TRUE(std::isfinite(answer(model, device).at(0))) << device;
    EXPECT_EQ(multiply_factors(model), static_cast<int>(report.weights.size()));
    EXPECT_EQ(print(model.graph), print(original.graph));
    for (const FactorizedWeight& weight : report.weights) {
      double error = 0, norm = 0;
      for (std::int64_t i = 0; i < weight.rows * weight.columns; ++i) {
        const double value = original.state.at(weight.state).at(i);
        error += std::pow(value - model.state.at(weight.state).at(i), 2);
        norm += value * value;
      }
      EXPECT_DOUBLE_EQ(std::sqrt(error / norm), weight.error) << weight.state;
    }
  }
}

TEST(FactorizeWeights, CanBeRoundedAndPacked) {
  io::Model model = small_model("classify");
  factorize_weights(model, {.targets = {"word_embeddings|intermediate"}, .rank = 6});
  insert_quantizers(model.graph, model.state,
                    {{.by = QuantizationRule::By::Regex,
                      .match = ".*",
                      .formats = {{TensorRole::Weights, "int:4,channel"},
                                  {TensorRole::Embeddings, "int:4,channel"}}}});
  set_parameter_scales(model.graph, model.state, {});
  const Tensor before = answer(model);
  pack_model(model);
  EXPECT_TRUE(identical(answer(model), before));
  EXPECT_EQ(multiply_factors(model), 0);
  make_float(model.graph, model.state);
  EXPECT_EQ(multiply_factors(model), 3);  // a table, and a layer in each of two
}

TEST(FactorizeWeights, LeavesLoraPathsAndFreshStates) {
  io::Model model = small_model("classify");
  insert_lora(model.graph, model.state, {.rank = 2, .targets = {"query"}}, 1);
  const std::string text = print(model.graph);
  EXPECT_EQ(multiply_factors(model), 0);
  EXPECT_EQ(print(model.graph), text);
  model.fresh = {"bert.embeddings.word_embeddings.weight"};
  factorize_weights(model, {.targets = {"word_embeddings"}, .rank = 2});
  EXPECT_EQ(model.fresh,
            (std::vector<std::string>{"bert.embeddings.word_embeddings.weight",
                                      "bert.embeddings.word_embeddings.low_rank.weight"}));
}

}  // namespace
}  // namespace lathe::compress
