#include "lathe/models/deberta_config.h"

#include <cmath>

#include "lathe/models/config_checks.h"
#include "lathe/models/encoder_end.h"

namespace lathe::models {
namespace {

// "c2p|p2c": with which of the two distances are scored.
bool has_kind(const std::string& list, std::string_view kind) {
  bool is_there = false;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find('|', begin), list.size());
    const std::string part = list.substr(begin, end - begin);
    if (part != "c2p" && part != "p2c") throw unknown_name("pos_att_type", part, {"c2p", "p2c"});
    is_there = is_there || part == kind;
    begin = end + 1;
  }
  return is_there;
}

std::int64_t or_else(std::int64_t value, std::int64_t other) {
  return value < 1 ? other : value;
}

Value deberta_embeddings(ModuleBuilder& builder, const DebertaConfig& model, Value ids) {
  const std::string prefix = "deberta.embeddings.";
  Value sum = builder.embedding(prefix + "word_embeddings", ids, model.vocabulary, model.width);
  if (model.has_positions) {
    const Value positions = builder.add(prefix + "position_ids", "positions", {ids});
    sum = builder.add(prefix + "add_position", "add",
                      {sum, builder.embedding(prefix + "position_embeddings", positions,
                                              model.positions, model.width)});
  }
  if (model.types > 0) {
    const Value types =
        builder.add(prefix + "token_type_ids", "full_like", {ids}, {{"value", 0.0}});
    sum = builder.add(prefix + "add_type", "add",
                      {sum, builder.embedding(prefix + "token_type_embeddings", types, model.types,
                                              model.width)});
  }
  if (model.width != model.hidden)
    sum = builder.linear(prefix + "embed_proj", sum, model.hidden, false);
  return builder.dropout(prefix + "dropout",
                         builder.layer_norm(prefix + "LayerNorm", sum, model.sizes.eps),
                         model.sizes.hidden_dropout);
}

Value attend(ModuleBuilder& builder, const DebertaConfig& model, const std::string& name,
             const DebertaProjections& of, Value mask) {
  const RelativePositions& positions = of.positions;
  Attributes attributes{{"heads", model.sizes.heads}, {"scale", model.scale()}};
  if (positions.keys == kNone && positions.queries == kNone)
    return builder.add(name, "attention", {of.query, of.key, of.value, mask},
                       std::move(attributes));
  if (positions.buckets > 0) {
    attributes["buckets"] = positions.buckets;
    attributes["max_distance"] = positions.max_distance;
  }
  std::vector<Value> operands{of.query, of.key, of.value, mask, kNone, positions.keys};
  if (positions.queries != kNone) operands.push_back(positions.queries);
  return builder.add(name, "relative_attention", std::move(operands), std::move(attributes));
}

Value deberta_layer(ModuleBuilder& builder, const DebertaConfig& model,
                    const MakeProjections& project, const std::string& prefix, Value x,
                    Value mask) {
  const EncoderNames names = bert_layer_names(prefix);
  const EncoderSizes& sizes = model.sizes;
  const Value context =
      attend(builder, model, names.attention, project(prefix + "attention.self.", x), mask);
  const Value change =
      builder.dropout(names.output_dropout, builder.linear(names.output, context, sizes.hidden),
                      sizes.hidden_dropout);
  const Value attended = builder.layer_norm(
      names.output_norm, builder.add(names.output_add, "add", {change, x}), sizes.eps);
  return feed_forward_behind(builder, sizes, names, attended);
}

// Two heads that predict tokens: Hugging Face's first one, which most files are for, goes through
// the width of an embedding; the one of the paper always reads the table of words.
LanguageHead language_head_of(const DebertaConfig& model) {
  const std::string table = "deberta.embeddings.word_embeddings.weight";
  const std::string prefix = model.is_legacy ? "cls.predictions." : "lm_predictions.lm_head.";
  const std::string transform = model.is_legacy ? prefix + "transform." : prefix;
  const bool is_apart = model.is_legacy && !model.is_tied;
  return {.vocabulary = model.vocabulary,
          .width = model.width,
          .eps = model.sizes.eps,
          .activation = model.sizes.activation,
          .dense = transform + "dense",
          .activation_name = transform + "activation",
          .norm = transform + "LayerNorm",
          .decoder = prefix + "decoder",
          .table = is_apart ? prefix + "decoder.weight" : table,
          .bias = prefix + (is_apart ? "decoder.bias" : "bias")};
}

}  // namespace

