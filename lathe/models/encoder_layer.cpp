#include "lathe/models/encoder_layer.h"

namespace lathe::models {
namespace {

Value drop(ModuleBuilder& builder, const std::string& name, Value x, double rate) {
  return name.empty() ? x : builder.dropout(name, x, rate);
}

Value self_attention(ModuleBuilder& builder, const EncoderSizes& sizes, const EncoderNames& names,
                     Value x, Value mask) {
  const auto project = [&](const std::string& name, Value from, bool has_bias) {
    return name.empty() ? from : builder.linear(name, from, sizes.hidden, has_bias);
  };
  const Value query = project(names.query, x, sizes.has_qkv_bias);
  const Value key = project(names.key, x, sizes.has_qkv_bias);
  const Value value = project(names.value, x, sizes.has_qkv_bias);
  Attributes attributes{
      {"heads", sizes.heads}, {"dropout", sizes.attention_dropout}, {"site", builder.next_site()}};
  if (sizes.is_causal) attributes["causal"] = true;
  const Value context =
      builder.add(names.attention, "attention", {query, key, value, mask}, std::move(attributes));
  return drop(builder, names.output_dropout, project(names.output, context, true),
              sizes.hidden_dropout);
}

Value feed_forward(ModuleBuilder& builder, const EncoderSizes& sizes, const EncoderNames& names,
                   Value x) {
  const Value wide = builder.linear(names.wide, x, sizes.intermediate);
  const Value active =
      builder.activation(names.activation, sizes.activation_key, sizes.activation, wide);
  return drop(builder, names.narrow_dropout, builder.linear(names.narrow, active, sizes.hidden),
              sizes.hidden_dropout);
}

}  // namespace

EncoderSizes read_encoder_sizes(const AttributeReader& config) {
  return {.hidden = config.integer("hidden_size"),
          .heads = config.integer("num_attention_heads"),
          .intermediate = config.integer("intermediate_size"),
          .hidden_dropout = config.real("hidden_dropout_prob"),
          .attention_dropout = config.real("attention_probs_dropout_prob"),
          .eps = config.real("layer_norm_eps"),
          .activation = config.text("hidden_act")};
}

EncoderNames bert_layer_names(const std::string& prefix) {
  const std::string self = prefix + "attention.self.", attention = prefix + "attention.output.";
  const std::string output = prefix + "output.";
  return {.query = self + "query",
          .key = self + "key",
          .value = self + "value",
          .attention = self + "attention",
          .output = attention + "dense",
          .output_dropout = attention + "dropout",
          .output_add = attention + "add",
          .output_norm = attention + "LayerNorm",
          .wide = prefix + "intermediate.dense",
          .activation = prefix + "intermediate.activation",
          .narrow = output + "dense",
          .narrow_dropout = output + "dropout",
          .narrow_add = output + "add",
          .narrow_norm = output + "LayerNorm"};
}

Value encoder_layer(ModuleBuilder& builder, const EncoderSizes& sizes, const EncoderNames& names,
                    Value x, Value mask) {
  const auto norm = [&](const std::string& name, Value from) {
    return builder.layer_norm(name, from, sizes.eps);
  };
  if (sizes.is_pre_norm) {
    const Value change = self_attention(builder, sizes, names, norm(names.output_norm, x), mask);
    const Value attended = builder.add(names.output_add, "add", {change, x});
    const Value more = feed_forward(builder, sizes, names, norm(names.narrow_norm, attended));
    return builder.add(names.narrow_add, "add", {more, attended});
  }
  const Value change = self_attention(builder, sizes, names, x, mask);
  return feed_forward_behind(
      builder, sizes, names,
      norm(names.output_norm, builder.add(names.output_add, "add", {change, x})));
}

Value feed_forward_behind(ModuleBuilder& builder, const EncoderSizes& sizes,
                          const EncoderNames& names, Value attended) {
  const Value more = feed_forward(builder, sizes, names, attended);
  return builder.layer_norm(names.narrow_norm,
                            builder.add(names.narrow_add, "add", {more, attended}), sizes.eps);
}

Value bert_embeddings(ModuleBuilder& builder, const BertEmbeddings& sizes, Value ids) {
  const std::string& prefix = sizes.prefix;
  Attributes from;
  if (sizes.first_position != 0) from["first"] = sizes.first_position;
  const Value positions = builder.add(prefix + "position_ids", "positions", {ids}, std::move(from));
  const Value token_types =
      builder.add(prefix + "token_type_ids", "full_like", {ids}, {{"value", 0.0}});
  const Value word =
      builder.embedding(prefix + "word_embeddings", ids, sizes.vocabulary, sizes.width);
  const Value type =
      builder.embedding(prefix + "token_type_embeddings", token_types, sizes.types, sizes.width);
  const Value position =
      builder.embedding(prefix + "position_embeddings", positions, sizes.positions, sizes.width);
  const Value sum = builder.add(prefix + "add_position", "add",
                                {builder.add(prefix + "add_type", "add", {word, type}), position});
  return builder.dropout(prefix + "dropout",
                         builder.layer_norm(prefix + "LayerNorm", sum, sizes.eps), sizes.dropout);
}

Value first_token(ModuleBuilder& builder, const std::string& name, Value x) {
  return builder.add(name, "select", {x}, {{"axis", std::int64_t{1}}, {"index", std::int64_t{0}}});
}

Value first_token_classifier(ModuleBuilder& builder, const std::string& activation, double dropout,
                             std::int64_t hidden, std::int64_t num_labels, Value x) {
  const Value first = builder.dropout("classifier.dropout_in",
                                      first_token(builder, "classifier.first_token", x), dropout);
  const Value dense = builder.linear("classifier.dense", first, hidden);
  const Value active = builder.activation("classifier.activation", "hidden_act", activation, dense);
  return builder.linear("classifier.out_proj",
                        builder.dropout("classifier.dropout", active, dropout), num_labels);
}

Value language_head(ModuleBuilder& builder, const LanguageHead& head, Value x) {
  const Value dense = builder.linear(head.dense, x, head.width);
  const Value active =
      builder.activation(head.activation_name, head.activation_key, head.activation, dense);
  const Value normed = builder.layer_norm(head.norm, active, head.eps);
  const Value table = builder.state(head.table, {head.vocabulary, head.width}, "normal");
  const Value bias = builder.state(head.bias, {head.vocabulary}, "zeros");
  return builder.add(head.decoder, "linear", {normed, table, bias});
}

}  // namespace lathe::models
