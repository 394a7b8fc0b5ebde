#include "lathe/models/deberta_config.h"

namespace lathe::models::deberta {
namespace {

// The first version, as Hugging Face evaluates it: one linear without a bias gives queries, keys
// and values, head by head, and queries and values get biases of their own; every distance up to
// the longest has a row.

// One head's queries, keys and values lie side by side: [B,L,3n] as [B,L,heads,3d], cut in three.
std::vector<Value> split_heads(ModuleBuilder& builder, const DebertaConfig& model,
                               const std::string& self, Value all) {
  Graph& graph = builder.graph();
  const std::int64_t heads = model.sizes.heads, d = model.hidden / heads;
  const Size rows = graph.type(all).axis(0), length = graph.type(all).axis(1);
  const Value apart{graph.add({.name = self + "heads",
                               .op = "reshape",
                               .inputs = {all},
                               .types = {{DType::F32, {rows, length, heads, 3 * d}}}}),
                    0};
  const Value parts =
      builder.add(self + "split", "split", {apart},
                  {{"axis", std::int64_t{-1}}, {"sizes", std::vector<std::int64_t>{d, d, d}}});
  std::vector<Value> result;
  for (const char* const name : {"query", "key", "value"})
    result.push_back({graph.add({.name = self + name,
                                 .op = "reshape",
                                 .inputs = {{parts.node, static_cast<std::int32_t>(result.size())}},
                                 .types = {{DType::F32, {rows, length, model.hidden}}}}),
                      0});
  return result;
}

Graph build(const AttributeReader& config, const BuildOptions& options) {
  const DebertaConfig model(config);
  if (config.flag("talking_head")) fail("talking_head is true, which is not supported");
  Graph graph;
  ModuleBuilder builder(graph, model.initializer_range);
  builder.input("input_ids", {DType::I32, {Size::symbol("B"), Size::symbol("L")}});
  Value distances = kNone;
  if (model.is_relative)
    distances = builder.state("deberta.encoder.rel_embeddings.weight",
                              {2 * model.max_relative, model.hidden}, "normal");
  build_deberta(builder, model, options, [&](const std::string& self, Value x) {
    const std::vector<Value> parts = split_heads(
        builder, model, self, builder.linear(self + "in_proj", x, 3 * model.hidden, false));
    const auto with_bias = [&](const std::string& name, Value part) {
      return builder.add(self + name + "/add", "add",
                         {part, builder.state(self + name, {model.hidden}, "zeros")});
    };
    DebertaProjections result{
        with_bias("q_bias", parts[0]), parts[1], with_bias("v_bias", parts[2]), {}};
    if (model.is_relative && model.by_content)
      result.positions.keys = builder.linear(self + "pos_proj", distances, model.hidden, false);
    if (model.is_relative && model.by_position)
      result.positions.queries = builder.linear(self + "pos_q_proj", distances, model.hidden);
    return result;
  });
  return graph;
}

std::vector<AttributeSpec> keys() {
  std::vector<AttributeSpec> keys = deberta_config_keys({});
  keys.push_back({"talking_head", false, "whether heads are mixed, which is not supported"});
  return keys;
}

// Those of Microsoft's models.
Attributes sizes(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {{"num_hidden_layers", layers},   {"hidden_size", hidden},
          {"num_attention_heads", heads},  {"intermediate_size", 4 * hidden},
          {"relative_attention", true},    {"pos_att_type", std::string("c2p|p2c")},
          {"position_biased_input", false}};
}

const Register registration{ModelFamily{
    .name = "deberta",
    .summary = "transformer encoder whose attention tells distances, for inference",
    .reads = Reads::Tokens,
    .token_keys = {.vocabulary = "vocab_size",
                   .length = "max_position_embeddings",
                   .padding = "pad_token_id"},
    .tasks = deberta_tasks("Deberta"),
    .config = keys(),
    .presets = {{"deberta-base", sizes(12, 768, 12)},
                {"deberta-large", sizes(24, 1024, 16)},
                {"deberta-xlarge", sizes(48, 1024, 16)}},
    .keys_without_default = {"embedding_size", "pooler_hidden_size", "cls_dropout", "pos_att_type",
                             "talking_head"},
    .stand_ins = {{"attention_mask", "attention_mask", "input_ids", 1}},
    .naming = deberta_naming(),
    .head_prefixes = {"pooler.", "classifier.", "lm_predictions.", "cls."},
    .build = build,
}};

}  // namespace
}  // namespace lathe::models::deberta
