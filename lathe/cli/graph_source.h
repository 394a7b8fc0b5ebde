#pragma once

#include <cstdio>
#include <string>

#include "lathe/cli/command.h"
#include "lathe/core/pass.h"
#include "lathe/io/model.h"

namespace lathe::cli {

/// Where a graph command takes its graph from and what it runs on it first.
struct GraphSource {
  ModelArguments model;
  std::string graph_file;
  std::string passes;
  std::string data;
  std::int64_t batches = 4;
};

struct GraphWithState {
  Graph graph;
  State state;
  std::vector<Feed> feeds;
};

void add_graph_options(Flags flags, GraphSource& source);

/// Builds or reads the graph; with `--data`, also the batches that measuring passes run on.
GraphWithState load_graph(const GraphSource& source, const Settings& settings);

/// Runs the passes asked for and writes what each did to `out`.
void run_passes(GraphWithState& loaded, const GraphSource& source, std::FILE* out);

}  // namespace lathe::cli
