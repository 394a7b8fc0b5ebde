#include "lathe/generate/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/pass.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/engine/testing/cuda_gpu.h"
#include "lathe/generate/add_cache.h"
#include "lathe/models/set_inputs.h"

namespace lathe::generate {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// Weights large enough that the next token depends on all that came before it.
io::Model small(const std::string& family) {
  const bool is_gpt2 = family == "gpt2";
  Attributes config{{"vocab_size", std::int64_t{50}}, {"initializer_range", 0.15}};
  config[is_gpt2 ? "n_positions" : "max_position_embeddings"] = std::int64_t{40};
  io::Model model = io::load_model(family + "-tiny", {.task = "causal-lm", .config = config});
  model.fresh.clear();
  return model;
}

// All logits of whole sequences, by the graph without a cache.
Tensor whole_logits(const io::Model& model, const Tokens& tokens, const char* device) {
  Graph graph = model.graph;
  models::set_inputs(graph, *model.family, models::find_task(*model.family, "causal-lm"),
                     {"input_ids"});
  const Tensor ids =
      Tensor::from<std::int32_t>({1, std::ssize(tokens)}, std::span<const std::int32_t>(tokens));
  return engine::make_executor(graph, model.state, {.device = device})
      ->run({{"input_ids", ids}})
      .at("logits");
}

class EveryDecoder : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

// The numbers are sums of up to 512 products of floats of size 1, added in another order: some
// 2^-24 * sqrt(512) of the largest, which is below 20, in each of four layers' parts.
TEST_P(EveryDecoder, GivesInPartsWhatItGivesAtOnce) {
  const auto [family, device] = GetParam();
  if (std::string_view(device) == "cuda") {
    LATHE_NEEDS_GPU();
  }
  const io::Model model = small(family);
  Tokens tokens;
  for (int i = 0; i < 23; ++i) tokens.push_back(i * i * 7 % 50);
  const Tensor whole = whole_logits(model, tokens, device);

  Graph graph = model.graph;
  models::set_inputs(graph, *model.family, models::find_task(*model.family, "causal-lm"),
                     {"input_ids", "attention_mask"});
  graph = with_cache(graph, 64);
  State state = model.state;
  state.merge(empty_caches(graph));
  const auto executor = engine::make_executor(graph, state, {.device = device});
  const auto tensor = [](Tokens values) {
    return Tensor::from<std::int32_t>({std::ssize(values)}, std::span<const std::int32_t>(values));
  };
  // The same sequence twice, at other places of the caches; the second one is a part behind.
  std::int32_t done = 0;
  for (const std::int32_t part : {9, 1, 1, 6, 2, 1, 3}) {
    Tokens both, positions;
    for (const std::int32_t from : {done, done})
      for (std::int32_t i = 0; i < part; ++i) {
        both.push_back(tokens[static_cast<std::size_t>(from + i)]);
        positions.push_back(from + i);
      }
    const Tensor logits = executor
                              ->run({{"input_ids", tensor(both)},
                                     {"offsets", tensor({0, part, 2 * part})},
                                     {kPositions, tensor(positions)},
                                     {kStarts, tensor({30, 2})},
                                     {kLengths, tensor({done, done})}})
                              .at("logits");
    done += part;
    ASSERT_THAT(logits.dims(), ElementsAre(2, 50));
    for (std::int64_t row = 0; row < 2; ++row)
      for (std::int64_t i = 0; i < 50; ++i)
        ASSERT_NEAR(logits.at(row * 50 + i), whole.at((done - 1) * 50 + i), 1e-5)
            << "after " << done << " tokens, sequence " << row;
  }
}

TEST_P(EveryDecoder, ContinuesGreedilyWithTheLikeliestToken) {
  const auto [family, device] = GetParam();
  if (std::string_view(device) == "cuda") {
    LATHE_NEEDS_GPU();
  }
  const io::Model model = small(family);
  Generator generator(model, {.device = device});
  const std::vector<Tokens> prompts{{3, 1, 4, 1, 5, 9, 2, 6}, {7}, {11, 12, 13}};
  const std::vector<Continuation> results = generator.run(prompts, {.max_new_tokens = 12});
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    Tokens tokens = prompts[i];
    for (const std::int32_t token : results[i].tokens) {
      const Tensor logits = whole_logits(model, tokens, device);
      const auto last = logits.data<float>().last(50);
      ASSERT_EQ(token, std::max_element(last.begin(), last.end()) - last.begin())
          << "prompt " << i << " after " << tokens.size();
      tokens.push_back(token);
    }
    EXPECT_THAT(results[i].tokens, SizeIs(12));
  }
}

