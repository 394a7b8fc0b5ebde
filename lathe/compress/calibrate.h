#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lathe/compress/quantizers.h"
#include "lathe/compress/range_rule.h"
#include "lathe/engine/executor.h"
#include "lathe/io/model.h"
#include "lathe/train/example_source.h"

/// Where scales come from: weights are looked at, activations are measured on data.
namespace lathe::compress {

/// Sets the scales (and zero points) of a quantizer of a parameter, or of every one of them, by the
/// values that it rounds.
void set_parameter_scale(const Graph& graph, State& state, const Quantizer& quantizer,
                         const RangeRule& rule);
void set_parameter_scales(const Graph& graph, State& state, const RangeRule& rule);

/// What was seen of the values that a quantizer rounds.
struct Observation {
  double minimum = 0, maximum = 0;
  std::int64_t count = 0;
  std::vector<float> sample;  ///< evenly taken from all
  std::vector<float> rows;    ///< some whole rows
};

/// Runs the model without rounding anything on `num_examples` of the dataset and observes what
/// every quantizer of an activation would round; by the quantizer's name. `progress` hears of the
/// examples done and may stop the work by returning false.
std::map<std::string, Observation> observe_activations(
    const io::Model& model, train::ExampleSource& examples, std::int64_t num_examples,
    const engine::ExecutionOptions& execution,
    const std::function<bool(std::int64_t)>& progress = {});

/// Sets the scales (and zero points) of every quantizer of an activation by what was observed.
void set_activation_scales(const Graph& graph, State& state,
                           const std::map<std::string, Observation>& observations,
                           const RangeRule& rule);

/// Whether a quantizer of an activation has a scale that must be measured.
bool needs_calibration(const Graph& graph);

}  // namespace lathe::compress
