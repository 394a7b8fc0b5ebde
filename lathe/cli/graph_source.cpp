#include "lathe/cli/graph_source.h"

#include "lathe/core/graph_text.h"
#include "lathe/data/dataset.h"
#include "lathe/io/graph_json.h"
#include "lathe/io/mapped_file.h"
#include "lathe/train/text_classifier.h"

namespace lathe::cli {
namespace {

constexpr std::int64_t kMeasuredRows = 8;
constexpr std::int64_t kMeasuredLength = 128;

Graph read_graph(const std::string& path) {
  const auto file = io::MappedFile::open(path);
  if (path.ends_with(".json")) return io::parse_graph_json(file->text(), path);
  return with_place(path, [&] {
    Graph graph = parse_graph(file->text());
    verify(graph);
    return graph;
  });
}

// A few padded batches of the data, with a tensor for each input the graph has.
std::vector<Feed> make_feeds(const GraphSource& source, const io::Model& model, const Graph& graph,
                             const Settings& settings) {
  const std::shared_ptr<const data::Tokenizer> tokenizer = train::load_tokenizer(model);
  const data::Dataset dataset = data::load_dataset(source.data, "train", is_interrupted);
  ThreadPool pool(settings.threads);
  const std::int64_t length = std::min(kMeasuredLength, train::max_length(model));
  const data::TokenizedDataset tokenized =
      data::tokenize(dataset, *tokenizer, length, data::Truncation::Head, pool, is_interrupted);
  const data::BatchPlan plan = data::plan_batches(
      tokenized.lengths(),
      {.max_examples = kMeasuredRows, .order = data::BatchOrder::Shuffled, .seed = settings.seed});
  std::vector<Feed> feeds;
  for (std::int64_t b = 0; b < std::min(source.batches, plan.num_batches()); ++b) {
    const data::Batch batch = data::make_batch(tokenized, plan.examples(b));
    const data::PaddedBatch padded = data::to_padded(batch, tokenizer->padding_id());
    const auto tensor = [](std::vector<std::int64_t> dims, const std::vector<std::int32_t>& v) {
      return Tensor::from<std::int32_t>(std::move(dims), std::span<const std::int32_t>(v));
    };
    Feed feed;
    const std::vector<std::int64_t> dims{padded.num_rows, padded.length};
    feed["input_ids"] = tensor(dims, padded.ids);
    feed["attention_mask"] = tensor(dims, padded.mask);
    feed["token_type_ids"] = Tensor(DType::I32, dims);
    feed["labels"] = tensor({batch.num_sequences()}, batch.labels);
    for (const NodeId id : graph.nodes_of("input"))
      if (!feed.contains(graph.name(id)))
        fail("--data: the graph's input \"{}\" cannot be made from text", graph.name(id));
    feeds.push_back(std::move(feed));
  }
  return feeds;
}

}  // namespace

GraphWithState load_graph(const GraphSource& source, const Settings& settings) {
  GraphWithState loaded;
  if (source.model.model.empty() == source.graph_file.empty())
    fail("give either --model or --graph");
  if (!source.graph_file.empty()) {
    loaded.graph = read_graph(source.graph_file);
    return loaded;
  }
  io::Model model = io::load_model(source.model.model, {.task = source.model.task,
                                                        .inputs = source.model.inputs,
                                                        .num_labels = source.model.num_labels,
                                                        .seed = settings.seed});
  if (!source.data.empty()) loaded.feeds = make_feeds(source, model, model.graph, settings);
  loaded.graph = std::move(model.graph);
  loaded.state = std::move(model.state);
  return loaded;
}

void run_passes(GraphWithState& loaded, const GraphSource& source, std::FILE* out) {
  if (source.passes.empty()) return;
  PassContext context;
  context.state = loaded.state.empty() ? nullptr : &loaded.state;
  context.feeds = loaded.feeds;
  run_pipeline(loaded.graph, parse_pipeline(source.passes), context,
               [&](const PassInvocation& invocation, const PassResult& result) {
                 if (!result.report.empty()) {
                   const bool is_long = result.report.find('\n') != std::string::npos;
                   fmt::print(out, "{}:{}{}\n", invocation.name, is_long ? "\n" : " ",
                              result.report);
                 } else {
                   fmt::print(out, "{}: {} change{}\n", invocation.name, result.changed,
                              result.changed == 1 ? "" : "s");
                 }
               });
}

}  // namespace lathe::cli
