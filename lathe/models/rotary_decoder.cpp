#include "lathe/models/rotary_decoder.h"

#include "lathe/models/config_checks.h"
#include "lathe/models/fit_config.h"
#include "lathe/models/module_builder.h"

namespace lathe::models {
namespace {

struct RotaryDecoder {
  std::int64_t vocabulary, hidden, intermediate, layers, heads, kv_heads, head_size, positions;
  double eps, attention_dropout, initializer_range;
  std::string activation;
  bool is_tied;
  Attributes rotation;  // of rope, but for the number of heads
  RotaryDecoderBiases biases;

  RotaryDecoder(const AttributeReader& config, const RotaryDecoderBiases& its_biases)
      : vocabulary(config.integer("vocab_size")),
        hidden(config.integer("hidden_size")),
        intermediate(config.integer("intermediate_size")),
        layers(config.integer("num_hidden_layers")),
        heads(config.integer("num_attention_heads")),
        kv_heads(config.integer("num_key_value_heads")),
        head_size(config.integer("head_dim")),
        positions(config.integer("max_position_embeddings")),
        eps(config.real("rms_norm_eps")),
        attention_dropout(config.real("attention_dropout")),
        initializer_range(config.real("initializer_range")),
        activation(config.text("hidden_act")),
        is_tied(config.flag("tie_word_embeddings")),
        biases(its_biases) {
    check_size("vocab_size", vocabulary);
    check_size("hidden_size", hidden);
    check_size("intermediate_size", intermediate);
    check_size("num_attention_heads", heads);
    check_size("max_position_embeddings", positions);
    check_depth("num_hidden_layers", layers);
    check_dropout(attention_dropout);
    if (kv_heads == 0) kv_heads = heads;
    check_size("num_key_value_heads", kv_heads);
    if (heads % kv_heads != 0)
      fail("num_attention_heads {} is not a multiple of num_key_value_heads {}", heads, kv_heads);
    if (head_size == 0) {
      check_heads(hidden, heads);
      head_size = hidden / heads;
    }
    check_size("head_dim", head_size);
    if (head_size % 2 != 0)
      fail("heads have {} features, which cannot be turned in pairs: expected an even number",
           head_size);
    rotation = rope_attributes(config);
  }

