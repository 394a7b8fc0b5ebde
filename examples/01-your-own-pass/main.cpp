// Builds BERT-tiny, runs the two passes of this folder on it, and shows what became of the graph.
#include <fmt/format.h>
#include <lathe/core/graph_text.h>
#include <lathe/core/pass.h>
#include <lathe/models/family.h>

namespace {

void run() {
  const auto model = lathe::models::find_named_model("bert-tiny");
  lathe::Graph graph = lathe::models::build(*model->family, model->config, {.task = "classify"});
  const lathe::NodeId gelu = graph.nodes_of("gelu").front();
  fmt::print("{}\n", print(graph, gelu));

  // A node that others read cannot be erased: the error names it and its readers.
  try {
    graph.erase(gelu);
  } catch (const lathe::UserError& error) {
    fmt::print("refused: {}\n", error.what());
  }

  // Passes run in the order written, ours like those that Lathe brings. The graph is verified
  // after each.
  lathe::PassContext context;
  const auto pipeline = lathe::parse_pipeline(
      "count-linears, count-dropout, remove-dropout, replace-gelu, "
      "remove-dead-nodes, count-dropout");
  lathe::run_pipeline(graph, pipeline, context,
                      [](const lathe::PassInvocation& pass, const lathe::PassResult& result) {
                        fmt::print("{}: changed {}{}\n", pass.name, result.changed,
                                   result.report.empty() ? "" : ", found " + result.report);
                      });
  fmt::print("{}\n", print(graph, graph.nodes_of("relu").front()));
}

}  // namespace

int main() {
  try {
    run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