// Weights that are finite may be too large for what they are multiplied with.
TEST_P(EveryDecoder, RefusesLogitsThatAreNotNumbers) {
  const auto [family, device] = GetParam();
  if (std::string_view(device) == "cuda") {
    LATHE_NEEDS_GPU();
  }
  io::Model model = small(family);
  for (auto& [name, tensor] : model.state)
    if (name.find("mlp.") != name.npos && name.ends_with(".weight"))
      std::ranges::fill(tensor.mutable_data<float>(), 3e38f);
  Generator generator(model, {.device = device});
  for (const double temperature : {0.0, 1.0})
    EXPECT_EQ(
        error_text([&] {
          generator.run(std::vector<Tokens>{{3, 1, 4}}, {.sampling = {.temperature = temperature}});
        }),
        "the logits behind 3 tokens of prompt 0 are not finite: expected a model "
        "whose weights do not overflow");
}

// A single sequence, whose tokens come one by one: kernels of their own.
TEST_P(EveryDecoder, ContinuesAPromptAlone) {
  const auto [family, device] = GetParam();
  if (std::string_view(device) == "cuda") {
    LATHE_NEEDS_GPU();
  }
  const io::Model model = small(family);
  Generator generator(model, {.device = device});
  const std::vector<Tokens> prompts{{3, 1, 4, 1, 5, 9, 2, 6}};
  const Tokens found = generator.run(prompts, {.max_new_tokens = 12})[0].tokens;
  EXPECT_EQ(
      found,
      Generator(model, {.device = "reference"}).run(prompts, {.max_new_tokens = 12})[0].tokens);
  // The likeliest of one is drawn from the logits themselves.
  EXPECT_EQ(
      found,
      generator.run(prompts, {.max_new_tokens = 12, .sampling = {.temperature = 1, .top_k = 1}})[0]
          .tokens);
}

