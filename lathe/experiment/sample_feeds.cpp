#include "lathe/experiment/sample_feeds.h"

#include <algorithm>

#include "lathe/data/batching.h"
#include "lathe/experiment/read_data.h"
#include "lathe/train/make_source.h"

namespace lathe::experiment {
namespace {

constexpr std::int64_t kRows = 8;
constexpr std::int64_t kLength = 128;

// A language model is evaluated on some of its tokens, but its own graph takes a label for each:
// then every token is to be predicted.
void label_every_token(const Graph& graph, Feed& feed) {
  const auto labels = feed.find("labels");
  const auto tokens = feed.find("input_ids");
  const std::optional<NodeId> input = graph.find("labels");
  if (labels == feed.end() || tokens == feed.end() || !input) return;
  if (labels->second.dims().size() != graph.types(*input)[0].shape.size())
    labels->second = tokens->second;
}

}  // namespace

std::vector<Feed> sample_feeds(const io::Model& model, const SampleOptions& options,
                               ThreadPool* pool, const ShouldStop& should_stop) {
  const data::Dataset examples = read_examples(model, options.data, "train", 0, should_stop);
  const auto source =
      train::make_evaluation_source(model, examples,
                                    {.objective = train::objective_of(model),
                                     .length = std::min(kLength, train::max_length(model)),
                                     .is_padded = true},
                                    pool, should_stop);
  const data::BatchPlan plan = data::plan_batches(
      source->lengths(),
      {.max_examples = kRows, .order = data::BatchOrder::Shuffled, .seed = options.seed});
  std::vector<Feed> feeds;
  for (std::int64_t b = 0; b < std::min(options.batches, plan.num_batches()); ++b) {
    Feed feed = source->evaluation_batch(plan.examples(b)).feed;
    label_every_token(model.graph, feed);
    for (const NodeId id : model.graph.nodes_of("input"))
      if (!feed.contains(model.graph.name(id)))
        fail("data: the graph's input \"{}\" cannot be made from it", model.graph.name(id));
    feeds.push_back(std::move(feed));
  }
  return feeds;
}

}  // namespace lathe::experiment
