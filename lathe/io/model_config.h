#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lathe/io/model.h"

namespace lathe::io {

/// The family's own keys of a Hugging Face configuration; a key of the wrong kind fails by name,
/// null counts as absent.
Attributes read_family_config(const models::ModelFamily& family, const nlohmann::json& config);

/// The label names that `id2label` or `num_labels` give: "LABEL_0", ... where they have no own.
std::vector<std::string> read_label_names(const nlohmann::json& config);

/// What kind of labels `problem_type` says there are; one label alone is a number.
LabelKind read_label_kind(const nlohmann::json& config, std::size_t num_labels);

/// How examples were read when the model was trained, where the configuration says so.
Reading read_reading(const nlohmann::json& config);

/// The task of the family that the configuration's `architectures` names, if it names one.
std::optional<std::string> read_task(const models::ModelFamily& family,
                                     const nlohmann::json& config);

/// The configuration to write for a model: what was read, with its task, sizes and labels renewed.
nlohmann::json write_config(const Model& model);

}  // namespace lathe::io
