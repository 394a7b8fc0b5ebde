#include "lathe/compress/shrinking/structure_cut.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "lathe/compress/shrinking/parameter_cut.h"
#include "lathe/core/number_format.h"
#include "lathe/core/role.h"
#include "lathe/ops/weight_layout.h"

namespace lathe::compress {
namespace {

using Places = std::vector<std::int64_t>;

bool is_shared(OperandRole role) {
  return role == OperandRole::Key || role == OperandRole::Content;
}

// Whether rounding these features alone gives them the numbers that they have among the others.
bool rounds_alike(const FormatFacts& facts, const Places& kept, std::int64_t features) {
  if (facts.scale_source == ScaleSource::None) return true;
  if (facts.granularity == Granularity::Tensor) return facts.scale_source == ScaleSource::Given;
  if (facts.granularity == Granularity::Row || facts.block_columns == 0) return false;
  const std::set<std::int64_t> stays(kept.begin(), kept.end());
  for (std::int64_t i = 0; i < features; ++i)
    if (stays.contains(i) != stays.contains(i / facts.block_columns * facts.block_columns))
      return false;
  return true;
}

class StructureCutter {
 public:
  StructureCutter(Graph& graph, State& state, const Structure& structure,
                  const StructureSelection& selection)
      : graph_(graph), state_(state), structure_(structure), selection_(selection) {}

  void run() {
    collect_cuts();
    check_rounding();
    tell_nodes_between();
    cut_parameters(graph_, state_, parameter_cuts());
  }

 private:
  // Which outputs and inputs of a layer stay; nothing where all do.
  struct LayerCut {
    std::optional<Places> outputs, inputs;
  };

  const Places& kept(OperandRole role) const {
    return is_shared(role) ? selection_.shared_features : selection_.features;
  }
  std::int64_t num_features(OperandRole role) const {
    return is_shared(role) ? structure_.shared_heads * structure_.head_size : structure_.features;
  }

  // Weights are compared when they are cut, but what passes between layers is known in runs only.
  void check_rounding() const {
    for (const NodeId id : structure_.between) {
      if (!graph_.is(id, "quantize")) continue;
      const std::string& format = graph_.attribute(id).text("format");
      const std::int64_t features = graph_.types(id)[0].axis(-1).constant();
      if (!rounds_alike(parse_format(format)->facts(), stays_of(features), features))
        fail("\"{}\" rounds to {}, by scales that neighbours share", graph_.name(id), format);
    }
  }

  // What stays of so many features: those that readers read, those of keys, or, in front of a
  // split, all outputs of a layer.
  const Places& stays_of(std::int64_t features) const {
    for (const OperandRole role : {OperandRole::Query, OperandRole::Key})
      if (features == num_features(role)) return kept(role);
    for (const FeatureMaker& maker : structure_.makers)
      if (graph_.types(maker.layer)[0].axis(-1) == Size(features))
        return *cuts_.at(maker.layer).outputs;
    fail("not all of its features come from the same layers");
  }

  void collect_cuts() {
    std::map<NodeId, std::set<std::int64_t>> removed;
    for (const FeatureMaker& maker : structure_.makers) {
      std::set<std::int64_t>& gone = removed[maker.layer];
      for (std::int64_t i = 0; i < num_features(maker.role); ++i)
        if (!std::ranges::binary_search(kept(maker.role), i)) gone.insert(maker.first + i);
    }
    for (const auto& [layer, gone] : removed) {
      Places stays(static_cast<std::size_t>(graph_.types(layer)[0].axis(-1).constant()));
      std::iota(stays.begin(), stays.end(), std::int64_t{0});
      std::erase_if(stays, [&](std::int64_t place) { return gone.contains(place); });
      cuts_[layer].outputs = std::move(stays);
    }
    for (const NodeId reader : structure_.readers) cuts_[reader].inputs = selection_.features;
  }

  Value operand(NodeId layer, OperandRole role) const {
    return graph_.input(layer, operand_index(graph_, layer, role));
  }
  std::size_t output_axis(NodeId layer) const {
    if (graph_.type(operand(layer, OperandRole::Weight)).rank() != 2)
      fail("the weight of layer \"{}\" is no matrix", graph_.name(layer));
    return static_cast<std::size_t>(ops::weight_axis(graph_, layer));
  }

  std::vector<ParameterCut> parameter_cuts() const {
    std::vector<ParameterCut> cuts;
    for (const auto& [layer, cut] : cuts_) {
      const std::size_t axis = output_axis(layer);
      const Value weight = operand(layer, OperandRole::Weight);
      if (cut.outputs) cuts.push_back({layer, weight, axis, *cut.outputs});
      if (cut.inputs) cuts.push_back({layer, weight, 1 - axis, *cut.inputs});
      if (cut.outputs && find_operand(graph_, layer, OperandRole::Bias))
        cuts.push_back({layer, operand(layer, OperandRole::Bias), 0, *cut.outputs});
    }
    return cuts;
  }

  void tell_nodes_between() {
    if (!structure_.is_attention()) return;
    const NodeId attention = structure_.attention;
    graph_.set_attribute(attention, "heads", selection_.heads);
    if (graph_.attribute(attention).integer("kv_heads") != 0)
      graph_.set_attribute(attention, "kv_heads", selection_.shared_heads);
    std::set<NodeId> told;
    for (const auto& [node, source] : structure_.passages) {
      if (!told.insert(node).second) continue;
      if (graph_.is(node, "split"))
        tell_split(node, source);
      else
        graph_.set_attribute(node, "heads",
                             is_shared(source.role) ? selection_.shared_heads : selection_.heads);
    }
  }

  // A part is as large as what stays of the outputs that it consists of.
  void tell_split(NodeId split, const FeatureMaker& source) {
    const Places& stays = *cuts_.at(source.layer).outputs;
    std::vector<std::int64_t> sizes;
    std::int64_t begin = source.first;
    for (const std::int64_t size : graph_.attribute(split).integers("sizes")) {
      sizes.push_back(std::ranges::count_if(
          stays, [&](std::int64_t place) { return place >= begin && place < begin + size; }));
      begin += size;
    }
    graph_.set_attribute(split, "sizes", sizes);
  }

  Graph& graph_;
  State& state_;
  const Structure& structure_;
  const StructureSelection& selection_;
  std::map<NodeId, LayerCut> cuts_;
};

// The features of these heads.
Places spread(const Places& heads, std::int64_t head_size) {
  Places features;
  for (const std::int64_t head : heads)
    for (std::int64_t i = 0; i < head_size; ++i) features.push_back(head * head_size + i);
  return features;
}

}  // namespace

StructureSelection keep_neurons(Places neurons) {
  return {.features = std::move(neurons)};
}

StructureSelection keep_heads(const Structure& structure, const Places& heads,
                              const Places& shared_heads) {
  return {.features = spread(heads, structure.head_size),
          .shared_features = spread(shared_heads, structure.head_size),
          .heads = static_cast<std::int64_t>(heads.size()),
          .shared_heads = static_cast<std::int64_t>(shared_heads.size())};
}

void cut_structure(Graph& graph, State& state, const Structure& structure,
                   const StructureSelection& selection) {
  StructureCutter(graph, state, structure, selection).run();
}

}  // namespace lathe::compress
