#include <algorithm>
#include <array>
#include <set>

#include "lathe/models/bert_config.h"
#include "lathe/models/encoder_end.h"
#include "lathe/models/family.h"
#include "lathe/models/module_builder.h"

namespace lathe::models::bert {
namespace {

// The square projections of a layer, which lathe_identity_projections may name.
constexpr std::array<const char*, 4> kProjections{"query", "key", "value", "output"};

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

struct Bert : BertConfig {
  bool is_pre_norm;
  std::set<std::string> identities;  // "0.query", "pooler"

  explicit Bert(const AttributeReader& config)
      : BertConfig(config),
        is_pre_norm(parse_norm_place(config.text("lathe_norm_place"))),
        identities(parse_identities(config.text("lathe_identity_projections"), layers)) {}
};

EncoderNames layer_names(const Bert& bert, std::int64_t layer) {
  EncoderNames names = bert_layer_names(fmt::format("bert.encoder.layer.{}.", layer));
  std::string* const projections[] = {&names.query, &names.key, &names.value, &names.output};
  for (std::size_t i = 0; i < kProjections.size(); ++i)
    if (bert.identities.contains(fmt::format("{}.{}", layer, kProjections[i])))
      projections[i]->clear();
  return names;
}

Value classification_head(ModuleBuilder& builder, const Bert& bert, const BuildOptions& options,
                          Value encoded) {
  Value pooled = first_token(builder, "bert.pooler.first_token", encoded);
  if (!bert.identities.contains("pooler"))
    pooled = builder.linear("bert.pooler.dense", pooled, bert.hidden);
  pooled = builder.add("bert.pooler.activation", "tanh", {pooled});
  const Value dropped = builder.dropout("dropout", pooled, bert.classifier_dropout);
  return builder.linear("classifier", dropped, options.num_labels);
}

// Labels are the tokens to predict, each at the place it is predicted from; those of a decoder are
// one place ahead of the inputs.
LanguageHead head_of(const Bert& bert) {
  const std::string prefix = "cls.predictions.";
  return {
      .vocabulary = bert.vocabulary,
      .width = bert.hidden,
      .eps = bert.eps,
      .activation = bert.activation,
      .dense = prefix + "transform.dense",
      .activation_name = prefix + "transform.activation",
      .norm = prefix + "transform.LayerNorm",
      .decoder = prefix + "decoder",
      .table = bert.is_tied ? "bert.embeddings.word_embeddings.weight" : prefix + "decoder.weight",
      .bias = bert.is_tied ? prefix + "bias" : prefix + "decoder.bias"};
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

  Value x = bert_embeddings(builder, bert.embeddings("bert.embeddings."), ids);
  EncoderSizes sizes = bert.layer_sizes();
  sizes.is_pre_norm = bert.is_pre_norm;
  for (std::int64_t layer = 0; layer < bert.layers; ++layer)
    x = encoder_layer(builder, sizes, layer_names(bert, layer), x, mask);
  if (bert.is_pre_norm) x = builder.layer_norm("bert.encoder.LayerNorm", x, bert.eps);
  const EncoderEnd end{
      .classify =
          [&](Value encoded) { return classification_head(builder, bert, options, encoded); },
      .token_dropout = bert.classifier_dropout,
      .language = head_of(bert)};
  end_encoder(builder, end, options, x);
  return graph;
}

std::vector<AttributeSpec> keys() {
  std::vector<AttributeSpec> keys = bert_config_keys();
  keys.push_back({"lathe_norm_place", std::string("post"),
                  "norms behind attention and feed-forward part, or before: pre"});
  keys.push_back({"lathe_identity_projections", std::string(),
                  "square projections left out, such as 0.query,1.output,pooler"});
  return keys;
}

Attributes sizes(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {{"num_hidden_layers", layers},
          {"hidden_size", hidden},
          {"num_attention_heads", heads},
          {"intermediate_size", 4 * hidden}};
}

Attributes read_sizes(const Graph& graph, const Attributes&) {
  return bert_sizes_of(graph, "bert.");
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
              {.name = "tokens",
               .architecture = "BertForTokenClassification",
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
    .config = keys(),
    .presets = {{"bert-tiny", sizes(2, 128, 2)},
                {"bert-mini", sizes(4, 256, 4)},
                {"bert-small", sizes(4, 512, 8)},
                {"bert-medium", sizes(8, 512, 8)},
                {"bert-base", sizes(12, 768, 12)},
                {"bert-large", sizes(24, 1024, 16)}},
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
