#include "lathe/models/config_checks.h"
#include "lathe/models/encoder_end.h"
#include "lathe/models/family.h"
#include "lathe/models/fit_config.h"
#include "lathe/models/module_builder.h"

namespace lathe::models::distilbert {
namespace {

// BERT with half of its layers, taught by the whole (Sanh et al. 2019), as Hugging Face evaluates
// it: no token types, no pooler, nothing dropped behind an attention's output, and norms whose
// epsilon no configuration changes.
constexpr double kEps = 1e-12;

struct DistilBert {
  std::int64_t vocabulary, hidden, layers, heads, intermediate, positions;
  double dropout, attention_dropout, classifier_dropout, initializer_range;
  std::string activation;
  bool is_tied;

  explicit DistilBert(const AttributeReader& config)
      : vocabulary(config.integer("vocab_size")),
        hidden(config.integer("dim")),
        layers(config.integer("n_layers")),
        heads(config.integer("n_heads")),
        intermediate(config.integer("hidden_dim")),
        positions(config.integer("max_position_embeddings")),
        dropout(config.real("dropout")),
        attention_dropout(config.real("attention_dropout")),
        classifier_dropout(config.real("seq_classif_dropout")),
        initializer_range(config.real("initializer_range")),
        activation(config.text("activation")),
        is_tied(config.flag("tie_word_embeddings")) {
    check_size("vocab_size", vocabulary);
    check_size("dim", hidden);
    check_size("n_heads", heads);
    check_size("hidden_dim", intermediate);
    check_size("max_position_embeddings", positions);
    check_depth("n_layers", layers);
    if (hidden % heads != 0) fail("dim {} is not a multiple of n_heads {}", hidden, heads);
    for (const double rate : {dropout, attention_dropout, classifier_dropout}) check_dropout(rate);
  }
};

Value embeddings(ModuleBuilder& builder, const DistilBert& model, Value ids) {
  const std::string prefix = "distilbert.embeddings.";
  const Value positions = builder.add(prefix + "position_ids", "positions", {ids});
  const Value word =
      builder.embedding(prefix + "word_embeddings", ids, model.vocabulary, model.hidden);
  const Value position =
      builder.embedding(prefix + "position_embeddings", positions, model.positions, model.hidden);
  const Value sum = builder.add(prefix + "add", "add", {word, position});
  return builder.dropout(prefix + "dropout", builder.layer_norm(prefix + "LayerNorm", sum, kEps),
                         model.dropout);
}

EncoderNames layer_names(std::int64_t layer) {
  const std::string prefix = fmt::format("distilbert.transformer.layer.{}.", layer);
  return {.query = prefix + "attention.q_lin",
          .key = prefix + "attention.k_lin",
          .value = prefix + "attention.v_lin",
          .attention = prefix + "attention.attention",
          .output = prefix + "attention.out_lin",
          .output_dropout = {},
          .output_add = prefix + "attention.add",
          .output_norm = prefix + "sa_layer_norm",
          .wide = prefix + "ffn.lin1",
          .activation = prefix + "ffn.activation",
          .narrow = prefix + "ffn.lin2",
          .narrow_dropout = prefix + "ffn.dropout",
          .narrow_add = prefix + "ffn.add",
          .narrow_norm = prefix + "output_layer_norm"};
}

Graph build(const AttributeReader& config, const BuildOptions& options) {
  const DistilBert model(config);
  if (options.num_labels < 1)
    fail("the number of labels is {}: expected 1 or more", options.num_labels);
  Graph graph;
  ModuleBuilder builder(graph, model.initializer_range);
  const Value ids =
      builder.input("input_ids", {DType::I32, {Size::symbol("B"), Size::symbol("L")}});
  const Value mask = builder.add("attention_mask", "full_like", {ids}, {{"value", 1.0}});
  Value x = embeddings(builder, model, ids);
  const EncoderSizes sizes{.hidden = model.hidden,
                           .heads = model.heads,
                           .intermediate = model.intermediate,
                           .hidden_dropout = model.dropout,
                           .attention_dropout = model.attention_dropout,
                           .eps = kEps,
                           .activation = model.activation,
                           .activation_key = "activation"};
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    x = encoder_layer(builder, sizes, layer_names(layer), x, mask);

  const EncoderEnd end{
      .classify =
          [&](Value encoded) {
            const Value first = first_token(builder, "first_token", encoded);
            const Value active = builder.add(
                "relu", "relu", {builder.linear("pre_classifier", first, model.hidden)});
            const Value dropped = builder.dropout("dropout", active, model.classifier_dropout);
            return builder.linear("classifier", dropped, options.num_labels);
          },
      .token_dropout = model.dropout,
      .language = {.vocabulary = model.vocabulary,
                   .width = model.hidden,
                   .eps = kEps,
                   .activation = model.activation,
                   .activation_key = "activation",
                   .dense = "vocab_transform",
                   .activation_name = "activation",
                   .norm = "vocab_layer_norm",
                   .decoder = "vocab_projector",
                   .table = model.is_tied ? "distilbert.embeddings.word_embeddings.weight"
                                          : "vocab_projector.weight",
                   .bias = "vocab_projector.bias"}};
  end_encoder(builder, end, options, x);
  return graph;
}

Attributes read_sizes(const Graph& graph, const Attributes&) {
  Attributes sizes;
  if (const auto rows = num_rows(graph, "distilbert.embeddings.word_embeddings.weight"))
    sizes["vocab_size"] = *rows;
  if (const auto rows = num_rows(graph, "distilbert.transformer.layer.0.ffn.lin1.weight"))
    sizes["hidden_dim"] = *rows;
  return sizes;
}

const Register registration{ModelFamily{
    .name = "distilbert",
    .summary = "half of BERT's encoder, for classification and language modelling",
    .reads = Reads::Tokens,
    .token_keys = {.vocabulary = "vocab_size",
                   .length = "max_position_embeddings",
                   .padding = "pad_token_id"},
    .tasks = {{.name = "classify",
               .architecture = "DistilBertForSequenceClassification",
               .inputs = {"input_ids", "attention_mask", "labels"},
               .label_layer = "classifier"},
              {.name = "tokens",
               .architecture = "DistilBertForTokenClassification",
               .inputs = {"input_ids", "attention_mask", "labels"},
               .label_layer = "classifier"},
              {.name = "mlm",
               .architecture = "DistilBertForMaskedLM",
               .inputs = {"input_ids", "attention_mask", "labels"},
               .head = "vocab_transform"},
              {.name = "encode",
               .architecture = "DistilBertModel",
               .inputs = {"input_ids", "attention_mask"}}},
    .config = {{"vocab_size", std::int64_t{30522}, "rows of the word embedding"},
               {"dim", std::int64_t{768}, "width of a token"},
               {"n_layers", std::int64_t{6}, "encoder layers"},
               {"n_heads", std::int64_t{12}, "heads of each attention"},
               {"hidden_dim", std::int64_t{3072}, "width inside the feed-forward part"},
               {"activation", std::string("gelu"), "activation of the feed-forward part"},
               {"dropout", 0.1, "dropout after embeddings and feed-forward parts"},
               {"attention_dropout", 0.1, "dropout on attention weights"},
               {"seq_classif_dropout", 0.2, "dropout before the classifier"},
               {"max_position_embeddings", std::int64_t{512}, "longest sequence"},
               {"initializer_range", 0.02, "standard deviation of fresh weights"},
               {"pad_token_id", std::int64_t{0}, "id that fills padded rows"},
               {"tie_word_embeddings", true, "predict words with the table they are read with"}},
    .presets = {{"distilbert-base", {}}},
    .stand_ins = {{"attention_mask", "attention_mask", "input_ids", 1}},
    .naming = {.base_prefix = "distilbert.",
               .meaningless = {"embeddings.position_ids"},
               .tied = {{"vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight",
                         "tie_word_embeddings"}}},
    .head_prefixes = {"pre_classifier.", "classifier.", "vocab_"},
    .build = build,
    .read_sizes = read_sizes,
}};

}  // namespace
}  // namespace lathe::models::distilbert
