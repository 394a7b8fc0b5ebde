#pragma once

#include <optional>
#include <string>

#include "lathe/compress/pruning/prune_model.h"
#include "lathe/data/dataset.h"
#include "lathe/experiment/callbacks.h"

namespace lathe::experiment {

/// What of a model is pruned, and by what. A text that is empty leaves the choice to the rules,
/// then to the method.
struct PruneOptions {
  std::string method = {};              ///< l1 where nobody says
  std::optional<double> sparsity = {};  ///< of the weights that count
  std::string scope = {};               ///< row, local or global
  std::string granularity = {};  ///< element, 2:4, 1x16, row, column, head, neuron, vocabulary
  std::string rules = {};        ///< TOML file of rules by layer, which come first
  bool embeddings = false;       ///< tables count too
  double activations = 0;        ///< share of each row of a layer's input that counts as 0
  std::string calibrate = {};    ///< data whose train split some methods look at
  std::int64_t calibration_examples = 256;
  std::uint64_t seed = 0;
  bool operator==(const PruneOptions&) const = default;
};

/// The rules and settings that the options say. Fails on a wrong one before any long work.
compress::PruneOptions to_request(const PruneOptions& options);

/// A pruned model and what was done to it.
struct Pruned {
  io::Model model;
  compress::PruneResult result;
};

/// Prunes a model. One that is packed is unpacked for it, from its masters where it has them, and
/// packed again. `calibration` may be null where no method looks at data.
Pruned prune(const io::Model& original, const PruneOptions& options,
             train::ExampleSource* calibration, const engine::ExecutionOptions& execution,
             const Callbacks& callbacks = {});
/// The same on the data that the options name.
Pruned prune(const io::Model& original, const PruneOptions& options,
             const engine::ExecutionOptions& execution, const Callbacks& callbacks = {});

}  // namespace lathe::experiment
