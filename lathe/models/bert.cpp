#include <algorithm>
#include <array>
#include <set>

#include "lathe/models/config_checks.h"
#include "lathe/models/family.h"
#include "lathe/models/fit_config.h"
#include "lathe/models/module_builder.h"

namespace lathe::models::bert {
namespace {

// The square projections of a layer, which lathe_identity_projections may name.
constexpr std::array kProjections{"query", "key", "value", "output"};

// The encoder of Devlin et al. 2018 as Hugging Face evaluates it: post-norm layers, learned
// absolute positions, an embedding sum in the order (word + type) + position. Nodes carry the
// module paths of its state dictionary, so weights match by name. As a decoder it attends to what
// came before alone, and predicts the next token with the head of masked language modelling.
//
// Two keys are ours alone: norms may stand before attention and feed-forward part instead of behind
// them, with one more behind the last layer; and square projections may be left out, so that what
// they would project passes as it is.

bool parse_norm_place(const std::string& place) {
  if (place != "post" && place != "pre")
    throw unknown_name("lathe_norm_place", place, {"post", "pre"});
  return place == "pre";
}

std::set<std::string> parse_identities(const std::string& list, std::int64_t layers) {
  std::vector<std::string> known{"pooler"};
  for (std::int64_t layer = 0; layer < layers; ++layer)
    for (const char* const projection : kProjections)
      known.push_back(fmt::format("{}.{}", layer, projection));
  std::set<std::string> names;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string name = list.substr(begin, end - begin);
    if (std::ranges::find(known, name) == known.end())
      throw unknown_name("lathe_identity_projections", name, known);
    names.insert(name);
    begin = end + 1;
  }
  return names;
}

struct Bert {
  std::int64_t vocabulary, hidden, layers, heads, intermediate, positions, types;
  double hidden_dropout, attention_dropout, classifier_dropout, eps, initializer_range;
  std::string activation;
  bool is_decoder, is_tied, is_pre_norm;
  std::set<std::string> identities;  // "0.query", "pooler"

