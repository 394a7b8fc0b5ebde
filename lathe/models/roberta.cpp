#include "lathe/models/bert_config.h"
#include "lathe/models/encoder_end.h"

namespace lathe::models::roberta {
namespace {

// BERT's encoder, trained for longer on more (Liu et al. 2019), as Hugging Face evaluates it:
// positions count from behind the padding's id, so that the first rows of their table are never
// read; the classifier is two linears on the first token. (Hugging Face gives a padding id inside a
// text the position of padding; here it has its place like any token.) Pairs are told apart by
// their separators alone: there is one token type, so types are no input.

Graph build(const AttributeReader& config, const BuildOptions& options) {
  const BertConfig model(config);
  if (model.is_decoder) fail("is_decoder is true, which is not supported: expected false");
  if (model.padding < 0 || model.padding + 1 >= model.positions)
    fail("pad_token_id {}: expected 0 to {}, for positions count from behind it", model.padding,
         model.positions - 2);
  if (options.num_labels < 1)
    fail("the number of labels is {}: expected 1 or more", options.num_labels);
  Graph graph;
  ModuleBuilder builder(graph, model.initializer_range);
  const Value ids =
      builder.input("input_ids", {DType::I32, {Size::symbol("B"), Size::symbol("L")}});
  const Value mask = builder.add("attention_mask", "full_like", {ids}, {{"value", 1.0}});
  BertEmbeddings embeddings = model.embeddings("roberta.embeddings.");
  embeddings.first_position = model.padding + 1;
  Value x = bert_embeddings(builder, embeddings, ids);
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    x = encoder_layer(builder, model.layer_sizes(),
                      bert_layer_names(fmt::format("roberta.encoder.layer.{}.", layer)), x, mask);

  const EncoderEnd end{
      .classify =
          [&](Value encoded) {
            return first_token_classifier(builder, "tanh", model.classifier_dropout, model.hidden,
                                          options.num_labels, encoded);
          },
      .token_dropout = model.classifier_dropout,
      .language = {.vocabulary = model.vocabulary,
                   .width = model.hidden,
                   .eps = model.eps,
                   .activation = "gelu",
                   .dense = "lm_head.dense",
                   .activation_name = "lm_head.activation",
                   .norm = "lm_head.layer_norm",
                   .decoder = "lm_head.decoder",
                   .table = model.is_tied ? "roberta.embeddings.word_embeddings.weight"
                                          : "lm_head.decoder.weight",
                   .bias = model.is_tied ? "lm_head.bias" : "lm_head.decoder.bias"}};
  end_encoder(builder, end, options, x);
  return graph;
}

Attributes read_sizes(const Graph& graph, const Attributes&) {
  return bert_sizes_of(graph, "roberta.");
}

const Register registration{ModelFamily{
    .name = "roberta",
    .summary = "transformer encoder for classification and language modelling",
    .reads = Reads::Tokens,
    .token_keys = {.vocabulary = "vocab_size",
                   .length = "max_position_embeddings",
                   .padding = "pad_token_id",
                   .counts_behind_padding = true},
    .tasks = {{.name = "classify",
               .architecture = "RobertaForSequenceClassification",
               .inputs = {"input_ids", "attention_mask", "labels"},
               .label_layer = "classifier.out_proj"},
              {.name = "tokens",
               .architecture = "RobertaForTokenClassification",
               .inputs = {"input_ids", "attention_mask", "labels"},
               .label_layer = "classifier"},
              {.name = "mlm",
               .architecture = "RobertaForMaskedLM",
               .inputs = {"input_ids", "attention_mask", "labels"},
               .head = "lm_head.dense"},
              {.name = "encode",
               .architecture = "RobertaModel",
               .inputs = {"input_ids", "attention_mask"}}},
    .config =
        bert_config_keys({{"vocab_size", std::int64_t{50265}}, {"pad_token_id", std::int64_t{1}}}),
    .presets = {{"roberta-base",
                 {{"max_position_embeddings", std::int64_t{514}},
                  {"type_vocab_size", std::int64_t{1}},
                  {"layer_norm_eps", 1e-5}}}},
    .keys_without_default = {"classifier_dropout"},
    .stand_ins = {{"attention_mask", "attention_mask", "input_ids", 1}},
    .naming = {.base_prefix = "roberta.",
               .meaningless = {"embeddings.position_ids"},
               .tied = {{"lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight",
                         "tie_word_embeddings"},
                        // The decoder's bias has two names in a tied model, and files have either.
                        {"lm_head.decoder.bias", "lm_head.bias", "tie_word_embeddings"},
                        {"lm_head.bias", "lm_head.decoder.bias", "tie_word_embeddings"}}},
    .head_prefixes = {"roberta.pooler.", "classifier.", "lm_head."},
    .build = build,
    .read_sizes = read_sizes,
}};

}  // namespace
}  // namespace lathe::models::roberta
