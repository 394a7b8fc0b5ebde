#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/compress/integer/integer_lowering.h"

namespace lathe::compress {

/// Sums of products of an activation with a parameter, as integers: what linears and convolutions
/// share. Row j of the weight makes output j.
struct ExactSums {
  IntegerValue input;
  std::string weight_name, bias_name;
  std::vector<std::int64_t> weight;  ///< row by row
  std::vector<std::int64_t> weight_dims;
  std::vector<double> scales;     ///< of a sum; one, or one for each output
  std::vector<double> real_bias;  ///< one for each output; empty: none
  Value result;                   ///< what the sums are: the layer's, or its batch norm's
};

/// What a layer with the operands x, weight and bias? sums. A batch norm that alone reads it is
/// folded in: a factor of the scale and of the bias for each output, or of the weights' signs too.
/// Refuses the node and gives nothing
/// where one of them has no integers.
std::optional<ExactSums> exact_sums(IntegerLowering& lowering, NodeId node);

/// Adds a node of that op for the sums and sets what `node` became; refuses it where a sum needs
/// more than 64 bits. The bias is rounded to the sums' scale, to the nearest and ties to even.
void add_exact_sums(IntegerLowering& lowering, NodeId node, const std::string& op, ExactSums sums,
                    std::int64_t channel_axis);

}  // namespace lathe::compress