  explicit Bert(const AttributeReader& config)
      : vocabulary(config.integer("vocab_size")),
        hidden(config.integer("hidden_size")),
        layers(config.integer("num_hidden_layers")),
        heads(config.integer("num_attention_heads")),
        intermediate(config.integer("intermediate_size")),
        positions(config.integer("max_position_embeddings")),
        types(config.integer("type_vocab_size")),
        hidden_dropout(config.real("hidden_dropout_prob")),
        attention_dropout(config.real("attention_probs_dropout_prob")),
        classifier_dropout(config.is_given("classifier_dropout") ? config.real("classifier_dropout")
                                                                 : hidden_dropout),
        eps(config.real("layer_norm_eps")),
        initializer_range(config.real("initializer_range")),
        activation(config.text("hidden_act")),
        is_decoder(config.flag("is_decoder")),
        is_tied(config.flag("tie_word_embeddings")),
        is_pre_norm(parse_norm_place(config.text("lathe_norm_place"))),
        identities(parse_identities(config.text("lathe_identity_projections"), layers)) {
    check_size("vocab_size", vocabulary);
    check_size("hidden_size", hidden);
    check_size("num_attention_heads", heads);
    check_size("intermediate_size", intermediate);
    check_size("max_position_embeddings", positions);
    check_size("type_vocab_size", types);
    check_depth("num_hidden_layers", layers);
    if (hidden % heads != 0)
      fail("hidden_size {} is not a multiple of num_attention_heads {}", hidden, heads);
    for (const double rate : {hidden_dropout, attention_dropout, classifier_dropout})
      check_dropout(rate);
    const std::string& position_type = config.text("position_embedding_type");
    if (position_type != "absolute")
      fail("position_embedding_type \"{}\" is not supported: expected \"absolute\"", position_type);
    if (config.flag("add_cross_attention"))
      fail("add_cross_attention is true, which is not supported: expected false");
  }
};

Value embeddings(ModuleBuilder& builder, const Bert& bert, Value ids) {
  const std::string prefix = "bert.embeddings.";
  const Value positions = builder.add(prefix + "position_ids", "positions", {ids});
  const Value token_types =
      builder.add(prefix + "token_type_ids", "full_like", {ids}, {{"value", 0.0}});
  const Value word =
      builder.embedding(prefix + "word_embeddings", ids, bert.vocabulary, bert.hidden);
  const Value type =
      builder.embedding(prefix + "token_type_embeddings", token_types, bert.types, bert.hidden);
  const Value position =
      builder.embedding(prefix + "position_embeddings", positions, bert.positions, bert.hidden);
  const Value sum = builder.add(prefix + "add_position", "add",
                                {builder.add(prefix + "add_type", "add", {word, type}), position});
  return builder.dropout(prefix + "dropout",
                         builder.layer_norm(prefix + "LayerNorm", sum, bert.eps),
                         bert.hidden_dropout);
}

// A projection from hidden size to hidden size, or nothing in its place.
Value projection(ModuleBuilder& builder, const Bert& bert, const std::string& name,
                 const std::string& short_name, Value x) {
  return bert.identities.contains(short_name) ? x : builder.linear(name, x, bert.hidden);
}

Value self_attention(ModuleBuilder& builder, const Bert& bert, std::int64_t layer,
                     const std::string& prefix, Value x, Value mask) {
  const std::string self = prefix + "attention.self.", output = prefix + "attention.output.";
  const auto project = [&](const std::string& name, const char* which, Value from) {
    return projection(builder, bert, name, fmt::format("{}.{}", layer, which), from);
  };
  const Value query = project(self + "query", "query", x);
  const Value key = project(self + "key", "key", x);
  const Value value = project(self + "value", "value", x);
  Attributes attention{
      {"heads", bert.heads}, {"dropout", bert.attention_dropout}, {"site", builder.next_site()}};
  if (bert.is_decoder) attention["causal"] = true;
  const Value context =
      builder.add(self + "attention", "attention", {query, key, value, mask}, std::move(attention));
  return builder.dropout(output + "dropout", project(output + "dense", "output", context),
                         bert.hidden_dropout);
}

Value feed_forward(ModuleBuilder& builder, const Bert& bert, const std::string& prefix, Value x) {
  const Value wide = builder.linear(prefix + "intermediate.dense", x, bert.intermediate);
  const Value active =
      builder.activation(prefix + "intermediate.activation", "hidden_act", bert.activation, wide);
  return builder.dropout(prefix + "output.dropout",
                         builder.linear(prefix + "output.dense", active, bert.hidden),
                         bert.hidden_dropout);
}

Value encoder_layer(ModuleBuilder& builder, const Bert& bert, std::int64_t layer, Value x,
                    Value mask) {
  const std::string prefix = fmt::format("bert.encoder.layer.{}.", layer);
  const std::string output = prefix + "attention.output.";
  const auto norm = [&](const std::string& name, Value from) {
    return builder.layer_norm(name + "LayerNorm", from, bert.eps);
  };
  const auto add = [&](const std::string& name, Value change, Value to) {
    return builder.add(name + "add", "add", {change, to});
  };
  if (bert.is_pre_norm) {
    const Value change = self_attention(builder, bert, layer, prefix, norm(output, x), mask);
    const Value attended = add(output, change, x);
    const Value more = feed_forward(builder, bert, prefix, norm(prefix + "output.", attended));
    return add(prefix + "output.", more, attended);
  }
  const Value change = self_attention(builder, bert, layer, prefix, x, mask);
  const Value attended = norm(output, add(output, change, x));
  const Value more = feed_forward(builder, bert, prefix, attended);
  return norm(prefix + "output.", add(prefix + "output.", more, attended));
}

void classification_head(ModuleBuilder& builder, const Bert& bert, const BuildOptions& options,
                         Value encoded) {
  const Value first = builder.add("bert.pooler.first_token", "select", {encoded},
                                  {{"axis", std::int64_t{1}}, {"index", std::int64_t{0}}});
  const Value pooled =
      builder.add("bert.pooler.activation", "tanh",
                  {projection(builder, bert, "bert.pooler.dense", "pooler", first)});
  const Value dropped = builder.dropout("dropout", pooled, bert.classifier_dropout);
  builder.graph().set_output("logits", builder.linear("classifier", dropped, options.num_labels));
}

// Labels are the tokens to predict, each at the place it is predicted from; those of a decoder are
// one place ahead of the inputs.
void language_head(ModuleBuilder& builder, const Bert& bert, Value encoded) {
  const std::string prefix = "cls.predictions.";
  const Value dense = builder.linear(prefix + "transform.dense", encoded, bert.hidden);
  const Value active =
      builder.activation(prefix + "transform.activation", "hidden_act", bert.activation, dense);
  const Value normed = builder.layer_norm(prefix + "transform.LayerNorm", active, bert.eps);
  const Value table = builder.state(
      bert.is_tied ? "bert.embeddings.word_embeddings.weight" : prefix + "decoder.weight",
      {bert.vocabulary, bert.hidden}, "normal");
  const Value bias = builder.state(bert.is_tied ? prefix + "bias" : prefix + "decoder.bias",
                                   {bert.vocabulary}, "zeros");
  const Value logits = builder.add(prefix + "decoder", "linear", {normed, table, bias});
  builder.graph().set_output("logits", logits);
}

Graph build_bert(const AttributeReader& config, const BuildOptions& options) {
  const Bert bert(config);
  if (options.num_labels < 1)
    fail("the number of labels is {}: expected 1 or more", options.num_labels);
  Graph graph;
  ModuleBuilder builder(graph, bert.initializer_range);
  const Type ids_type{DType::I32, {Size::symbol("B"), Size::symbol("L")}};
  const Value ids = builder.input("input_ids", ids_type);
  const Value mask = builder.add("attention_mask", "full_like", {ids}, {{"value", 1.0}});

  Value x = embeddings(builder, bert, ids);
  for (std::int64_t layer = 0; layer < bert.layers; ++layer)
    x = encoder_layer(builder, bert, layer, x, mask);
  if (bert.is_pre_norm) x = builder.layer_norm("bert.encoder.LayerNorm", x, bert.eps);
  if (options.task == "classify")
    classification_head(builder, bert, options, x);
  else if (options.task == "mlm" || options.task == "causal-lm")
    language_head(builder, bert, x);
  else
    graph.set_output("last_hidden_state", x);
  return graph;
}

Attributes sizes(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {{"num_hidden_layers", layers},
          {"hidden_size", hidden},
          {"num_attention_heads", heads},
          {"intermediate_size", 4 * hidden}};
}

Attributes read_sizes(const Graph& graph, const Attributes&) {
  Attributes sizes;
  if (const auto rows = num_rows(graph, "bert.embeddings.word_embeddings.weight"))
    sizes["vocab_size"] = *rows;
  if (const auto rows = num_rows(graph, "bert.encoder.layer.0.intermediate.dense.weight"))
    sizes["intermediate_size"] = *rows;
  return sizes;
}

const Register registration{ModelFamily{
    .name = "bert",
    .summary = "transformer encoder for classification and language modelling",
    .reads = Reads::Tokens,
    .token_keys = {.vocabulary = "vocab_size",
                   .length = "max_position_embeddings",
                   .padding = "pad_token_id"},
    .tasks = {{.name = "classify",
               .architecture = "BertForSequenceClassification",
               .inputs = {"input_ids", "attention_mask", "labels"},
               .optional_inputs = {"token_type_ids"},
               .label_layer = "classifier"},
              {.name = "mlm",
               .architecture = "BertForMaskedLM",
               .other_architectures = {"BertForPreTraining", "BertLMHeadModel"},
               .inputs = {"input_ids", "attention_mask", "labels"},
               .optional_inputs = {"token_type_ids"},
               .head = "cls.predictions.transform.dense"},
              {.name = "causal-lm",
               .architecture = "BertLMHeadModel",
               .inputs = {"input_ids", "attention_mask", "labels"},
               .optional_inputs = {"token_type_ids"},
               .config = {{"is_decoder", true}}},
              {.name = "encode",
               .architecture = "BertModel",
               .inputs = {"input_ids", "attention_mask"},
               .optional_inputs = {"token_type_ids"}}},
    .config = {{"vocab_size", std::int64_t{30522}, "rows of the word embedding"},
               {"hidden_size", std::int64_t{768}, "width of a token"},
               {"num_hidden_layers", std::int64_t{12}, "encoder layers"},
               {"num_attention_heads", std::int64_t{12}, "heads of each attention"},
               {"intermediate_size", std::int64_t{3072}, "width inside the feed-forward part"},
               {"hidden_act", std::string("gelu"), "activation of the feed-forward part"},
               {"hidden_dropout_prob", 0.1, "dropout after embeddings and projections"},
               {"attention_probs_dropout_prob", 0.1, "dropout on attention weights"},
               {"classifier_dropout", 0.1, "dropout before the classifier, if not as above"},
               {"max_position_embeddings", std::int64_t{512}, "longest sequence"},
               {"type_vocab_size", std::int64_t{2}, "token types"},
               {"initializer_range", 0.02, "standard deviation of fresh weights"},
               {"layer_norm_eps", 1e-12, "added to variances"},
               {"pad_token_id", std::int64_t{0}, "id that fills padded rows"},
               {"position_embedding_type", std::string("absolute"), "kind of positions"},
               {"is_decoder", false, "attend to earlier tokens only"},
               {"add_cross_attention", false, "attend to an encoder's tokens too"},
               {"tie_word_embeddings", true, "predict words with the table they are read with"},
               {"lathe_norm_place", std::string("post"),
                "norms behind attention and feed-forward part, or before: pre"},
               {"lathe_identity_projections", std::string(),
                "square projections left out, such as 0.query,1.output,pooler"}},
    .presets = {{"bert-tiny", sizes(2, 128, 2)},
                {"bert-mini", sizes(4, 256, 4)},
                {"bert-small", sizes(4, 512, 8)},
                {"bert-medium", sizes(8, 512, 8)},
                {"bert-base", sizes(12, 768, 12)}},
    .keys_without_default = {"classifier_dropout", "lathe_norm_place",
                             "lathe_identity_projections"},
    .stand_ins = {{"attention_mask", "attention_mask", "input_ids", 1},
                  {"token_type_ids", "bert.embeddings.token_type_ids", "input_ids", 0}},
    .naming =
        {.base_prefix = "bert.",
         .meaningless = {"embeddings.position_ids"},
         // Files converted from TensorFlow's keep its names.
         .older = {{"LayerNorm.gamma", "LayerNorm.weight"}, {"LayerNorm.beta", "LayerNorm.bias"}},
         .tied = {{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight",
                   "tie_word_embeddings"},
                  // The decoder's bias has two names in a tied model, and files have either.
                  {"cls.predictions.decoder.bias", "cls.predictions.bias", "tie_word_embeddings"},
                  {"cls.predictions.bias", "cls.predictions.decoder.bias", "tie_word_embeddings"}}},
    .head_prefixes = {"bert.pooler.", "classifier.", "cls."},
    .build = build_bert,
    .read_sizes = read_sizes,
}};

}  // namespace
}  // namespace lathe::models::bert
