#include "lathe/compress/shrinking/shrink.h"

#include <algorithm>

#include "lathe/compress/packed_weights.h"
#include "lathe/compress/shrinking/full_masks.h"
#include "lathe/compress/shrinking/idle_features.h"
#include "lathe/compress/shrinking/structure_cut.h"
#include "lathe/core/role.h"
#include "lathe/models/fit_config.h"

namespace lathe::compress {
namespace {

using Places = std::vector<std::int64_t>;

StructureSelection select_neurons(const std::vector<bool>& idle) {
  Places neurons;
  for (std::size_t i = 0; i < idle.size(); ++i)
    if (!idle[i]) neurons.push_back(static_cast<std::int64_t>(i));
  if (neurons.empty()) neurons.push_back(0);
  return keep_neurons(std::move(neurons));
}

// A group of heads that share keys goes if none of them works. The others keep as many heads each:
// those that work, and in a group with fewer than another some that do not.
StructureSelection select_heads(const Structure& structure, const std::vector<bool>& idle) {
  const std::int64_t sharing = structure.heads / structure.shared_heads;
  const auto works = [&](std::int64_t head) {
    const auto first = idle.begin() + head * structure.head_size;
    return std::find(first, first + structure.head_size, false) != first + structure.head_size;
  };
  std::vector<Places> groups(static_cast<std::size_t>(structure.shared_heads));
  for (std::int64_t head = 0; head < structure.heads; ++head)
    if (works(head)) groups[static_cast<std::size_t>(head / sharing)].push_back(head);
  if (std::ranges::all_of(groups, &Places::empty)) groups[0].push_back(0);
  std::size_t most = 0;
  for (const Places& group : groups) most = std::max(most, group.size());

  Places heads, shared_heads;
  for (std::int64_t shared = 0; shared < structure.shared_heads; ++shared) {
    Places& group = groups[static_cast<std::size_t>(shared)];
    if (group.empty()) continue;
    for (std::int64_t head = shared * sharing; group.size() < most; ++head)
      if (std::ranges::find(group, head) == group.end()) group.push_back(head);
    std::ranges::sort(group);
    shared_heads.push_back(shared);
    heads.insert(heads.end(), group.begin(), group.end());
  }
  return keep_heads(structure, heads, shared_heads);
}

class Shrinker {
 public:
  Shrinker(Graph& graph, State& state) : graph_(graph), state_(state) {}

  ShrinkReport run(const ShrinkOptions& options) {
    report_.parameters_before = num_elements(graph_, StateRole::Parameter);
    // Nodes keep their numbers while others are cut, so what was found stays true.
    const Structures structures = find_structures(graph_);
    for (const Structure& structure : structures.found)
      if (structure.is_attention() ? options.heads : options.neurons) shrink(structure);
    if (options.heads && has_masked_lines())
      report_.notes.insert(report_.notes.end(), structures.refused.begin(),
                           structures.refused.end());
    if (!report_.parts.empty()) drop_full_masks(graph_, state_);
    report_.parameters_after = num_elements(graph_, StateRole::Parameter);
    return std::move(report_);
  }

 private:
  // Whether any mask takes out a whole row or column, so that something might have gone.
  bool has_masked_lines() const {
    return std::ranges::any_of(states_of(graph_, StateRole::Mask), [&](NodeId id) {
      const Tensor& mask = state_.at(graph_.name(id));
      if (mask.rank() != 2) return false;
      std::vector<bool> rows(static_cast<std::size_t>(mask.dim(0))),
          columns(static_cast<std::size_t>(mask.dim(1)));
      for (std::int64_t i = 0; i < mask.num_elements(); ++i)
        if (mask.at(i) != 0)
          rows[static_cast<std::size_t>(i / mask.dim(1))] =
              columns[static_cast<std::size_t>(i % mask.dim(1))] = true;
      return std::ranges::find(rows, false) != rows.end() ||
             std::ranges::find(columns, false) != columns.end();
    });
  }

  // What masks cover and the outputs need all the same.
  void note_what_stays(const Structure& structure, const IdleFeatures& features) {
    const std::int64_t unit = structure.is_attention() ? structure.head_size : 1;
    const char* const what = structure.is_attention() ? "heads" : "neurons";
    if (const auto count = std::ranges::count(features.read_elsewhere, true) / unit; count > 0)
      report_.notes.push_back(
          fmt::format("\"{}\": {} {} stay: their columns are masked, but not in \"{}\"",
                      structure.name, count, what, graph_.name(features.other_readers.front())));
    if (const auto count = std::ranges::count(features.constant, true); count > 0)
      report_.notes.push_back(fmt::format(
          "\"{}\": {} {} stay: their rows are masked, but their bias or function leaves them "
          "other than zero",
          structure.name, count, what));
  }

  void shrink(const Structure& structure) {
    const IdleFeatures features = find_idle_features(graph_, state_, structure);
    note_what_stays(structure, features);
    const bool is_attention = structure.is_attention();
    const StructureSelection selection =
        is_attention ? select_heads(structure, features.idle) : select_neurons(features.idle);
    const ShrunkPart part{.name = structure.name,
                          .is_attention = is_attention,
                          .before = is_attention ? structure.heads : structure.features,
                          .after = is_attention
                                       ? selection.heads
                                       : static_cast<std::int64_t>(selection.features.size())};
    if (part.after == part.before) return;
    Graph graph = graph_;
    State state = state_;
    try {
      cut_structure(graph, state, structure, selection);
    } catch (const UserError& error) {
      report_.notes.push_back(fmt::format("\"{}\": {} of {} {} stay although they are masked: {}",
                                          part.name, part.before - part.after, part.before,
                                          is_attention ? "heads" : "neurons", error.message()));
      return;
    }
    graph_ = std::move(graph);
    state_ = std::move(state);
    report_.parts.push_back(part);
  }

  Graph& graph_;
  State& state_;
  ShrinkReport report_;
};

}  // namespace

ShrinkReport shrink(Graph& graph, State& state, const ShrinkOptions& options) {
  return Shrinker(graph, state).run(options);
}

ShrinkReport shrink(io::Model& model, const ShrinkOptions& options) {
  io::Model changed = model;
  const bool is_packed = !model.graph.nodes_of("decode").empty();
  if (is_packed) unpack_model(changed);
  const ShrinkReport report = shrink(changed.graph, changed.state, options);
  if (report.parts.empty()) return report;
  changed.config = models::fit_config(*changed.family, changed.config, changed.task, changed.graph);
  if (is_packed) pack_model(changed, !model.masters.empty());
  model = std::move(changed);
  return report;
}

}  // namespace lathe::compress
