#include "lathe/engine/lower.h"

#include "lathe/core/pass.h"
#include "lathe/engine/attention_statistics.h"
#include "lathe/engine/bound_value.h"
#include "lathe/engine/channels_last.h"
#include "lathe/engine/fusions.h"
#include "lathe/engine/packed_weights.h"
#include "lathe/engine/sparse_gradients.h"

namespace lathe::engine {

void prepare_inference(Graph& graph) {
  if (changes_parameters(graph)) return;
  run_pass("remove-dropout", graph);
  run_pass("remove-dead-nodes", graph);  // a dead reader would keep rows alive
  run_pass("select-rows-early", graph);
}

namespace {

void clean(Graph& graph) {
  run_pass("remove-dead-nodes", graph);
  graph.sort();
}

}  // namespace

Graph lower(const Graph& graph, const Backend& backend) {
  Graph lowered = graph;
  lowered.sort();
  prepare_inference(lowered);
  run_pass("eliminate-common-subexpressions", lowered);
  clean(lowered);
  use_channels_last(lowered, backend);
  clean(lowered);
  fuse_convolutions(lowered, backend);
  clean(lowered);
  // Dead nodes would count as readers, so each fusion starts from a clean graph.
  fuse_activations(lowered, backend);
  fuse_residuals(lowered, backend);
  clean(lowered);
  // After what a linear can take in, and before tables could be summed unpacked.
  fuse_packed_linears(lowered, backend);
  fuse_packed_tables(lowered, backend);
  clean(lowered);
  // What could not be fused with a weight that is no state can be with codes.
  fuse_activations(lowered, backend);
  fuse_residuals(lowered, backend);
  clean(lowered);
  // Before layer norms, which would take the last addition of a sum of embeddings away.
  fuse_embeddings(lowered, backend);
  clean(lowered);
  fuse_layer_norms(lowered, backend);
  clean(lowered);
  make_embedding_gradients_sparse(lowered, backend);
  share_attention_statistics(lowered, backend);
  verify(lowered);
  return lowered;
}

}  // namespace lathe::engine
