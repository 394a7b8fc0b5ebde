#include "lathe/cli/graph_source.h"

namespace lathe::cli {

void add_graph_options(Flags flags, GraphSource& source) {
  flags.add_option("--model", source.model.model,
                   "model directory (Hugging Face or Lathe), or a builder such as bert-tiny");
  flags.add_option("--graph", source.graph_file, "a graph's text or JSON file instead of a model");
  add_task_options(flags, source.model);
  flags.add_option("--passes", source.passes,
                   "passes to run first, such as remove-dropout,profile");
  flags.add_option("--data", source.data, "data for passes that measure");
  flags.add_option("--batches", source.batches, "batches of 8 texts to measure on [4]").at_least(1);
}

}  // namespace lathe::cli
