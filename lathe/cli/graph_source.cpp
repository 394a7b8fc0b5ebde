#include "lathe/cli/graph_source.h"

#include "lathe/core/graph_text.h"
#include "lathe/experiment/sample_feeds.h"
#include "lathe/io/graph_json.h"
#include "lathe/io/mapped_file.h"

namespace lathe::cli {
namespace {

Graph read_graph(const std::string& path) {
  const auto file = io::MappedFile::open(path);
  if (path.ends_with(".json")) return io::parse_graph_json(file->text(), path);
  return with_place(path, [&] {
    Graph graph = parse_graph(file->text());
    verify(graph);
    return graph;
  });
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
  if (!source.data.empty()) {
    ThreadPool pool(settings.threads);
    loaded.feeds = experiment::sample_feeds(
        model, {.data = source.data, .batches = source.batches, .seed = settings.seed}, &pool,
        is_interrupted);
  }
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
