#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/registry.h"
#include "lathe/core/tensor.h"

namespace lathe {

/// The values of a graph's inputs in one run, by name.
using Feed = std::map<std::string, Tensor, std::less<>>;

/// What a pass may use besides the graph.
struct PassContext {
  Attributes options = {};       ///< checked against the pass's own specs
  State* state = nullptr;        ///< the states' values, for passes that execute or make some
  std::vector<Feed> feeds = {};  ///< example batches, for passes that measure
};

/// How much a pass changed, and what it has to say (an analysis says its findings).
struct PassResult {
  PassResult(int changes = 0, std::string text = {})  // NOLINT: an int is a result
      : changed(changes), report(std::move(text)) {}
  int changed = 0;
  std::string report;
};

/// A transformation or an analysis of a graph, known by name.
struct Pass {
  /// `int f(Graph&)`, or `PassResult f(Graph&, PassContext&)` for passes with options or findings.
  struct Function {
    Function() = default;
    template <typename F>
    Function(F function) {  // NOLINT(google-explicit-constructor)
      if constexpr (std::is_invocable_v<F, Graph&, PassContext&>)
        call = function;
      else
        call = [function](Graph& graph, PassContext&) { return PassResult(function(graph)); };
    }
    std::function<PassResult(Graph&, PassContext&)> call;
  };

  std::string name;
  std::string summary;
  Function run;
  std::vector<AttributeSpec> options = {};
  std::vector<std::string> keeps = {};  ///< annotations that stay true when it changes the graph
  bool is_idempotent = true;            ///< run twice, it finds nothing to do the second time
  bool needs_state = false;
  bool needs_feeds = false;
};

using PassRegistry = Registry<Pass>;

/// Runs one pass and verifies the graph after it.
PassResult run_pass(std::string_view name, Graph& graph, PassContext& context);
/// Runs a pass that needs nothing but the graph; returns how much changed.
int run_pass(std::string_view name, Graph& graph);

/// A pass with its options, as written: `measure-statistics{quantile=0.99}`.
struct PassInvocation {
  std::string name;
  Attributes options = {};
};

/// Passes in the order they run.
using Pipeline = std::vector<PassInvocation>;

/// Reads `infer-types, remove-dropout, profile{B=8, L=128}`.
Pipeline parse_pipeline(std::string_view text);
std::string to_text(const Pipeline& pipeline);

/// Runs a pipeline; `log` hears of every pass when it is done.
void run_pipeline(Graph& graph, const Pipeline& pipeline, PassContext& context,
                  const std::function<void(const PassInvocation&, const PassResult&)>& log = {});

}  // namespace lathe