  static Attributes rope_attributes(const AttributeReader& config) {
    const double theta = config.real("rope_theta");
    if (!(theta > 0)) fail("rope_theta is {}: expected above 0", theta);
    if (const double part = config.real("partial_rotary_factor"); part != 1)
      fail("partial_rotary_factor is {}, which is not supported: expected 1", part);
    Attributes attributes{{"theta", theta}};
    const std::string& kind = config.text("rope_type");
    const double factor = config.real("rope_factor");
    if (kind == "default") {
      if (factor != 1)
        fail("the factor of rope_type default is {}: expected 1, or linear or llama3", factor);
      return attributes;
    }
    if (kind != "linear" && kind != "llama3")
      fail("rope_type is \"{}\", which is not supported: expected default, linear or llama3", kind);
    if (!config.is_given("rope_factor"))
      fail("rope_type {} has no factor: expected 1 or more", kind);
    if (!(factor >= 1)) fail("the factor of rope_type {} is {}: expected 1 or more", kind, factor);
    attributes["factor"] = factor;
    if (kind == "linear") return attributes;
    const std::int64_t original = config.integer("original_max_position_embeddings");
    const double low = config.real("low_freq_factor"), high = config.real("high_freq_factor");
    if (original < 1)
      fail("original_max_position_embeddings is {}: rope_type llama3 expects 1 or more", original);
    if (!(low < high))
      fail(
          "low_freq_factor is {} and high_freq_factor {}: rope_type llama3 expects the latter "
          "above",
          low, high);
    attributes["original_positions"] = original;
    attributes["low_turns"] = low;
    attributes["high_turns"] = high;
    return attributes;
  }
};

Value turned(ModuleBuilder& builder, const RotaryDecoder& model, const std::string& name, Value x,
             Value positions, std::int64_t heads) {
  Attributes attributes = model.rotation;
  attributes["heads"] = heads;
  return builder.add(name, "rope", {x, positions}, std::move(attributes));
}

Value rotary_layer(ModuleBuilder& builder, const RotaryDecoder& model, std::int64_t layer, Value x,
                   Value positions, Value mask) {
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  const std::string attention = prefix + "self_attn.", feed_forward = prefix + "mlp.";
  const RotaryDecoderBiases& biases = model.biases;
  const Value normed = builder.rms_norm(prefix + "input_layernorm", x, model.eps);
  const auto project = [&](const char* name, std::int64_t heads) {
    return builder.linear(attention + name, normed, heads * model.head_size, biases.projections);
  };
  const Value query = turned(builder, model, attention + "q_rope", project("q_proj", model.heads),
                             positions, model.heads);
  const Value key = turned(builder, model, attention + "k_rope", project("k_proj", model.kv_heads),
                           positions, model.kv_heads);
  const Value value = project("v_proj", model.kv_heads);
  Attributes attributes{{"heads", model.heads},
                        {"causal", true},
                        {"dropout", model.attention_dropout},
                        {"site", builder.next_site()}};
  if (model.kv_heads != model.heads) attributes["kv_heads"] = model.kv_heads;
  const Value context = builder.add(attention + "attention", "attention", {query, key, value, mask},
                                    std::move(attributes));
  const Value output = builder.linear(attention + "o_proj", context, model.hidden, biases.output);
  const Value attended = builder.add(attention + "add", "add", {output, x});

  const Value read = builder.rms_norm(prefix + "post_attention_layernorm", attended, model.eps);
  const auto widen = [&](const char* name) {
    return builder.linear(feed_forward + name, read, model.intermediate, biases.feed_forward);
  };
  const Value gate = builder.activation(feed_forward + "act_fn", "hidden_act", model.activation,
                                        widen("gate_proj"));
  const Value gated = builder.add(feed_forward + "mul", "mul", {gate, widen("up_proj")});
  const Value narrow =
      builder.linear(feed_forward + "down_proj", gated, model.hidden, biases.feed_forward);
  return builder.add(feed_forward + "add", "add", {narrow, attended});
}

Attributes read_sizes(const Graph& graph, const Attributes&) {
  Attributes sizes;
  if (const auto rows = num_rows(graph, "model.embed_tokens.weight")) sizes["vocab_size"] = *rows;
  if (const auto rows = num_rows(graph, "model.layers.0.mlp.up_proj.weight"))
    sizes["intermediate_size"] = *rows;
  return sizes;
}

}  // namespace

Graph build_rotary_decoder(const AttributeReader& config, const RotaryDecoderBiases& biases,
                           const BuildOptions& options) {
  const RotaryDecoder model(config, biases);
  if (options.num_labels < 1)
    fail("the number of labels is {}: expected 1 or more", options.num_labels);
  Graph graph;
  ModuleBuilder builder(graph, model.initializer_range);
  const Value ids =
      builder.input("input_ids", {DType::I32, {Size::symbol("B"), Size::symbol("L")}});
  const Value mask = builder.add("attention_mask", "full_like", {ids}, {{"value", 1.0}});
  const Value positions = builder.add("model.position_ids", "positions", {ids});
  Value x = builder.embedding("model.embed_tokens", ids, model.vocabulary, model.hidden);
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    x = rotary_layer(builder, model, layer, x, positions, mask);
  x = builder.rms_norm("model.norm", x, model.eps);

  if (options.task == "classify") {
    const Value last = builder.add("last_token", "last_token", {x, mask});
    graph.set_output("logits", builder.linear("score", last, options.num_labels, false));
  } else if (options.task == "causal-lm") {
    const Value table =
        builder.state(model.is_tied ? "model.embed_tokens.weight" : "lm_head.weight",
                      {model.vocabulary, model.hidden}, "normal");
    graph.set_output("logits", builder.add("lm_head", "linear", {x, table}));
  } else {
    graph.set_output("last_hidden_state", x);
  }
  return graph;
}

ModelFamily rotary_decoder_family(const std::string& name, const std::string& title,
                                  const RotaryDecoderDefaults& defaults) {
  // What stood beside each other in `rope_theta` and `rope_scaling` is one object in newer files;
  // both are read everywhere if they are written as before.
  const auto scaling = [](const std::string& key) {
    return std::vector<std::string>{"rope_scaling." + key, "rope_parameters." + key};
  };
  return {
      .name = name,
      .summary = {},
      .reads = Reads::Tokens,
      .token_keys = {.vocabulary = "vocab_size",
                     .length = "max_position_embeddings",
                     .padding = "pad_token_id"},
      .tasks = {{.name = "causal-lm",
                 .architecture = title + "ForCausalLM",
                 .inputs = {"input_ids", "attention_mask", "labels"}},
                {.name = "classify",
                 .architecture = title + "ForSequenceClassification",
                 .inputs = {"input_ids", "attention_mask", "labels"},
                 .label_layer = "score"},
                {.name = "encode",
                 .architecture = title + "Model",
                 .inputs = {"input_ids", "attention_mask"}}},
      .config = {{"vocab_size", defaults.vocabulary, "rows of the word embedding"},
                 {"hidden_size", defaults.hidden, "width of a token"},
                 {"intermediate_size", defaults.intermediate, "width inside the feed-forward part"},
                 {"num_hidden_layers", defaults.layers, "decoder layers"},
                 {"num_attention_heads", defaults.heads, "query heads of each attention"},
                 {"num_key_value_heads", defaults.kv_heads,
                  "heads of keys and values; 0: as many as query heads"},
                 {"head_dim", std::int64_t{0}, "width of a head; 0: hidden_size over heads"},
                 {"hidden_act", std::string("silu"), "activation of the feed-forward part's gate"},
                 {"max_position_embeddings", defaults.positions, "longest sequence"},
                 {"rms_norm_eps", 1e-6, "added to mean squares"},
                 {"rope_theta", 10000.0, "base of the wavelengths of positions"},
                 {"rope_type", std::string("default"),
                  "how positions are stretched: default, linear, llama3"},
                 {"rope_factor", 1.0, "by how much they are stretched"},
                 {"partial_rotary_factor", 1.0, "share of a head's features that are turned"},
                 {"low_freq_factor", 1.0, "llama3: turns below which they are, wholly"},
                 {"high_freq_factor", 4.0, "llama3: turns above which they are not"},
                 {"original_max_position_embeddings", std::int64_t{0},
                  "llama3: positions in which turns are counted"},
                 {"attention_dropout", 0.0, "dropout on attention weights"},
                 {"initializer_range", 0.02, "standard deviation of fresh weights"},
                 {"pad_token_id", std::int64_t{0}, "id that fills padded rows"},
                 {"tie_word_embeddings", false, "predict words with the table they are read with"}},
      .presets = {},
      .keys_without_default = {"num_key_value_heads", "head_dim", "rope_type", "rope_factor",
                               "partial_rotary_factor", "low_freq_factor", "high_freq_factor",
                               "original_max_position_embeddings", "pad_token_id"},
      .config_places =
          {{"rope_theta", {"rope_theta", "rope_parameters.rope_theta", "rope_scaling.rope_theta"}},
           {"partial_rotary_factor",
            {"partial_rotary_factor", "rope_scaling.partial_rotary_factor",
             "rope_parameters.partial_rotary_factor"}},
           {"rope_type",
            {"rope_scaling.rope_type", "rope_scaling.type", "rope_parameters.rope_type"}},
           {"rope_factor", scaling("factor")},
           {"low_freq_factor", scaling("low_freq_factor")},
           {"high_freq_factor", scaling("high_freq_factor")},
           {"original_max_position_embeddings", scaling("original_max_position_embeddings")}},
      .stand_ins = {{"attention_mask", "attention_mask", "input_ids", 1}},
      .naming = {.base_prefix = "model.",
                 .meaningless = {".rotary_emb.inv_freq"},
                 .tied = {{"lm_head.weight", "model.embed_tokens.weight", "tie_word_embeddings"}}},
      .head_prefixes = {"score.", "lm_head."},
      .build = nullptr,
      .read_sizes = read_sizes,
  };
}

Attributes rotary_decoder_sizes(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                                std::int64_t kv_heads, std::int64_t intermediate) {
  return {{"num_hidden_layers", layers},
          {"hidden_size", hidden},
          {"num_attention_heads", heads},
          {"num_key_value_heads", kv_heads},
          {"intermediate_size", intermediate}};
}

}  // namespace lathe::models
