#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/experiment/pipeline/pipeline_config.h"
#include "lathe/io/model.h"
#include "lathe/train/example_source.h"

namespace lathe::experiment {

/// What a compression is to reach, where its stages are left open: one of the two.
struct CompressionTarget {
  std::string size = {};                ///< `10x`, `1MB`
  std::optional<double> max_loss = {};  ///< points of accuracy
};

/// The stages that bring a classifier to a target: formats for each layer and table, chosen by what
/// they cost in this storage and what the model loses with that one rounded alone on `examples`,
/// then training with the original as teacher.
///
/// `original` was read from a directory, and its files' bytes count. Fails before any training when
/// the target cannot be met, with the smallest size that can.
std::vector<StageSpec> plan_stages(const io::Model& original, const CompressionTarget& target,
                                   io::Storage storage, train::ExampleSource& examples,
                                   const engine::ExecutionOptions& execution,
                                   const Callbacks& callbacks = {});

/// Fails, with the smallest size that can be met, where a size cannot. Runs no example.
void check_size_target(const io::Model& original, const std::string& size, io::Storage storage,
                       const engine::ExecutionOptions& execution, const Callbacks& callbacks = {});

}  // namespace lathe::experiment