// Side by side and alone: what is rounded when it is kept is rounded alike.
TEST_P(EveryDecoder, ContinuesWithARoundedCacheAsTheReferenceDoes) {
  const auto [family, device] = GetParam();
  if (std::string_view(device) == "cuda") {
    LATHE_NEEDS_GPU();
  }
  const io::Model model = small(family);
  for (const CacheFormat format : {CacheFormat::Bf16, CacheFormat::Int8}) {
    Generator generator(model, {.device = device}, format);
    Generator reference(model, {.device = "reference"}, format);
    for (const std::vector<Tokens>& prompts :
         {std::vector<Tokens>{{3, 1, 4, 1, 5, 9, 2, 6}, {7}, {11, 12, 13}},
          std::vector<Tokens>{{3, 1, 4, 1, 5, 9, 2, 6}}}) {
      const std::vector<Continuation> found = generator.run(prompts, {.max_new_tokens = 12});
      const std::vector<Continuation> expected = reference.run(prompts, {.max_new_tokens = 12});
      for (std::size_t i = 0; i < prompts.size(); ++i)
        EXPECT_EQ(found[i].tokens, expected[i].tokens) << name(format) << ", prompt " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryExecutor, EveryDecoder,
                         testing::Combine(testing::Values("gpt2", "llama"),
                                          testing::Values("reference", "cpu", "cuda")));

TEST(Generator, GivesEachPromptWhatItWouldGiveItAlone) {
  const io::Model model = small("llama");
  Generator generator(model, {});
  const std::vector<Tokens> prompts{{3, 1, 4, 1, 5, 9, 2, 6}, {7}, {11, 12, 13}};
  const GenerateOptions options{.max_new_tokens = 10,
                                .sampling = {.temperature = 0.9, .top_k = 20, .seed = 5}};
  const std::vector<Continuation> together = generator.run(prompts, options);
  // The number of a prompt is part of what is drawn, so the others are there, but short.
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    std::vector<Tokens> others(prompts.size(), Tokens{1});
    others[i] = prompts[i];
    EXPECT_EQ(generator.run(others, options)[i].tokens, together[i].tokens);
  }
  GenerateOptions in_parts = options;
  in_parts.batch_tokens = 3;
  const std::vector<Continuation> slowly = generator.run(prompts, in_parts);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(slowly[i].tokens, together[i].tokens) << i;
}

// Two layers of two heads of keys of 32 features; the last token is chosen and never kept.
TEST(Generator, SaysWhatTheCacheOfAPromptTakes) {
  const io::Model model = small("llama");
  const std::vector<Tokens> prompts{{3, 1, 4}, {7}};
  const auto bytes = [&](CacheFormat format) {
    return Generator(model, {}, format).run(prompts, {.max_new_tokens = 5})[0].cache_bytes;
  };
  const std::int64_t tokens = 3 + 5 - 1, rows = tokens * 2 * 2;  // of keys and of values
  EXPECT_EQ(bytes(CacheFormat::Float32), rows * 2 * 32 * 4);
  EXPECT_EQ(bytes(CacheFormat::Bf16), rows * 2 * 32 * 2);
  EXPECT_EQ(bytes(CacheFormat::Int8), rows * 2 * (32 + 4));
}

TEST(CacheFormat, IsNamed) {
  for (const char* const text : {"float32", "bf16", "int:8"})
    EXPECT_EQ(name(parse_cache_format(text)), text);
  EXPECT_EQ(error_text([] { parse_cache_format("int:4"); }),
            "cache int:4: expected float32, bf16 or int:8");
}

TEST(Generator, EndsAtItsLimitItsPositionsOrAnEndToken) {
  const io::Model model = small("gpt2");
  Generator generator(model, {});
  const std::vector<Tokens> prompt{Tokens(38, 4)};
  const Continuation full = generator.run(prompt, {.max_new_tokens = 10})[0];
  EXPECT_EQ(name(full.end), "positions");
  EXPECT_THAT(full.tokens, SizeIs(3));  // at 38 and 39, and the one behind them
  EXPECT_EQ(name(generator.run(prompt, {.max_new_tokens = 2})[0].end), "limit");
  const Continuation ended =
      generator.run(prompt, {.max_new_tokens = 10, .end_ids = {full.tokens[0]}})[0];
  EXPECT_EQ(name(ended.end), "end");
  EXPECT_THAT(ended.tokens, ElementsAre(full.tokens[0]));
}

TEST(Generator, GivesWhatIsThereWhenAskedToStop) {
  Generator generator(small("gpt2"), {});
  int runs = 0;
  Tokens heard;
  const Continuation result = generator.run(
      std::vector<Tokens>{{1, 2}}, {}, [&](std::size_t, std::int32_t id) { heard.push_back(id); },
      [&] { return ++runs > 4; })[0];
  EXPECT_EQ(name(result.end), "stopped");
  EXPECT_THAT(result.tokens, SizeIs(4));
  EXPECT_EQ(heard, result.tokens);
}

TEST(Generator, RefusesWhatItCannotContinue) {
  Generator generator(small("gpt2"), {});
  const auto refusal = [&](const Tokens& prompt) {
    return error_text([&] { generator.run(std::vector<Tokens>{prompt}, {}); });
  };
  EXPECT_EQ(refusal({}), "no tokens in prompt 0");
  EXPECT_EQ(refusal({1, 50}), "id 50 in prompt 0: expected 0 to 49");
  EXPECT_EQ(refusal({-1}), "id -1 in prompt 0: expected 0 to 49");
  EXPECT_EQ(refusal(Tokens(41, 1)), "41 tokens in prompt 0, but the model reads 40 at most");
  EXPECT_EQ(error_text([] { Generator(io::load_model("bert-tiny", {.task = "classify"}), {}); }),
            "the model is for classify: expected a causal language model");
}

TEST(WithCache, RefusesAttentionThatLooksAhead) {
  const io::Model model =
      io::load_model("bert-tiny", {.task = "mlm", .inputs = {"input_ids", "attention_mask"}});
  EXPECT_EQ(error_text([&] { with_cache(model.graph, 8); }),
            "node \"bert.encoder.layer.0.attention.self.attention\" looks ahead: expected "
            "attention that is causal");
}

}  // namespace
}  // namespace lathe::generate
