#pragma once

#include <string>

#include "lathe/io/model.h"
#include "lathe/models/family.h"

namespace lathe::io {

/// The family of a model directory or of a builder's name, found without reading weights where the
/// configuration names it.
const models::ModelFamily& model_family(const std::string& directory_or_name);

/// How examples were read when a model was trained, from its configuration alone.
Reading model_reading(const std::string& directory_or_name);

/// What is done to a model's images, from the file that says it alone.
data::ImageReading model_images(const std::string& directory_or_name);

}  // namespace lathe::io
