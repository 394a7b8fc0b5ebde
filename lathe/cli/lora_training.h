#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lathe/compress/lora.h"
#include "lathe/io/model.h"
#include "lathe/train/training_graph.h"

namespace lathe::cli {

/// Readies a model for training with LoRA and gives the names of the parameters that train. A run
/// that is resumed has its paths already, and its states say what trains.
std::vector<std::string> prepare_lora(io::Model& model, const compress::LoraOptions& options,
                                      const train::TrainingGraphOptions& training,
                                      const State* resumed, std::uint64_t seed);

/// Shows on standard error how many parameters train, and where.
void print_trained_parameters(const Graph& graph, const std::vector<std::string>& trained);

/// Writes the adapter alone beside the trained model: `adapter/` in PEFT's layout.
void save_trained_adapter(const std::filesystem::path& run, const io::Model& model,
                          const std::vector<std::string>& trained, const std::string& base);

}  // namespace lathe::cli
