#pragma once

#include <filesystem>

#include "lathe/io/model.h"

namespace lathe::io::onnx {

/// Whether a model's name is that of an ONNX file.
bool is_onnx_file(const std::filesystem::path& path);

/// Reads an ONNX file as a model: its graph with composite ops where they are recognised, layers
/// named after their parameters, and what its inputs and outputs say of its task. A vocabulary and
/// a config.json beside the file say how texts are cut and what labels are called.
Model read_onnx_model(const std::filesystem::path& path);

}  // namespace lathe::io::onnx
