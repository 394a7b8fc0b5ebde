#include <CLI/App.hpp>

#include "lathe/cli/graph_source.h"

namespace lathe::cli {

void add_graph_options(CLI::App& app, GraphSource& source) {
  app.add_option("--model", source.model.model,
                 "model directory (Hugging Face or Lathe), or a builder such as bert-tiny");
  app.add_option("--graph", source.graph_file, "a graph's text or JSON file instead of a model");
  add_task_options(app, source.model);
  app.add_option("--passes", source.passes, "passes to run first, such as remove-dropout,profile");
  app.add_option("--data", source.data, "data for passes that measure");
  app.add_option("--batches", source.batches, "batches of 8 texts to measure on [4]");
}

}  // namespace lathe::cli
