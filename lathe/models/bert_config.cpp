#include "lathe/models/bert_config.h"

#include "lathe/models/config_checks.h"
#include "lathe/models/fit_config.h"

namespace lathe::models {

BertConfig::BertConfig(const AttributeReader& config)
    : vocabulary(config.integer("vocab_size")),
      hidden(config.integer("hidden_size")),
      layers(config.integer("num_hidden_layers")),
      heads(config.integer("num_attention_heads")),
      intermediate(config.integer("intermediate_size")),
      positions(config.integer("max_position_embeddings")),
      types(config.integer("type_vocab_size")),
      padding(config.integer("pad_token_id")),
      hidden_dropout(config.real("hidden_dropout_prob")),
      attention_dropout(config.real("attention_probs_dropout_prob")),
      classifier_dropout(config.is_given("classifier_dropout") ? config.real("classifier_dropout")
                                                               : hidden_dropout),
      eps(config.real("layer_norm_eps")),
      initializer_range(config.real("initializer_range")),
      activation(config.text("hidden_act")),
      is_decoder(config.flag("is_decoder")),
      is_tied(config.flag("tie_word_embeddings")) {
  check_size("vocab_size", vocabulary);
  check_size("hidden_size", hidden);
  check_size("num_attention_heads", heads);
  check_size("intermediate_size", intermediate);
  check_size("max_position_embeddings", positions);
  check_size("type_vocab_size", types);
  check_depth("num_hidden_layers", layers);
  check_heads(hidden, heads);
  for (const double rate : {hidden_dropout, attention_dropout, classifier_dropout})
    check_dropout(rate);
  const std::string& position_type = config.text("position_embedding_type");
  if (position_type != "absolute")
    fail("position_embedding_type \"{}\" is not supported: expected \"absolute\"", position_type);
  if (config.flag("add_cross_attention"))
    fail("add_cross_attention is true, which is not supported: expected false");
}

EncoderSizes BertConfig::layer_sizes() const {
  return {.hidden = hidden,
          .heads = heads,
          .intermediate = intermediate,
          .hidden_dropout = hidden_dropout,
          .attention_dropout = attention_dropout,
          .eps = eps,
          .activation = activation,
          .is_causal = is_decoder};
}

BertEmbeddings BertConfig::embeddings(const std::string& prefix) const {
  return {.prefix = prefix,
          .vocabulary = vocabulary,
          .positions = positions,
          .types = types,
          .width = hidden,
          .eps = eps,
          .dropout = hidden_dropout};
}

Attributes bert_sizes_of(const Graph& graph, const std::string& prefix) {
  Attributes sizes;
  if (const auto rows = num_rows(graph, prefix + "embeddings.word_embeddings.weight"))
    sizes["vocab_size"] = *rows;
  if (const auto rows = num_rows(graph, prefix + "encoder.layer.0.intermediate.dense.weight"))
    sizes["intermediate_size"] = *rows;
  return sizes;
}

std::vector<AttributeSpec> bert_config_keys(const Attributes& other_defaults) {
  std::vector<AttributeSpec> keys = {
      {"vocab_size", std::int64_t{30522}, "rows of the word embedding"},
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
      {"tie_word_embeddings", true, "predict words with the table they are read with"}};
  for (const auto& [name, value] : other_defaults)
    for (AttributeSpec& key : keys)
      if (key.name == name) key.default_value = value;
  return keys;
}

}  // namespace lathe::models
