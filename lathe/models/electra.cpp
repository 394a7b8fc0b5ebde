#include "lathe/models/bert_config.h"
#include "lathe/models/config_checks.h"
#include "lathe/models/encoder_end.h"

namespace lathe::models::electra {
namespace {

// BERT's encoder, taught to tell replaced tokens from true ones (Clark et al. 2020), as Hugging
// Face evaluates it: embeddings may be narrower than the layers, and a linear widens them; the
// classifier is two linears, and its activation is always the exact GELU.

Graph build(const AttributeReader& config, const BuildOptions& options) {
  const BertConfig model(config);
  const std::int64_t width = config.integer("embedding_size");
  check_size("embedding_size", width);
  if (model.is_decoder) fail("is_decoder is true, which is not supported: expected false");
  if (options.num_labels < 1)
    fail("the number of labels is {}: expected 1 or more", options.num_labels);
  Graph graph;
  ModuleBuilder builder(graph, model.initializer_range);
  const Value ids =
      builder.input("input_ids", {DType::I32, {Size::symbol("B"), Size::symbol("L")}});
  const Value mask = builder.add("attention_mask", "full_like", {ids}, {{"value", 1.0}});
  BertEmbeddings embeddings = model.embeddings("electra.embeddings.");
  embeddings.width = width;
  Value x = bert_embeddings(builder, embeddings, ids);
  if (width != model.hidden) x = builder.linear("electra.embeddings_project", x, model.hidden);
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    x = encoder_layer(builder, model.layer_sizes(),
                      bert_layer_names(fmt::format("electra.encoder.layer.{}.", layer)), x, mask);

  const EncoderEnd end{
      .classify =
          [&](Value encoded) {
            return first_token_classifier(builder, "gelu", model.classifier_dropout, model.hidden,
                                          options.num_labels, encoded);
          },
      .token_dropout = model.classifier_dropout,
      .language = {.vocabulary = model.vocabulary,
                   .width = width,
                   .eps = model.eps,
                   .activation = "gelu",
                   .dense = "generator_predictions.dense",
                   .activation_name = "generator_predictions.activation",
                   .norm = "generator_predictions.LayerNorm",
                   .decoder = "generator_lm_head",
                   .table = model.is_tied ? "electra.embeddings.word_embeddings.weight"
                                          : "generator_lm_head.weight",
                   .bias = "generator_lm_head.bias"}};
  end_encoder(builder, end, options, x);
  return graph;
}

std::vector<AttributeSpec> keys() {
  std::vector<AttributeSpec> keys = bert_config_keys({{"hidden_size", std::int64_t{256}},
                                                      {"num_attention_heads", std::int64_t{4}},
                                                      {"intermediate_size", std::int64_t{1024}}});
  keys.push_back({"embedding_size", std::int64_t{128}, "width of an embedding"});
  return keys;
}

Attributes read_sizes(const Graph& graph, const Attributes&) {
  return bert_sizes_of(graph, "electra.");
}

const Register registration{ModelFamily{
    .name = "electra",
    .summary = "transformer encoder with narrow embeddings, for classification",
    .reads = Reads::Tokens,
    .token_keys = {.vocabulary = "vocab_size",
                   .length = "max_position_embeddings",
                   .padding = "pad_token_id"},
    .tasks = {{.name = "classify",
               .architecture = "ElectraForSequenceClassification",
               .inputs = {"input_ids", "attention_mask", "labels"},
               .optional_inputs = {"token_type_ids"},
               .label_layer = "classifier.out_proj"},
              {.name = "tokens",
               .architecture = "ElectraForTokenClassification",
               .inputs = {"input_ids", "attention_mask", "labels"},
               .optional_inputs = {"token_type_ids"},
               .label_layer = "classifier"},
              {.name = "mlm",
               .architecture = "ElectraForMaskedLM",
               .inputs = {"input_ids", "attention_mask", "labels"},
               .optional_inputs = {"token_type_ids"},
               .head = "generator_predictions.dense"},
              {.name = "encode",
               .architecture = "ElectraModel",
               .other_architectures = {"ElectraForPreTraining"},
               .inputs = {"input_ids", "attention_mask"},
               .optional_inputs = {"token_type_ids"}}},
    .config = keys(),
    .presets = {{"electra-small", {}}},
    .keys_without_default = {"classifier_dropout"},
    .stand_ins = {{"attention_mask", "attention_mask", "input_ids", 1},
                  {"token_type_ids", "electra.embeddings.token_type_ids", "input_ids", 0}},
    .naming = {.base_prefix = "electra.",
               .meaningless = {"embeddings.position_ids"},
               .tied = {{"generator_lm_head.weight", "electra.embeddings.word_embeddings.weight",
                         "tie_word_embeddings"}}},
    .head_prefixes = {"classifier.", "generator_", "discriminator_"},
    .build = build,
    .read_sizes = read_sizes,
}};

}  // namespace
}  // namespace lathe::models::electra
