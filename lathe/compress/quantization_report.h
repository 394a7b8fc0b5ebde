#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lathe/compress/calibrate.h"
#include "lathe/compress/quantizers.h"

/// What rounding did to a model: tensor by tensor, and layer by layer.
namespace lathe::compress {

/// One rounded tensor.
struct TensorReport {
  std::string tensor;
  TensorRole role = TensorRole::Weights;
  std::string format;
  std::int64_t elements = 0;  ///< 0 for activations, whose number is the batch's
  double bits = 0;            ///< an element takes, scales included
  double sqnr = 0;  ///< decibels; infinite where nothing was lost, NaN where nothing is known
  double share_of_error = 0;  ///< of the sum of all tensors' noise-to-signal ratios
};
/// Parameters are compared with their values in `original` where it has them: GPTQ leaves numbers
/// in `state` that rounding keeps.
std::vector<TensorReport> report_tensors(const Graph& graph, const State& state,
                                         const std::map<std::string, Observation>& observations,
                                         const State& original = {});

/// How a model does when one layer alone is rounded.
struct LayerSensitivity {
  std::string layer;
  double loss = 0, accuracy = 0;
};

/// The graph in which the quantizers that `layer` reads are the only ones, and its weights, if it
/// is an attention, the only rounded ones.
Graph quantize_only(const Graph& graph, const std::string& layer);

/// The layers that read quantizers or round within, in topological order.
std::vector<std::string> quantized_layers(const Graph& graph);

/// Bits of all parameters as they would be stored, and as floats.
struct ModelBits {
  double stored = 0, floats = 0;
};
ModelBits count_bits(const Graph& graph, const State& state);

}  // namespace lathe::compress
