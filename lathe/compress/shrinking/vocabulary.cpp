#include "lathe/compress/shrinking/vocabulary.h"

#include <algorithm>

#include "lathe/compress/packed_weights.h"
#include "lathe/compress/pruning/prunable_weights.h"
#include "lathe/compress/shrinking/full_masks.h"
#include "lathe/compress/shrinking/masked_elements.h"
#include "lathe/compress/shrinking/parameter_cut.h"
#include "lathe/core/role.h"
#include "lathe/data/tokenized_dataset.h"
#include "lathe/models/fit_config.h"
#include "lathe/ops/evaluate_parameter.h"
#include "lathe/ops/weight_layout.h"
#include "lathe/train/make_source.h"

namespace lathe::compress {
namespace {

// The lookups of the ids that a model reads.
std::vector<NodeId> token_lookups(const Graph& graph) {
  std::vector<NodeId> lookups;
  for (const NodeId id : graph.topological_order()) {
    if (!find_operand(graph, id, OperandRole::Table)) continue;
    for (const Value& value : graph.inputs(id))
      if (!value.is_none() && graph.is(value.node, "input") &&
          graph.name(value.node) == "input_ids")
        lookups.push_back(id);
  }
  if (lookups.empty()) fail("the model looks no tokens up in a table");
  return lookups;
}

Value operand(const Graph& graph, NodeId id, OperandRole role) {
  return graph.input(id, operand_index(graph, id, role));
}

// The layer whose outputs are scores of tokens; no node where the model predicts something else.
NodeId token_predictor(const io::Model& model, std::int64_t rows) {
  const std::optional<Value> logits = model.graph.output("logits");
  if (!logits || !models::find_task(*model.family, model.task).label_layer.empty() ||
      model.graph.type(*logits).axis(-1) != Size(rows))
    return {};
  if (!find_operand(model.graph, logits->node, OperandRole::Weight))
    fail("its logits come from \"{}\" ({}), not from a layer", model.graph.name(*logits),
         model.graph.op(logits->node).name);
  return logits->node;
}

std::int64_t count_bytes(const State& state) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : state) bytes += tensor.num_bytes();
  return bytes;
}

// Returns how many rows there were.
std::int64_t cut_table(io::Model& model, const std::vector<std::int64_t>& rows) {
  const Graph& graph = model.graph;
  std::vector<ParameterCut> cuts;
  std::int64_t before = 0;
  for (const NodeId lookup : token_lookups(graph)) {
    const Value table = operand(graph, lookup, OperandRole::Table);
    before = graph.type(table).axis(0).constant();
    cuts.push_back({lookup, table, 0, rows});
  }
  if (const NodeId layer = token_predictor(model, before); layer.index >= 0) {
    const auto axis = static_cast<std::size_t>(ops::weight_axis(graph, layer));
    cuts.push_back({layer, operand(graph, layer, OperandRole::Weight), axis, rows});
    if (find_operand(graph, layer, OperandRole::Bias))
      cuts.push_back({layer, operand(graph, layer, OperandRole::Bias), 0, rows});
  }
  cut_parameters(model.graph, model.state, cuts);
  return before;
}

// What the configuration says of tokens: how many there are, and which one fills padded rows.
void renew_config(io::Model& model) {
  model.config = models::fit_config(*model.family, model.config, model.task, model.graph);
  const std::string& padding = model.family->token_keys.padding;
  if (padding.empty()) return;
  const std::int64_t id = model.tokenizer->padding_id();
  if (AttributeReader(model.config, model.family->config).integer(padding) != id)
    model.config[padding] = id;
}

}  // namespace

std::vector<std::int64_t> count_tokens(const data::Tokenizer& tokenizer,
                                       const data::Dataset& dataset, ThreadPool& pool) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(tokenizer.vocabulary_size()));
  const data::TokenizedDataset tokens =
      data::tokenize(dataset, tokenizer, data::Tokenizer::kNoLimit, data::Truncation::Head, pool);
  for (const std::int32_t id : tokens.ids) ++counts[static_cast<std::size_t>(id)];
  return counts;
}

std::string token_table(const Graph& graph) {
  const NodeId lookup = token_lookups(graph).front();
  for (const PrunableWeight& weight : find_prunable(graph))
    if (std::ranges::find(weight.readers, lookup) != weight.readers.end()) return weight.state;
  fail("\"{}\": its table is not a parameter", graph.name(lookup));
}

std::vector<std::int32_t> unmasked_tokens(const io::Model& model) {
  const Graph& graph = model.graph;
  std::vector<std::int32_t> tokens;
  const Value table = operand(graph, token_lookups(graph).front(), OperandRole::Table);
  const Tensor value = ops::evaluate_parameter(graph, model.state, table);
  const std::vector<bool> masked = masked_elements(graph, model.state, table, value);
  for (std::int64_t row = 0; row < value.dim(0); ++row) {
    const auto first = masked.begin() + row * value.dim(1);
    if (std::find(first, first + value.dim(1), false) != first + value.dim(1))
      tokens.push_back(static_cast<std::int32_t>(row));
  }
  return tokens;
}

VocabularyReport shrink_vocabulary(io::Model& model, const std::vector<std::int32_t>& tokens) {
  const data::SmallerTokenizer smaller = train::load_tokenizer(model)->with_tokens(tokens);
  const std::vector<std::int64_t> rows(smaller.kept.begin(), smaller.kept.end());
  io::Model changed = model;
  const bool is_packed = !model.graph.nodes_of("decode").empty();
  if (is_packed) unpack_model(changed);
  VocabularyReport report{.rows_after = static_cast<std::int64_t>(rows.size()),
                          .bytes_before = count_bytes(model.state)};
  report.rows_before = cut_table(changed, rows);
  drop_full_masks(changed.graph, changed.state);
  changed.tokenizer = smaller.tokenizer;
  renew_config(changed);
  if (is_packed) pack_model(changed, !model.masters.empty());
  report.bytes_after = count_bytes(changed.state);
  model = std::move(changed);
  return report;
}

double UnknownTokens::share() const {
  if (tokens_after == 0) return 0;
  return static_cast<double>(unknown_after - unknown_before) / static_cast<double>(tokens_after);
}

UnknownTokens compare_tokenizers(const data::Tokenizer& before, const data::Tokenizer& after,
                                 const data::Dataset& dataset, ThreadPool& pool) {
  const auto tokenized = [&](const data::Tokenizer& tokenizer) {
    return data::tokenize(dataset, tokenizer, data::Tokenizer::kNoLimit, data::Truncation::Head,
                          pool);
  };
  const data::TokenizedDataset old_ids = tokenized(before), new_ids = tokenized(after);
  UnknownTokens result{.texts = old_ids.size()};
  const auto count = [&](const data::TokenizedDataset& data, const data::Tokenizer& tokenizer) {
    return std::pair(
        static_cast<std::int64_t>(data.ids.size()) - data.size() * tokenizer.num_special(),
        std::ranges::count(data.ids, tokenizer.unknown_id()));
  };
  std::tie(result.tokens_before, result.unknown_before) = count(old_ids, before);
  std::tie(result.tokens_after, result.unknown_after) = count(new_ids, after);
  for (std::int64_t i = 0; i < result.texts; ++i) {
    const auto is_same = [&](std::int32_t old_id, std::int32_t new_id) {
      return before.token(old_id) == after.token(new_id);
    };
    if (!std::ranges::equal(old_ids.example(i), new_ids.example(i), is_same))
      ++result.changed_texts;
  }
  return result;
}

}  // namespace lathe::compress