DebertaConfig::DebertaConfig(const AttributeReader& config)
    : vocabulary(config.integer("vocab_size")),
      hidden(config.integer("hidden_size")),
      width(or_else(config.integer("embedding_size"), hidden)),
      layers(config.integer("num_hidden_layers")),
      positions(config.integer("max_position_embeddings")),
      types(config.integer("type_vocab_size")),
      max_relative(or_else(config.integer("max_relative_positions"), positions)),
      classifier_dropout(config.real("cls_dropout") < 0 ? config.real("hidden_dropout_prob")
                                                        : config.real("cls_dropout")),
      pooler_dropout(config.real("pooler_dropout")),
      initializer_range(config.real("initializer_range")),
      pooler_activation(config.text("pooler_hidden_act")),
      has_positions(config.flag("position_biased_input")),
      by_content(has_kind(config.text("pos_att_type"), "c2p")),
      by_position(has_kind(config.text("pos_att_type"), "p2c")),
      is_relative(config.flag("relative_attention") && (by_content || by_position)),
      is_tied(config.flag("tie_word_embeddings")),
      is_legacy(config.flag("legacy")),
      sizes(read_encoder_sizes(config)) {
  for (const char* const key : {"vocab_size", "hidden_size", "num_attention_heads",
                                "intermediate_size", "max_position_embeddings"})
    check_size(key, config.integer(key));
  check_depth("num_hidden_layers", layers);
  check_heads(hidden, sizes.heads);
  if (types < 0) fail("type_vocab_size {}: expected 0 or more", types);
  if (const std::int64_t pooler = config.integer("pooler_hidden_size");
      pooler != 0 && pooler != hidden)
    fail("pooler_hidden_size {} is not supported: expected {}, the hidden_size that it reads",
         pooler, hidden);
  for (const double rate :
       {sizes.hidden_dropout, sizes.attention_dropout, classifier_dropout, pooler_dropout})
    check_dropout(rate);
}

double DebertaConfig::scale() const {
  const int terms = 1 + (by_content ? 1 : 0) + (by_position ? 1 : 0);
  return 1 / std::sqrt(static_cast<double>(hidden / sizes.heads * terms));
}

std::vector<AttributeSpec> deberta_config_keys(const Attributes& other_defaults) {
  std::vector<AttributeSpec> keys{
      {"vocab_size", std::int64_t{50265}, "rows of the word embedding"},
      {"hidden_size", std::int64_t{768}, "width of a token"},
      {"embedding_size", std::int64_t{0}, "width of an embedding; 0: as a token's"},
      {"num_hidden_layers", std::int64_t{12}, "encoder layers"},
      {"num_attention_heads", std::int64_t{12}, "heads of each attention"},
      {"intermediate_size", std::int64_t{3072}, "width inside the feed-forward part"},
      {"hidden_act", std::string("gelu"), "activation of the feed-forward part"},
      {"hidden_dropout_prob", 0.1, "dropout after embeddings, attention, feed-forward"},
      {"attention_probs_dropout_prob", 0.1, "dropout on attention weights"},
      {"max_position_embeddings", std::int64_t{512}, "longest sequence"},
      {"type_vocab_size", std::int64_t{0}, "rows of the token type embedding; 0: there is none"},
      {"initializer_range", 0.02, "standard deviation of fresh weights"},
      {"layer_norm_eps", 1e-7, "epsilon of layer norms"},
      {"relative_attention", false, "whether scores tell distances"},
      {"max_relative_positions", std::int64_t{-1}, "longest distance; -1: the longest sequence"},
      {"position_biased_input", true, "whether embeddings tell positions"},
      {"pos_att_type", std::string(), "how scores tell distances: c2p, p2c, or both between |"},
      {"pad_token_id", std::int64_t{0}, "id that fills padded rows"},
      {"pooler_dropout", 0.0, "dropout before the pooler"},
      {"pooler_hidden_act", std::string("gelu"), "activation of the pooler"},
      {"pooler_hidden_size", std::int64_t{0}, "width of the pooler; 0: as a token's"},
      {"cls_dropout", -1.0, "dropout before the classifier; -1: as elsewhere"},
      {"legacy", true, "whether tokens are predicted by Hugging Face's first head for it"},
      {"tie_word_embeddings", true, "whether that head reads the table of words"}};
  for (AttributeSpec& key : keys)
    if (const auto other = other_defaults.find(key.name); other != other_defaults.end())
      key.default_value = other->second;
  return keys;
}

