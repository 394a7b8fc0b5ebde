#include "lathe/compress/pruning/pruning_plan.h"

#include <algorithm>

#include "lathe/compress/layers.h"
#include "lathe/compress/lora.h"
#include "lathe/core/role.h"

namespace lathe::compress {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, const PruningRequest& request)
      : graph_(graph), request_(request), used_(request.rules.size(), false) {}

  PruningPlan run() {
    // The weights of each rule, and of none (the last).
    std::vector<std::vector<PrunableWeight>> weights(request_.rules.size() + 1);
    for (PrunableWeight& weight : find_prunable(graph_)) {
      const std::size_t rule = rule_of(weight);
      if (rule <= request_.rules.size()) weights[rule].push_back(std::move(weight));
    }
    for (std::size_t i = 0; i < weights.size(); ++i) add_group(i, std::move(weights[i]));
    add_activations();
    check_disjoint();
    for (std::size_t i = 0; i < request_.rules.size(); ++i)
      if (!used_[i] && request_.rules[i].by != MatchBy::Any)
        plan_.unused.push_back(
            fmt::format("{}: {}", request_.rules[i].place, request_.rules[i].match));
    if (plan_.groups.empty() && plan_.activations.empty())
      fail("nothing to prune: give a sparsity, or rules that match a layer");
    return std::move(plan_);
  }

 private:
  PruningSettings settings_of(std::size_t rule) const {
    return rule < request_.rules.size() ? filled(request_.rules[rule].settings, request_.settings)
                                        : request_.settings;
  }
  Granularity granularity_of(std::size_t rule) const {
    return settings_of(rule).granularity.value_or(Granularity{});
  }

  std::size_t rule_of(NodeId reader) {
    for (std::size_t i = 0; i < request_.rules.size(); ++i) {
      const PruningRule& rule = request_.rules[i];
      if (!matches(rule.by, rule.match, graph_.op(reader).name, graph_.name(reader))) continue;
      used_[i] = true;
      return i;
    }
    return request_.rules.size();
  }

  // The rule of a weight is that of its first reader; a number beyond all rules where it does not
  // count.
  std::size_t rule_of(const PrunableWeight& weight) {
    const std::size_t rule = rule_of(weight.readers.front());
    const bool is_named = rule < request_.rules.size() && request_.rules[rule].by != MatchBy::Any;
    const bool counts = !weight.is_table || request_.embeddings || is_named ||
                        granularity_of(rule).kind == Granularity::Kind::Vocabulary;
    return counts ? rule : request_.rules.size() + 1;
  }

  void add_group(std::size_t rule, std::vector<PrunableWeight> weights) {
    const PruningSettings settings = settings_of(rule);
    const Granularity granularity = granularity_of(rule);
    const bool is_vocabulary = granularity.kind == Granularity::Kind::Vocabulary;
    PruningGroup group{.place = rule < request_.rules.size() ? request_.rules[rule].place : "",
                       .method = settings.method.value_or(is_vocabulary ? "lookups" : "l1"),
                       .granularity = granularity,
                       .scope = {},
                       .sparsity = settings.sparsity,
                       .units = {}};
    if (!group.sparsity && granularity.kind == Granularity::Kind::SomeOfSeveral)
      group.sparsity = largest_sparsity(granularity);
    if (weights.empty() || (!is_vocabulary && group.sparsity.value_or(0) == 0)) return;
    const auto plan = [&] {
      PruningSettings complete = settings;
      complete.method = group.method;
      check_settings(complete);
      const PruningMethod& method = find_pruning_method(group.method);
      if (!group.sparsity && method.evidence != PruningEvidence::Lookups)
        fail("method {}: needs a sparsity", group.method);
      group.scope = settings.scope.value_or(method.scope);
      group.units = make_units(graph_, weights, granularity);
      check_scope(group, settings.scope.has_value());
    };
    if (group.place.empty())
      plan();
    else
      with_place(group.place, plan);
    plan_.groups.push_back(std::move(group));
  }

  // A row with one granule leaves no choice: by default the weight's granules are ranked then.
  static void check_scope(PruningGroup& group, bool is_asked_for) {
    if (group.scope != PruningScope::Row ||
        std::ranges::any_of(group.units, [](const PruningUnit& unit) { return unit.lines > 1; }))
      return;
    if (is_asked_for)
      fail("scope row: a row holds one granule of granularity {} at most: expected local or global",
           to_text(group.granularity));
    group.scope = PruningScope::Local;
  }

  void add_activations() {
    Graph base = graph_;  // what stands beside a layer is fed with it
    remove_lora(base);
    for (const Layer& layer : find_layers(base)) {
      const double share = settings_of(rule_of(layer.node)).activations.value_or(0);
      if (share > 0) plan_.activations.emplace_back(layer.node, share);
    }
  }

  // A weight that two groups prune would have two counts.
  void check_disjoint() const {
    std::map<std::string, const PruningGroup*> owners;
    for (const PruningGroup& group : plan_.groups)
      for (const PruningUnit& unit : group.units)
        for (const GranulePart& part : unit.parts) {
          const PruningGroup*& owner = owners[part.state];
          if (owner != nullptr && owner != &group)
            fail("{}: \"{}\" is pruned by {} as well",
                 group.place.empty() ? "options" : group.place, part.state,
                 owner->place.empty() ? "the options" : owner->place);
          owner = &group;
        }
  }

  const Graph& graph_;
  const PruningRequest& request_;
  std::vector<bool> used_;
  PruningPlan plan_;
};

}  // namespace

PruningPlan plan_pruning(const Graph& graph, const PruningRequest& request) {
  return Planner(graph, request).run();
}

}  // namespace lathe::compress
