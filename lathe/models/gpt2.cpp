#include <cmath>

#include "lathe/models/config_checks.h"
#include "lathe/models/family.h"
#include "lathe/models/fit_config.h"
#include "lathe/models/module_builder.h"

namespace lathe::models::gpt2 {
namespace {

// The decoder of Radford et al. 2019 as Hugging Face evaluates it: pre-norm layers, learned
// absolute positions, queries, keys and values from one linear. Nodes carry the module paths of its
// state dictionary. Its linears are Conv1D modules there, whose weights files hold as [inputs,
// outputs].

struct Gpt2 {
  std::int64_t vocabulary, hidden, layers, heads, intermediate, positions;
  double embedding_dropout, attention_dropout, residual_dropout, eps, initializer_range;
  std::string activation;
  bool scales_attention, scales_by_layer, is_tied;

  explicit Gpt2(const AttributeReader& config)
      : vocabulary(config.integer("vocab_size")),
        hidden(config.integer("n_embd")),
        layers(config.integer("n_layer")),
        heads(config.integer("n_head")),
        intermediate(config.is_given("n_inner") ? config.integer("n_inner") : 4 * hidden),
        positions(config.integer("n_positions")),
        embedding_dropout(config.real("embd_pdrop")),
        attention_dropout(config.real("attn_pdrop")),
        residual_dropout(config.real("resid_pdrop")),
        eps(config.real("layer_norm_epsilon")),
        initializer_range(config.real("initializer_range")),
        activation(config.text("activation_function")),
        scales_attention(config.flag("scale_attn_weights")),
        scales_by_layer(config.flag("scale_attn_by_inverse_layer_idx")),
        is_tied(config.flag("tie_word_embeddings")) {
    check_size("vocab_size", vocabulary);
    check_size("n_embd", hidden);
    check_size("n_head", heads);
    check_size("n_inner", intermediate);
    check_size("n_positions", positions);
    check_depth("n_layer", layers);
    if (hidden % heads != 0) fail("n_embd {} is not a multiple of n_head {}", hidden, heads);
    for (const double rate : {embedding_dropout, attention_dropout, residual_dropout})
      check_dropout(rate);
    for (const char* key : {"reorder_and_upcast_attn", "add_cross_attention"})
      if (config.flag(key)) fail("{} is true, which is not supported: expected false", key);
  }

