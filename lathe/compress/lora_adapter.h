#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lathe/io/model.h"

namespace lathe::compress {

/// Writes what a run with LoRA trained, and nothing of the base model, as Hugging Face's PEFT lays
/// it out: adapter_config.json and adapter_model.safetensors.
///
/// `saved` are states that trained whole (a fresh head); `base` is where the base model was found.
/// The directory is made; files of an earlier adapter there are replaced.
void save_adapter(const std::filesystem::path& directory, const io::Model& model,
                  const std::vector<std::string>& saved, const std::string& base);

/// Adds the LoRA paths of a PEFT adapter to its base model, and takes the heads it brings along.
/// Fails, leaving the model as it was, when it does not fit.
void load_adapter(const std::filesystem::path& directory, io::Model& model);

}  // namespace lathe::compress
