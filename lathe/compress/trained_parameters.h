#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lathe/io/model.h"

namespace lathe::compress {

/// The states that train beside LoRA's because no file had values for them: a head. Of a model that
/// is fresh altogether, only the states of its family's heads.
std::vector<std::string> fresh_head(const io::Model& model);

/// What a model with LoRA paths trains: their states, and the fresh ones.
std::vector<std::string> lora_parameters(const Graph& graph, const std::vector<std::string>& fresh);

/// Takes the rounding of these parameters away, so that they train as floats; returns those that
/// were rounded. Scales that were made for numbers nobody had trained are frozen while LoRA trains,
/// and would clip what these become.
std::vector<std::string> unround_parameters(Graph& graph, State& state,
                                            const std::vector<std::string>& names);

/// The parameters that a run trained, by what it left: those whose moments are among its states.
/// `training_graph` trains every parameter by the run's optimizer.
std::vector<std::string> parameters_with_moments(const Graph& training_graph, const State& left);

/// How many parameters a module has: the linear `a.b` with all of `a.b.weight`, `a.b.bias` and its
/// LoRA path's.
struct ModuleParameters {
  std::string module;
  std::int64_t trained = 0;
  std::int64_t frozen = 0;
};

/// Every module with parameters, in the graph's order.
std::vector<ModuleParameters> count_parameters(const Graph& graph,
                                               const std::vector<std::string>& trained);

/// "a.b" for "a.b.weight" and "a.b.bias".
std::string module_of(std::string_view state_name);

}  // namespace lathe::compress