void build_deberta(ModuleBuilder& builder, const DebertaConfig& model, const BuildOptions& options,
                   const MakeProjections& project) {
  if (options.num_labels < 1)
    fail("the number of labels is {}: expected 1 or more", options.num_labels);
  if (options.task == "mlm" && !model.is_legacy && model.width != model.hidden)
    fail("legacy is false: embedding_size {} is not supported then, expected {}, the hidden_size",
         model.width, model.hidden);
  const Value ids = {builder.graph().at("input_ids"), 0};
  const Value mask = builder.add("attention_mask", "full_like", {ids}, {{"value", 1.0}});
  Value x = deberta_embeddings(builder, model, ids);
  for (std::int64_t i = 0; i < model.layers; ++i)
    x = deberta_layer(builder, model, project, fmt::format("deberta.encoder.layer.{}.", i), x,
                      mask);
  const EncoderEnd end{
      .classify =
          [&](Value encoded) {
            const Value first = builder.dropout("pooler.dropout",
                                                first_token(builder, "pooler.first_token", encoded),
                                                model.pooler_dropout);
            const Value active = builder.activation(
                "pooler.activation", "pooler_hidden_act", model.pooler_activation,
                builder.linear("pooler.dense", first, model.hidden));
            return builder.linear("classifier",
                                  builder.dropout("dropout", active, model.classifier_dropout),
                                  options.num_labels);
          },
      .token_dropout = model.sizes.hidden_dropout,
      .language = language_head_of(model)};
  end_encoder(builder, end, options, x);
}

std::vector<TaskRecord> deberta_tasks(const std::string& name) {
  const std::vector<std::string> inputs{"input_ids", "attention_mask", "labels"};
  return {{.name = "classify",
           .architecture = name + "ForSequenceClassification",
           .inputs = inputs,
           .label_layer = "classifier"},
          {.name = "tokens",
           .architecture = name + "ForTokenClassification",
           .inputs = inputs,
           .label_layer = "classifier"},
          {.name = "mlm", .architecture = name + "ForMaskedLM", .inputs = inputs},
          {.name = "encode",
           .architecture = name + "Model",
           .inputs = {"input_ids", "attention_mask"}}};
}

TensorNaming deberta_naming() {
  const std::string head = "cls.predictions.", tie = "tie_word_embeddings";
  return {.base_prefix = "deberta.",
          .meaningless = {"embeddings.position_ids"},
          // Files hold the table also where position_biased_input is false.
          .unread = {"embeddings.position_embeddings.weight"},
          .older = {{"LayerNorm.gamma", "LayerNorm.weight"}, {"LayerNorm.beta", "LayerNorm.bias"}},
          .tied = {{head + "decoder.weight", "deberta.embeddings.word_embeddings.weight", tie},
                   // One bias has two names in a tied model, and files have either.
                   {head + "decoder.bias", head + "bias", tie},
                   {head + "bias", head + "decoder.bias", tie}}};
}

}  // namespace lathe::models
