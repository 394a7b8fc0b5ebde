#include "lathe/models/deberta_config.h"

namespace lathe::models::deberta_v2 {
namespace {

// The second version, and the third, which is the same network (He et al. 2023), as Hugging Face
// evaluates it: far distances share rows by their logarithm, their rows may be normalized, and
// queries and keys of distances may be made by the layers that make those of tokens. The
// convolution beside the first layer, which the largest models have, is refused.

Graph build(const AttributeReader& config, const BuildOptions& options) {
  const DebertaConfig model(config);
  if (config.integer("conv_kernel_size") > 0)
    fail("conv_kernel_size {}: a convolution beside the first layer is not supported",
         config.integer("conv_kernel_size"));
  const std::int64_t head_size = config.integer("attention_head_size");
  if (head_size != 0 && head_size != model.hidden / model.sizes.heads)
    fail("attention_head_size {} is not supported: expected {}, hidden_size by num_attention_heads",
         head_size, model.hidden / model.sizes.heads);
  const std::string& norm = config.text("norm_rel_ebd");
  if (norm != "none" && norm != "layer_norm")
    throw unknown_name("norm_rel_ebd", norm, {"layer_norm", "none"});
  const std::int64_t buckets = std::max<std::int64_t>(0, config.integer("position_buckets"));
  const std::int64_t span = buckets > 0 ? buckets : model.max_relative;
  const bool is_shared = config.flag("share_att_key");
  Graph graph;
  ModuleBuilder builder(graph, model.initializer_range);
  builder.input("input_ids", {DType::I32, {Size::symbol("B"), Size::symbol("L")}});
  Value distances = kNone;
  if (model.is_relative) {
    distances =
        builder.state("deberta.encoder.rel_embeddings.weight", {2 * span, model.hidden}, "normal");
    if (norm == "layer_norm")
      distances = builder.layer_norm("deberta.encoder.LayerNorm", distances, model.sizes.eps);
  }
  build_deberta(builder, model, options, [&](const std::string& self, Value x) {
    const auto project = [&](const std::string& name, Value from) {
      return builder.linear(self + name, from, model.hidden);
    };
    DebertaProjections result{
        project("query_proj", x), project("key_proj", x), project("value_proj", x), {}};
    if (!model.is_relative) return result;
    // By the states of the layer that projects tokens, or of one of their own.
    const auto of_distances = [&](const std::string& shared, const std::string& own) {
      if (!is_shared) return project(own, distances);
      return builder.add(self + own, "linear",
                         {distances, builder.state(self + shared + ".weight", {}, "normal"),
                          builder.state(self + shared + ".bias", {}, "zeros")});
    };
    if (model.by_content) result.positions.keys = of_distances("key_proj", "pos_key_proj");
    if (model.by_position) result.positions.queries = of_distances("query_proj", "pos_query_proj");
    result.positions.buckets = buckets;
    result.positions.max_distance = model.max_relative;
    return result;
  });
  return graph;
}

std::vector<AttributeSpec> keys() {
  std::vector<AttributeSpec> keys =
      deberta_config_keys({{"vocab_size", std::int64_t{128100}},
                           {"hidden_size", std::int64_t{1536}},
                           {"num_hidden_layers", std::int64_t{24}},
                           {"num_attention_heads", std::int64_t{24}},
                           {"intermediate_size", std::int64_t{6144}}});
  keys.push_back({"position_buckets", std::int64_t{-1}, "rows of distances; -1: one for each"});
  keys.push_back({"share_att_key", false, "project distances by the layers of tokens"});
  keys.push_back({"norm_rel_ebd", std::string("none"), "layer_norm, or none"});
  keys.push_back({"attention_head_size", std::int64_t{0}, "0: hidden_size by heads"});
  keys.push_back({"conv_kernel_size", std::int64_t{0}, "of a convolution, which is not supported"});
  return keys;
}

// Those of Microsoft's models, of which the ones of version 2 have a convolution.
Attributes sizes(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {{"num_hidden_layers", layers},    {"hidden_size", hidden},
          {"num_attention_heads", heads},   {"intermediate_size", 4 * hidden},
          {"relative_attention", true},     {"pos_att_type", std::string("p2c|c2p")},
          {"position_biased_input", false}, {"position_buckets", std::int64_t{256}},
          {"share_att_key", true},          {"norm_rel_ebd", std::string("layer_norm")}};
}

const Register registration{ModelFamily{
    .name = "deberta-v2",
    .summary = "transformer encoder whose attention tells distances, versions 2 and 3",
    .reads = Reads::Tokens,
    .token_keys = {.vocabulary = "vocab_size",
                   .length = "max_position_embeddings",
                   .padding = "pad_token_id"},
    .tasks = deberta_tasks("DebertaV2"),
    .config = keys(),
    .presets = {{"deberta-v3-xsmall", sizes(12, 384, 6)},
                {"deberta-v3-small", sizes(6, 768, 12)},
                {"deberta-v3-base", sizes(12, 768, 12)},
                {"deberta-v3-large", sizes(24, 1024, 16)}},
    .keys_without_default = {"embedding_size", "pooler_hidden_size", "cls_dropout", "pos_att_type",
                             "attention_head_size", "conv_kernel_size"},
    .stand_ins = {{"attention_mask", "attention_mask", "input_ids", 1}},
    .naming = deberta_naming(),
    .head_prefixes = {"pooler.", "classifier.", "lm_predictions.", "cls.", "mask_predictions."},
    .build = build,
}};

}  // namespace
}  // namespace lathe::models::deberta_v2
