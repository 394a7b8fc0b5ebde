#include "lathe/compress/pruning/pruning_evidence.h"

#include <algorithm>

#include "lathe/compress/input_products.h"
#include "lathe/core/interrupt.h"
#include "lathe/core/role.h"
#include "lathe/data/batching.h"
#include "lathe/train/make_source.h"

namespace lathe::compress {
namespace {

// The input of a graph whose values are looked up in a table.
std::string looked_up(const Graph& graph, const PruningUnit& unit) {
  for (const NodeId reader : unit.layers)
    if (find_operand(graph, reader, OperandRole::Table))
      for (const Value& value : graph.inputs(reader))
        if (!value.is_none() && graph.is(value.node, "input")) return graph.name(value);
  fail("\"{}\": no input of the model is looked up in it", unit.name);
}

// The layers that multiply with a state.
std::vector<NodeId> readers_of(const std::vector<PrunableWeight>& weights,
                               const std::string& state) {
  const auto found = std::ranges::find(weights, state, &PrunableWeight::state);
  return found == weights.end() ? std::vector<NodeId>{} : found->readers;
}

}  // namespace

WeightProducts measure_weight_products(const io::Model& model, const PruningGroup& group,
                                       train::ExampleSource& examples, std::int64_t num_examples,
                                       const engine::ExecutionOptions& execution) {
  const InputProducts by_layer = measure_input_products(model, examples, num_examples, execution);
  const std::vector<PrunableWeight> weights = find_prunable(model.graph);
  WeightProducts products;
  for (const PruningUnit& unit : group.units)
    for (const GranulePart& part : unit.parts) {
      const std::vector<NodeId> readers = readers_of(weights, part.state);
      if (products.contains(part.state) || readers.empty()) continue;  // a bias
      std::vector<double>& sum = products[part.state];
      sum.resize(static_cast<std::size_t>(part.matrix_columns * part.matrix_columns), 0.0);
      for (const NodeId reader : readers) {
        const auto found = by_layer.find(model.graph.name(reader));
        if (found == by_layer.end() || found->second.size() != sum.size())
          throw UserError(
              fmt::format("layer \"{}\": {} needs rows that are multiplied with its weight, and a "
                          "{} has none",
                          model.graph.name(reader), group.method, model.graph.op(reader).name),
              "leave it out by a rule (sparsity = 0), or use another method");
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += found->second[i];
      }
    }
  return products;
}

TableLookups count_lookups(const io::Model& model, const PruningGroup& group,
                           train::ExampleSource& examples,
                           const std::function<bool(std::int64_t)>& progress) {
  constexpr std::int64_t kBatchTokens = 1 << 16;
  TableLookups counts;
  std::map<std::string, std::string> inputs;
  for (const PruningUnit& unit : group.units) {
    std::vector<std::int64_t>& rows = counts[unit.name];
    rows.resize(static_cast<std::size_t>(unit.granules), 0);
    inputs[unit.name] = looked_up(model.graph, unit);
    if (model.family == nullptr || model.family->reads != models::Reads::Tokens) continue;
    const std::shared_ptr<const data::Tokenizer> tokenizer = train::load_tokenizer(model);
    std::vector<std::int32_t> own = tokenizer->special_ids();
    own.insert(own.end(), {tokenizer->padding_id(), tokenizer->mask_id(), tokenizer->unknown_id()});
    for (const std::int32_t id : own)
      if (id >= 0 && id < unit.granules) ++rows[static_cast<std::size_t>(id)];
  }
  const data::BatchPlan plan =
      data::plan_batches(examples.lengths(), {.max_examples = 0, .max_tokens = kBatchTokens});
  std::int64_t done = 0;
  for (std::int64_t b = 0; b < plan.num_batches(); ++b) {
    const train::ExampleBatch batch = examples.evaluation_batch(plan.examples(b));
    for (auto& [table, rows] : counts)
      for (const std::int32_t id : batch.feed.at(inputs.at(table)).data<std::int32_t>())
        ++rows.at(static_cast<std::size_t>(id));
    done += static_cast<std::int64_t>(batch.examples.size());
    if (progress && !progress(done)) throw Interrupted();
  }
  return counts;
}

}  // namespace lathe::compress
