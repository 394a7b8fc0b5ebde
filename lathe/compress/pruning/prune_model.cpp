#include "lathe/compress/pruning/prune_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/compress/lora.h"
#include "lathe/compress/pruning/insert_masks.h"
#include "lathe/compress/pruning/insert_value_pruning.h"
#include "lathe/compress/pruning/pruning_evidence.h"

namespace lathe::compress {
namespace {

void check_finite(const State& values) {
  for (const auto& [name, tensor] : values) {
    const std::span<const float> elements = tensor.data<float>();
    for (std::size_t i = 0; i < elements.size(); ++i)
      if (!std::isfinite(elements[i]))
        fail("state \"{}\": element {} is {}, which has no rank among weights", name, i,
             elements[i]);
  }
}

// What is zero already goes first, whatever a method thinks of it.
void put_zeros_first(State& scores, const State& values) {
  for (auto& [name, tensor] : scores) {
    const std::span<const float> elements = values.at(name).data<float>();
    const std::span<float> of = tensor.mutable_data<float>();
    for (std::size_t i = 0; i < of.size(); ++i)
      if (elements[i] == 0) of[i] = -std::numeric_limits<float>::infinity();
  }
}

// Masks of exactly what scores 0.
State unscored_masks(const State& scores) {
  State masks = scores;
  for (auto& [name, tensor] : masks)
    for (float& value : tensor.mutable_data<float>()) value = value == 0 ? 0.0f : 1.0f;
  return masks;
}

class Pruner {
 public:
  Pruner(io::Model& model, const PruneOptions& options, train::ExampleSource* calibration,
         const engine::ExecutionOptions& execution,
         const std::function<bool(std::int64_t)>& progress)
      : model_(model),
        options_(options),
        calibration_(calibration),
        execution_(execution),
        progress_(progress) {}

  PruneResult run() {
    PruningPlan plan = plan_pruning(model_.graph, options_.request);
    for (const PruningGroup& group : plan.groups) check_evidence(group);
    const std::vector<PrunableWeight> prunable = find_prunable(model_.graph);
    const State held = find_masks(model_.graph, model_.state);
    // All is measured on the model as it came, and only then changed.
    State masks, values;
    for (const PruningGroup& group : plan.groups) prune(group, held, masks, values);
    for (auto& [name, tensor] : values) model_.state[name] = std::move(tensor);
    insert_masks(model_.graph, model_.state, masks);
    for (const auto& [layer, share] : plan.activations)
      insert_value_pruning(model_.graph, layer, share);

    PruneResult result{.groups = std::move(plan.groups),
                       .units = {},
                       .activations = static_cast<int>(plan.activations.size()),
                       .left = {},
                       .unused_rules = std::move(plan.unused)};
    for (const PrunableWeight& weight : prunable)
      if (!masks.contains(weight.state)) result.left.push_back(weight.state);
    const State final_masks = find_masks(model_.graph, model_.state);
    for (const PruningGroup& group : result.groups)
      for (const PruningUnit& unit : group.units) {
        UnitReport report = report_unit(unit, final_masks);
        report.granularity = to_text(group.granularity);
        report.method = group.method;
        result.units.push_back(std::move(report));
      }
    return result;
  }

 private:
  void check_evidence(const PruningGroup& group) const {
    const PruningEvidence evidence = find_pruning_method(group.method).evidence;
    if (evidence == PruningEvidence::Training)
      fail("method {}: its scores come from training: expected another method here", group.method);
    if (evidence != PruningEvidence::None && calibration_ == nullptr)
      throw UserError(fmt::format("method {}: looks at data, and there is none", group.method),
                      "calibrate D gives it some");
  }

  void prune(const PruningGroup& group, const State& held, State& masks, State& values) {
    const PruningMethod& method = find_pruning_method(group.method);
    const State current = weight_values(model_.graph, model_.state, group.units);
    check_finite(current);
    WeightProducts products;
    TableLookups lookups;
    if (method.evidence == PruningEvidence::Inputs)
      products = measure_weight_products(model_, group, *calibration_,
                                         options_.calibration_examples, execution_);
    if (method.evidence == PruningEvidence::Lookups)
      lookups = count_lookups(model_, group, *calibration_, progress_);
    const ScoringInput input{.units = group.units,
                             .values = current,
                             .seed = options_.seed,
                             .products = &products,
                             .lookups = &lookups};
    if (method.prune && group.sparsity) {
      for (const PruningUnit& unit : group.units)
        move_weights(method, input, unit, *group.sparsity, held, masks, values);
      return;
    }
    State scores = method.score(input);
    if (!group.sparsity) {
      masks.merge(unscored_masks(scores));
      return;
    }
    put_zeros_first(scores, current);
    masks.merge(select_masks(group.units, scores, *group.sparsity, group.scope, held));
  }

  void move_weights(const PruningMethod& method, const ScoringInput& input, const PruningUnit& unit,
                    double sparsity, const State& held, State& masks, State& values) const {
    const std::string& name = unit.name;
    for (const LoraPath& path : find_lora(model_.graph))
      if (std::find(unit.layers.begin(), unit.layers.end(), path.linear) != unit.layers.end())
        throw UserError(fmt::format("linear \"{}\": {} moves its weight, which a LoRA path adds to",
                                    path.name, method.name),
                        "fuse it into the weights first: lathe lora fuse");
    const auto before = held.find(name);
    PrunedWeight pruned =
        method.prune(input, unit, sparsity, before == held.end() ? nullptr : &before->second);
    masks[name] = std::move(pruned.mask);
    values[name] = std::move(pruned.values);
  }

  io::Model& model_;
  const PruneOptions& options_;
  train::ExampleSource* calibration_;
  const engine::ExecutionOptions& execution_;
  const std::function<bool(std::int64_t)>& progress_;
};

}  // namespace

State weight_values(const Graph& graph, const State& state, std::span<const PruningUnit> units) {
  State values;
  for (const PruningUnit& unit : units)
    for (const GranulePart& part : unit.parts)
      if (!values.contains(part.state)) values[part.state] = state.at(part.state);
  add_lora_products(graph, state, values);
  for (const auto& [name, mask] : find_masks(graph, state)) {
    const auto value = values.find(name);
    if (value != values.end()) clear_pruned(value->second, mask);
  }
  return values;
}

PruneResult prune_model(io::Model& model, const PruneOptions& options,
                        train::ExampleSource* calibration,
                        const engine::ExecutionOptions& execution,
                        const std::function<bool(std::int64_t)>& progress) {
  return Pruner(model, options, calibration, execution, progress).run();
}

}  // namespace lathe::compress
