#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/core/passes/dropout.h"
#include "lathe/core/passes/profile.h"
#include "lathe/core/testing/error_text.h"
#include "lathe/models/family.h"

namespace lathe::models {
namespace {

Graph bert(const char* config, BuildOptions options) {
  return build(FamilyRegistry::instance().at("bert", "model"), parse_attributes(config), options);
}

// Two layers of four heads, small enough to print.
const char* const kSmall =
    "vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, "
    "intermediate_size=64, max_position_embeddings=16";

std::string refusal(const std::string& config) {
  return error_text([&] { bert(config.c_str(), {.task = "classify"}); });
}

TEST(Bert, HasAsManyParametersAsItsSizesSay) {
  const std::int64_t vocabulary = 30522, positions = 512, types = 2, hidden = 128, wide = 512;
  const std::int64_t norm = 2 * hidden;
  const std::int64_t embeddings = (vocabulary + positions + types) * hidden + norm;
  const std::int64_t attention = 4 * (hidden * hidden + hidden) + norm;
  const std::int64_t feed_forward = (hidden * wide + wide) + (wide * hidden + hidden) + norm;
  const std::int64_t pooler = hidden * hidden + hidden, classifier = hidden * 2 + 2;
  const std::int64_t expected = embeddings + 2 * (attention + feed_forward) + pooler + classifier;
  ASSERT_EQ(expected, 4386178);
  const NamedModel tiny = *find_named_model("bert-tiny");
  Graph graph = build(*tiny.family, tiny.config, {.task = "classify"});
  EXPECT_EQ(profile(graph).parameters, expected);
}

TEST(Bert, TiesTheDecoderOfMaskedLanguageModellingToTheEmbedding) {
  Graph graph = bert(kSmall, {.task = "mlm"});
  EXPECT_EQ(print(graph, "cls.predictions.decoder"),
            "cls.predictions.decoder = linear(cls.predictions.transform.LayerNorm, "
            "bert.embeddings.word_embeddings.weight, cls.predictions.bias) : f32[B,L,50]");
}

TEST(Bert, LooksBackOnlyAsADecoder) {
  const auto is_causal = [](const char* config, const char* task) {
    const Graph graph = bert(fmt::format("{}{}", kSmall, config).c_str(), {.task = task});
    return graph.attribute(graph.at("bert.encoder.layer.1.attention.self.attention"))
        .flag("causal");
  };
  EXPECT_FALSE(is_causal("", "mlm"));
  EXPECT_TRUE(is_causal(", is_decoder=true", "mlm"));
  EXPECT_TRUE(is_causal("", "causal-lm"));
}

TEST(Bert, TakesEveryPositionForRealWithoutAMask) {
  const Graph graph = bert(kSmall, {.task = "encode", .inputs = {"input_ids"}});
  EXPECT_EQ(print(graph, "attention_mask"),
            "attention_mask = full_like(input_ids) {value=1.0} : i32[B,L]");
  EXPECT_EQ(print(graph, "bert.embeddings.token_type_ids"),
            "bert.embeddings.token_type_ids = full_like(input_ids) {value=0.0} : i32[B,L]");
}

TEST(Bert, HasALossOnlyWhereItHasLabels) {
  EXPECT_TRUE(bert(kSmall, {.task = "classify"}).output("loss"));
  const Graph bare = bert(kSmall, {.task = "classify", .inputs = {"input_ids", "attention_mask"}});
  EXPECT_FALSE(bare.output("loss"));
  EXPECT_FALSE(bare.find("labels"));
  EXPECT_FALSE(bert(kSmall, {.task = "encode"}).output("loss"));
  EXPECT_EQ(print(bert(kSmall, {.task = "classify", .num_labels = 1}), "labels"),
            "labels = input() : f32[B,1]");
}

TEST(Bert, DropsWhereTheConfigurationSays) {
  // After the embeddings, twice a layer and before the classifier; inside each attention.
  const DropoutCount count = count_dropout(bert(kSmall, {.task = "classify"}));
  EXPECT_EQ(count.nodes, 6);
  EXPECT_EQ(count.attributes, 2);
  const Graph graph =
      bert((std::string(kSmall) + ", classifier_dropout=0.3").c_str(), {.task = "classify"});
  EXPECT_EQ(graph.attribute(graph.at("dropout")).real("rate"), 0.3);
  EXPECT_EQ(graph.attribute(graph.at("bert.embeddings.dropout")).real("rate"), 0.1);
}

TEST(Bert, GivesEveryPlaceThatDropsASiteOfItsOwn) {
  const Graph graph = bert(kSmall, {.task = "classify"});
  std::set<std::int64_t> sites;
  for (const char* op : {"dropout", "attention"})
    for (const NodeId id : graph.nodes_of(op))
      EXPECT_TRUE(sites.insert(graph.attribute(id).integer("site")).second) << graph.name(id);
}

TEST(Bert, UsesTheActivationItIsTold) {
  const auto activation = [](const char* name) {
    const Graph graph =
        bert((std::string(kSmall) + ", hidden_act=\"" + name + '"').c_str(), {.task = "encode"});
    const std::string line = print(graph, "bert.encoder.layer.0.intermediate.activation");
    return line.substr(line.find("= ") + 2, line.find('(') - line.find("= ") - 2);
  };
  EXPECT_EQ(activation("gelu"), "gelu");
  EXPECT_EQ(activation("gelu_new"), "gelu");
  EXPECT_EQ(activation("swish"), "silu");
  EXPECT_EQ(activation("relu"), "relu");
}

TEST(Bert, NormalizesBeforeItsPartsWhereItIsTold) {
  const Graph graph =
      bert((std::string(kSmall) + ", lathe_norm_place=\"pre\"").c_str(), {.task = "encode"});
  const std::string layer = "bert.encoder.layer.0.";
  const auto reads = [&](const std::string& node, std::size_t operand) {
    return graph.name(graph.input(graph.at(node), operand));
  };
  EXPECT_EQ(reads(layer + "attention.output.LayerNorm", 0), "bert.embeddings.dropout");
  EXPECT_EQ(reads(layer + "attention.self.query", 0), layer + "attention.output.LayerNorm");
  EXPECT_EQ(reads(layer + "attention.output.add", 1), "bert.embeddings.dropout");
  EXPECT_EQ(reads(layer + "output.LayerNorm", 0), layer + "attention.output.add");
  EXPECT_EQ(reads(layer + "output.add", 1), layer + "attention.output.add");
  EXPECT_EQ(reads("bert.encoder.LayerNorm", 0), "bert.encoder.layer.1.output.add");
  EXPECT_EQ(graph.name(*graph.output("last_hidden_state")), "bert.encoder.LayerNorm");
}

TEST(Bert, LeavesOutProjectionsThatAreIdentities) {
  const Graph whole = bert(kSmall, {.task = "classify"});
  const Graph graph = bert(
      (std::string(kSmall) + ", lathe_identity_projections=\"0.query,1.output,pooler\"").c_str(),
      {.task = "classify"});
  EXPECT_EQ(graph.nodes_of("linear").size() + 3, whole.nodes_of("linear").size());
  const NodeId attention = graph.at("bert.encoder.layer.0.attention.self.attention");
  EXPECT_EQ(graph.name(graph.input(attention, 0)), "bert.embeddings.dropout");
  EXPECT_EQ(graph.name(graph.input(attention, 1)), "bert.encoder.layer.0.attention.self.key");
  EXPECT_EQ(graph.name(graph.input(graph.at("bert.encoder.layer.1.attention.output.dropout"), 0)),
            "bert.encoder.layer.1.attention.self.attention");
  EXPECT_EQ(graph.name(graph.input(graph.at("bert.pooler.activation"), 0)),
            "bert.pooler.first_token");
}

TEST(Bert, RefusesConfigurationsThatNoModelCanHave) {
  EXPECT_EQ(refusal("lathe_norm_place=\"front\""),
            "unknown lathe_norm_place \"front\"; known: post, pre");
  EXPECT_EQ(
      refusal("num_hidden_layers=1, lathe_identity_projections=\"0.query,0.quary\""),
      "unknown lathe_identity_projections \"0.quary\"; known: pooler, 0.query, 0.key, 0.value, "
      "0.output\nhint: did you mean \"0.query\"?");
  EXPECT_EQ(refusal("hidden_size=30, num_attention_heads=4"),
            "hidden_size 30 is not a multiple of num_attention_heads 4");
  EXPECT_EQ(refusal("hidden_dropout_prob=1.5"),
            "dropout probability 1.5: expected 0 up to below 1");
  EXPECT_EQ(refusal("attention_probs_dropout_prob=-0.1"),
            "dropout probability -0.1: expected 0 up to below 1");
  EXPECT_EQ(refusal("hidden_act=\"gellu\""),
            "unknown hidden_act \"gellu\"; known: gelu, gelu_fast, gelu_new, gelu_pytorch_tanh, "
            "quick_gelu, relu, silu, swish, tanh\nhint: did you mean \"gelu\"?");
  EXPECT_EQ(refusal("vocab_size=0"), "vocab_size is 0: expected 1 to 16777216");
  EXPECT_EQ(refusal("num_attention_heads=0"), "num_attention_heads is 0: expected 1 to 16777216");
  EXPECT_EQ(refusal("num_hidden_layers=-1"), "num_hidden_layers is -1: expected 0 to 1024");
  EXPECT_EQ(refusal("position_embedding_type=\"relative_key\""),
            "position_embedding_type \"relative_key\" is not supported: expected \"absolute\"");
  EXPECT_EQ(error_text([] { bert(kSmall, {.task = "classify", .num_labels = 0}); }),
            "the number of labels is 0: expected 1 or more");
  EXPECT_EQ(error_text([] { bert(kSmall, {.task = "encode", .inputs = {"attention_mask"}}); }),
            "bert needs the input input_ids");
}

TEST(PackSequences, TurnsBertIntoARunOfTokens) {
  for (const char* task : {"classify", "mlm", "encode"}) {
    SCOPED_TRACE(task);
    Graph graph = bert(kSmall, {.task = task});
    EXPECT_EQ(run_pass("pack-sequences", graph), 1);
    EXPECT_EQ(print(graph, "input_ids"), "input_ids = input() : i32[T]");
    EXPECT_EQ(print(graph, "offsets"), "offsets = input() : i32[S+1]");
    EXPECT_FALSE(graph.find("attention_mask"));
    EXPECT_EQ(graph.symbols(), (std::set<std::string>{"S", "T"}));
    EXPECT_EQ(to_text(graph.type({graph.at("bert.encoder.layer.1.output.LayerNorm"), 0})),
              "f32[T,32]");
    const NodeId attention = graph.at("bert.encoder.layer.0.attention.self.attention");
    EXPECT_EQ(graph.name(graph.input(attention, 4)), "offsets");
    EXPECT_TRUE(graph.input(attention, 3).is_none());
    EXPECT_EQ(run_pass("pack-sequences", graph), 0);
  }
  Graph graph = bert(kSmall, {.task = "classify"});
  run_pass("pack-sequences", graph);
  EXPECT_EQ(to_text(graph.type(*graph.output("logits"))), "f32[S,2]");
  EXPECT_EQ(print(graph, "labels"), "labels = input() : i32[S]");
}

TEST(PackSequences, NamesTheNodeThatMixesPositions) {
  const auto pack = [](const char* text) {
    Graph graph = parse_graph(text);
    return error_text([&] { run_pass("pack-sequences", graph); });
  };
  EXPECT_TRUE(
      pack(R"(
    x = input() : f32[B,L,4]
    flipped = transpose(x) {axes=[0,2,1]}
    output y <- flipped
  )")
          .starts_with("pass pack-sequences: node \"flipped\": transpose cannot be packed: "));
  EXPECT_TRUE(pack(R"(
    x = input() : f32[B,L,4]
    mixed = softmax(x) {axis=1}
    output y <- mixed
  )")
                  .starts_with("pass pack-sequences: node \"mixed\": softmax cannot be packed: "));
  EXPECT_EQ(
      pack(R"(
    x = input() : f32[L,B]
    output y <- x
  )"),
      "pass pack-sequences: node \"x\": f32[L,B] mixes rows and positions and cannot be packed");
}

TEST(PackSequences, PacksOpsWithSeveralResults) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,L,6]
    s = split(x) {axis=-1, sizes=[2,4]}
    a = relu(s#1)
    output a <- a
    output first <- s#0
  )");
  run_pass("pack-sequences", graph);
  EXPECT_EQ(print(graph, "s"), "s = split(x) {axis=1, sizes=[2,4]} : f32[T,2], f32[T,4]");
  EXPECT_EQ(print(graph, "a"), "a = relu(s#1) : f32[T,4]");
  EXPECT_EQ(graph.name(*graph.output("first")), "s#0");
}

}  // namespace
}  // namespace lathe::models
