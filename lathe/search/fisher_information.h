#pragma once

#include <map>
#include <string>
#include <vector>

#include "lathe/engine/executor.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/io/model.h"
#include "lathe/train/example_source.h"

namespace lathe::search {

/// The mean squared gradient of single examples' losses for the weights of a classifier's layers,
/// by layer: the diagonal of the empirical Fisher information.
using FisherInformation = std::map<std::string, std::vector<double>>;
FisherInformation fisher_information(const io::Model& model, train::ExampleSource& examples,
                                     std::int64_t most_examples,
                                     const engine::ExecutionOptions& execution,
                                     const experiment::Callbacks& callbacks = {});

/// How much the loss rises by that when a layer's weights become `rounded`'s: half the sum of the
/// squared changes, each times the information. Both models are floats.
double fisher_damage(const FisherInformation& information, const std::string& layer,
                     const io::Model& model, const io::Model& rounded);

}  // namespace lathe::search
