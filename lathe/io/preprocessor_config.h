#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "lathe/data/image_reading.h"
#include "lathe/models/family.h"

/// How a model's images are prepared, as Hugging Face writes it: preprocessor_config.json.
namespace lathe::io {

inline constexpr const char* kPreprocessorName = "preprocessor_config.json";

/// What such a file says. Fails, without a place, on what is asked for and not known here, and on
/// what is asked for and not said: defaults differ from one of its programs to the next.
data::ImageReading read_preprocessor_config(const nlohmann::json& config);

/// The file for a reading.
nlohmann::json write_preprocessor_config(const data::ImageReading& reading);

/// What the file in a model's directory says, beside an ONNX file in the one it lies in; nothing is
/// done to images where there is none. For families that read texts no file is looked at.
data::ImageReading read_images_of(const std::filesystem::path& model,
                                  const models::ModelFamily& family);

/// Writes the file where a reading does anything: the one in the directory `from`, where there is
/// one that says the same, as it is found.
void write_images(const std::filesystem::path& directory, const data::ImageReading& reading,
                  const std::filesystem::path& from);

}  // namespace lathe::io
