#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lathe/data/dataset.h"
#include "lathe/experiment/callbacks.h"
#include "lathe/experiment/fine_tune_options.h"
#include "lathe/io/model.h"
#include "lathe/train/training_checkpoint.h"

/// The model that a run trains, from its directory or builder to what its training begins with.
namespace lathe::experiment {

/// The inputs of a graph that is trained: it needs its loss, and with it the input of labels.
std::vector<std::string> inputs_with_labels(const models::ModelFamily& family,
                                            const std::string& task);

/// Loads the model with what the examples need: their loss, a head for their labels where it has
/// none that fits, token types for pairs. One that is packed is unpacked.
io::Model load_student(const FineTuneOptions& options, const data::Dataset& examples);

/// Writes into the model what whoever runs it must know of its examples.
void remember_reading(io::Model& model, const FineTuneOptions& options);

/// Warns of a pattern that freezes nothing, which is a typing error as a rule.
void warn_of_idle_patterns(const FineTuneOptions& options, const Graph& graph,
                           const Callbacks& callbacks);

/// Puts LoRA's paths into a model; of one that is resumed they are there. Returns what trains.
std::vector<std::string> prepare_lora(io::Model& model, const FineTuneOptions& options,
                                      const train::TrainingCheckpoint* resumed,
                                      const Callbacks& callbacks);

/// Writes what LoRA trained as an adapter into the run's directory; warns where it cannot be one.
void save_adapter(const std::filesystem::path& run, const io::Model& model,
                  const std::vector<std::string>& trained, const std::string& base,
                  const Callbacks& callbacks);

}  // namespace lathe::experiment