  // The factor of a layer's scores; 0 for 1/sqrt(head size), which attention computes itself.
  double attention_scale(std::int64_t layer) const {
    if (scales_attention && !scales_by_layer) return 0;
    const double by_size =
        scales_attention ? 1 / std::sqrt(static_cast<double>(hidden / heads)) : 1;
    return scales_by_layer ? by_size / static_cast<double>(layer + 1) : by_size;
  }
};

// A projection back to the residual stream. Each adds to it, so that they start smaller the more of
// them there are.
Value projection(ModuleBuilder& builder, const Gpt2& gpt2, const std::string& name, Value x) {
  const Value y = builder.linear(name, x, gpt2.hidden);
  Graph& graph = builder.graph();
  graph.set_attribute(graph.at(name + ".weight"), "scale",
                      gpt2.initializer_range / std::sqrt(2.0 * static_cast<double>(gpt2.layers)));
  return y;
}

Value decoder_layer(ModuleBuilder& builder, const Gpt2& gpt2, std::int64_t layer, Value x,
                    Value mask) {
  const std::string prefix = fmt::format("transformer.h.{}.", layer);
  const std::string attention = prefix + "attn.", feed_forward = prefix + "mlp.";
  const Value joined = builder.linear(
      attention + "c_attn", builder.layer_norm(prefix + "ln_1", x, gpt2.eps), 3 * gpt2.hidden);
  const NodeId parts =
      builder
          .add(attention + "split", "split", {joined},
               {{"axis", std::int64_t{-1}},
                {"sizes", std::vector<std::int64_t>{gpt2.hidden, gpt2.hidden, gpt2.hidden}}})
          .node;
  Attributes attributes{{"heads", gpt2.heads},
                        {"causal", true},
                        {"dropout", gpt2.attention_dropout},
                        {"site", builder.next_site()}};
  if (const double scale = gpt2.attention_scale(layer); scale != 0) attributes["scale"] = scale;
  const Value context =
      builder.add(attention + "attention", "attention", {{parts, 0}, {parts, 1}, {parts, 2}, mask},
                  std::move(attributes));
  const Value projected = builder.dropout(attention + "resid_dropout",
                                          projection(builder, gpt2, attention + "c_proj", context),
                                          gpt2.residual_dropout);
  const Value attended = builder.add(attention + "add", "add", {projected, x});
  const Value wide =
      builder.linear(feed_forward + "c_fc", builder.layer_norm(prefix + "ln_2", attended, gpt2.eps),
                     gpt2.intermediate);
  const Value active =
      builder.activation(feed_forward + "act", "activation_function", gpt2.activation, wide);
  const Value narrow = builder.dropout(feed_forward + "dropout",
                                       projection(builder, gpt2, feed_forward + "c_proj", active),
                                       gpt2.residual_dropout);
  return builder.add(feed_forward + "add", "add", {narrow, attended});
}

Graph build_gpt2(const AttributeReader& config, const BuildOptions& options) {
  const Gpt2 gpt2(config);
  if (options.num_labels < 1)
    fail("the number of labels is {}: expected 1 or more", options.num_labels);
  Graph graph;
  ModuleBuilder builder(graph, gpt2.initializer_range);
  const Value ids =
      builder.input("input_ids", {DType::I32, {Size::symbol("B"), Size::symbol("L")}});
  const Value mask = builder.add("attention_mask", "full_like", {ids}, {{"value", 1.0}});
  const Value positions = builder.add("transformer.position_ids", "positions", {ids});
  const Value word = builder.embedding("transformer.wte", ids, gpt2.vocabulary, gpt2.hidden);
  const Value position =
      builder.embedding("transformer.wpe", positions, gpt2.positions, gpt2.hidden);
  Value x =
      builder.dropout("transformer.drop", builder.add("transformer.add", "add", {word, position}),
                      gpt2.embedding_dropout);
  for (std::int64_t layer = 0; layer < gpt2.layers; ++layer)
    x = decoder_layer(builder, gpt2, layer, x, mask);
  x = builder.layer_norm("transformer.ln_f", x, gpt2.eps);

  if (options.task == "classify") {
    const Value last = builder.add("last_token", "last_token", {x, mask});
    graph.set_output("logits", builder.linear("score", last, options.num_labels, false));
  } else if (options.task == "causal-lm") {
    const Value table = builder.state(gpt2.is_tied ? "transformer.wte.weight" : "lm_head.weight",
                                      {gpt2.vocabulary, gpt2.hidden}, "normal");
    graph.set_output("logits", builder.add("lm_head", "linear", {x, table}));
  } else {
    graph.set_output("last_hidden_state", x);
  }
  return graph;
}

Attributes sizes(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {{"n_layer", layers}, {"n_embd", hidden}, {"n_head", heads}};
}

Attributes read_sizes(const Graph& graph, const Attributes&) {
  Attributes sizes;
  if (const auto rows = num_rows(graph, "transformer.wte.weight")) sizes["vocab_size"] = *rows;
  if (const auto rows = num_rows(graph, "transformer.h.0.mlp.c_fc.weight"))
    sizes["n_inner"] = *rows;
  return sizes;
}

const Register registration{ModelFamily{
    .name = "gpt2",
    .summary = "transformer decoder for language modelling and classification",
    .reads = Reads::Tokens,
    .token_keys = {.vocabulary = "vocab_size", .length = "n_positions", .padding = "pad_token_id"},
    .tasks = {{.name = "causal-lm",
               .architecture = "GPT2LMHeadModel",
               .other_architectures = {"GPT2DoubleHeadsModel"},
               .inputs = {"input_ids", "attention_mask", "labels"}},
              {.name = "classify",
               .architecture = "GPT2ForSequenceClassification",
               .inputs = {"input_ids", "attention_mask", "labels"},
               .label_layer = "score"},
              {.name = "encode",
               .architecture = "GPT2Model",
               .inputs = {"input_ids", "attention_mask"}}},
    .config = {{"vocab_size", std::int64_t{50257}, "rows of the word embedding"},
               {"n_positions", std::int64_t{1024}, "longest sequence"},
               {"n_embd", std::int64_t{768}, "width of a token"},
               {"n_layer", std::int64_t{12}, "decoder layers"},
               {"n_head", std::int64_t{12}, "heads of each attention"},
               {"n_inner", std::int64_t{3072}, "width inside the feed-forward part, if not 4 wide"},
               {"activation_function", std::string("gelu_new"), "of the feed-forward part"},
               {"resid_pdrop", 0.1, "dropout after projections"},
               {"embd_pdrop", 0.1, "dropout after embeddings"},
               {"attn_pdrop", 0.1, "dropout on attention weights"},
               {"layer_norm_epsilon", 1e-5, "added to variances"},
               {"initializer_range", 0.02, "standard deviation of fresh weights"},
               {"scale_attn_weights", true, "divide scores by the root of the head size"},
               {"scale_attn_by_inverse_layer_idx", false,
                "divide scores by the layer's number too"},
               {"reorder_and_upcast_attn", false, "another order of rounding, not supported"},
               {"add_cross_attention", false, "attend to an encoder's tokens too"},
               {"bos_token_id", std::int64_t{50256}, "id that texts begin with"},
               {"eos_token_id", std::int64_t{50256}, "id that texts end with"},
               {"pad_token_id", std::int64_t{0}, "id that fills padded rows"},
               {"tie_word_embeddings", true, "predict words with the table they are read with"}},
    .presets = {{"gpt2", {}}, {"gpt2-tiny", sizes(2, 128, 2)}},
    .keys_without_default = {"n_inner", "pad_token_id"},
    .stand_ins = {{"attention_mask", "attention_mask", "input_ids", 1}},
    .naming = {.base_prefix = "transformer.",
               .transposed = {".c_attn.weight", ".c_proj.weight", ".c_fc.weight"},
               .meaningless = {".attn.bias", ".attn.masked_bias"},
               .tied = {{"lm_head.weight", "transformer.wte.weight", "tie_word_embeddings"}}},
    .head_prefixes = {"score.", "lm_head."},
    .build = build_gpt2,
    .read_sizes = read_sizes,
}};

}  // namespace
}  // namespace lathe::models::gpt2
