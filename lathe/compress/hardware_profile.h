#pragma once

#include <string>
#include <vector>

#include "lathe/compress/quantization_rules.h"
#include "lathe/core/graph.h"

namespace lathe::compress {

/// What numbers are in hardware. Powers of two as scales make every requant a shift.
struct HardwareFormats {
  std::string weights = "fixed:8,auto";
  /// What multiplies with weights, what attention multiplies, what tables of functions take and
  /// give.
  std::string activations = "fixed:8,auto";
  /// What is added, normalized or given out: sums of layers and rows of embeddings.
  std::string residuals = "fixed:16,auto";
};

/// Rules that put quantizers everywhere in a graph, so that training sees what the integer graph
/// does and `lower_to_integer` finds no float. Biases, and weights and biases of norms, stay
/// floats: integers align them without a format of their own.
std::vector<QuantizationRule> hardware_rules(const Graph& graph, const HardwareFormats& formats);

}  // namespace lathe::compress
