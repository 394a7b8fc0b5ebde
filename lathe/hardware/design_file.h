#pragma once

#include <filesystem>

#include "lathe/hardware/emission.h"
#include "lathe/hardware/mapping/design.h"

/// A design as a directory: what is emitted, design.json and tables.safetensors.
namespace lathe::hardware {

/// Writes the emitted files and what `read_design` needs below a folder, which is made.
void write_design(const Design& design, const std::filesystem::path& folder);

/// Reads it back, without the metadata of layers.
Design read_design(const std::filesystem::path& folder);

/// The emitted files as they are in the folder now, whoever changed them. Fails naming one that is
/// missing.
Emission read_emission(const Design& design, const std::filesystem::path& folder);

}  // namespace lathe::hardware
