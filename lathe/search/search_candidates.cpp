#include "lathe/search/search_candidates.h"

#include "lathe/compress/layer_match.h"
#include "lathe/compress/layers.h"
#include "lathe/core/error.h"
#include "lathe/search/space_file.h"

namespace lathe::search {
namespace {

// The layers of a trained model that a pattern names. Models that are built have layers of their
// own, which choose alike.
std::vector<std::string> layers_of(const std::string& pattern, const io::Model& model) {
  std::vector<std::string> layers;
  if (!model.fresh.empty()) return layers;
  const Graph& graph = model.graph;
  for (const compress::Layer& layer : compress::find_layers(graph))
    if (compress::matches(compress::MatchBy::Regex, pattern, graph.op(layer.node).name,
                          graph.name(layer.node)))
      layers.push_back(graph.name(layer.node));
  if (layers.empty()) fail("layers \"{}\": match no layer of the model", pattern);
  return layers;
}

study::Distribution only(std::int64_t value) {
  return study::CategoricalDistribution{{value}};
}

}  // namespace

SearchSpace space_for(const SearchOptions& options) {
  SearchSpace space = options.space_text.empty()
                          ? read_search_space(options.space)
                          : parse_search_space(options.space_text, options.space);
  const bool compresses = space.precision || space.pruning;
  if (options.model.empty() && compresses && !options.compresses)
    throw UserError(fmt::format("space {}: has formats or sparsities, which are of a trained model",
                                options.space),
                    "lathe search precision --model DIR, or lathe search compression");
  if ((!options.model.empty() || options.compresses) && !compresses)
    throw UserError(fmt::format("space {}: has no formats to choose from", options.space),
                    "add a table [precision.families] or [pruning], or take lab3");
  if (options.epochs) space.recipe["epochs"] = only(*options.epochs);
  if (options.epochs_after) space.recipe[kEpochsAfter] = only(*options.epochs_after);
  return space;
}

CandidateSpace candidates_of(const SearchSpace& space, const io::Model& model) {
  std::vector<std::string> layers, pruned;
  if (space.precision) layers = layers_of(space.precision->layers, model);
  if (space.pruning) pruned = layers_of(space.pruning->layers, model);
  return CandidateSpace(space, std::move(layers), std::move(pruned));
}

}  // namespace lathe::search
