#include "lathe/compress/pruning/gradual_pruning.h"

#include <algorithm>
#include <set>

#include "lathe/compress/lora.h"
#include "lathe/compress/pruning/insert_masks.h"
#include "lathe/train/movement.h"

namespace lathe::compress {
namespace {

std::vector<std::string> parameters_of(const PruningGroup& group) {
  std::set<std::string> names;
  for (const PruningUnit& unit : group.units)
    for (const GranulePart& part : unit.parts) names.insert(part.state);
  return {names.begin(), names.end()};
}

}  // namespace

GradualPruning::GradualPruning(Graph& graph, State& state, GradualOptions options,
                               std::uint64_t seed)
    : options_(std::move(options)), seed_(seed) {
  if (!options_.settings.sparsity && options_.settings.granularity.value_or(Granularity{}).kind !=
                                         Granularity::Kind::SomeOfSeveral)
    fail("sparsity: is missing: expected the share of weights to prune, such as sparsity=0.9");
  if (!find_lora(graph).empty())
    fail("the model has paths of LoRA: what is pruned while it trains are the weights themselves");
  plan_ = plan_pruning(graph, {.settings = options_.settings, .embeddings = options_.embeddings});
  State ones;
  for (const PruningGroup& group : plan_.groups) {
    const PruningEvidence evidence = find_pruning_method(group.method).evidence;
    if (evidence != PruningEvidence::None && evidence != PruningEvidence::Training)
      fail("method {}: looks at data before training: expected l1, lamp, movement or random",
           group.method);
    for (const std::string& name : parameters_of(group))
      if (!find_mask(graph, graph.at(name))) {
        Tensor mask(DType::F32, state.at(name).dims());
        std::ranges::fill(mask.mutable_data<float>(), 1.0f);
        ones[name] = std::move(mask);
      }
  }
  insert_masks(graph, state, ones);
}

std::vector<std::string> GradualPruning::movement() const {
  std::vector<std::string> names;
  for (const PruningGroup& group : plan_.groups)
    if (find_pruning_method(group.method).evidence == PruningEvidence::Training)
      for (const std::string& name : parameters_of(group)) names.push_back(name);
  return names;
}

void GradualPruning::before_step(const train::BeforeStep& at) const {
  const std::optional<double> share = gradual_share(options_, at.done, at.num_steps);
  if (!share) return;
  State state = at.executor.state();
  State changed;
  for (const PruningGroup& group : plan_.groups) {
    const PruningMethod& method = find_pruning_method(group.method);
    State values, held, movement;
    for (const std::string& name : parameters_of(group)) {
      values[name] = state.at(name);
      held[name] = state.at(at.graph.name(*find_mask(at.graph, at.graph.at(name))));
      if (method.evidence == PruningEvidence::Training)
        movement[name] = state.at(train::movement_name(name));
    }
    const State scores = method.score(
        {.units = group.units, .values = values, .seed = seed_, .movement = &movement});
    const State masks =
        select_masks(group.units, scores, *share * *group.sparsity, group.scope, held);
    for (const auto& [name, mask] : masks) {
      changed[at.graph.name(*find_mask(at.graph, at.graph.at(name)))] = mask;
      std::vector<std::string> cleared = train::moments_of(at.graph, name);
      cleared.push_back(name);
      for (const std::string& other : cleared) {
        Tensor tensor = std::move(state.at(other));
        clear_pruned(tensor, mask);
        changed[other] = std::move(tensor);
      }
    }
  }
  at.executor.set_state(changed);
}

bool GradualPruning::is_done(std::int64_t done, std::int64_t num_steps) const {
  return is_fully_pruned(options_, done, num_steps);
}

}  // namespace lathe::compress
