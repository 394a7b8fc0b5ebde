#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lathe/core/graph.h"
#include "lathe/core/tensor.h"
#include "lathe/io/model.h"

/// Structured masks become a smaller graph: what a mask took out as a whole, neurons of
/// feed-forward parts and heads of attention, is no longer computed or stored. The outputs stay the
/// same.
namespace lathe::compress {

/// What may go.
struct ShrinkOptions {
  bool neurons = true;
  bool heads = true;
};

/// A feed-forward part or an attention that became smaller.
struct ShrunkPart {
  std::string name;  ///< of the attention, or of the first layer
  bool is_attention = false;
  std::int64_t before = 0, after = 0;  ///< neurons, or heads of queries
};

/// What came of it.
struct ShrinkReport {
  std::vector<ShrunkPart> parts;
  /// What is masked as a whole and stays nevertheless, with the reason: a line for each.
  std::vector<std::string> notes;
  std::int64_t parameters_before = 0, parameters_after = 0;  ///< learned numbers
};

/// Takes away the neurons and heads that masks make useless, with all that makes and reads them:
/// rows and columns of weights, elements of biases, masks, scales, the matrices of LoRA's paths.
/// Masks that are all ones afterwards go, others stay.
///
/// A neuron goes where its column in the layers that read it is masked, or where it is zero (its
/// row is masked, its bias is zero, and zero is what its function makes of that). A head goes
/// where its columns are; of heads that share keys, each group keeps as many. One of each stays.
/// Where rounding would give what is left other numbers, or somebody else reads a weight, the part
/// stays as it is and a note says why.
ShrinkReport shrink(Graph& graph, State& state, const ShrinkOptions& options = {});

/// The same for a model: packed weights are packed again, and its configuration says the new sizes
/// where it has words for them.
ShrinkReport shrink(io::Model& model, const ShrinkOptions& options = {});

}  // namespace lathe::compress
