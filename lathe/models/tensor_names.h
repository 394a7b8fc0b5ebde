#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lathe/models/family.h"

/// What a family's states are called in Hugging Face's files (`TensorNaming`).
namespace lathe::models {

/// The names a state may have in a file, the usual one first: with the base model's prefix, and
/// without it in a file of the base model alone.
std::vector<std::string> names_in_files(const ModelFamily& family, const std::string& state);

/// Whether files hold the state transposed.
bool is_transposed(const ModelFamily& family, std::string_view state);

/// Whether a tensor of a file says nothing about the model.
bool is_meaningless(const ModelFamily& family, std::string_view tensor);

/// Today's name of a tensor that an older file may call otherwise.
std::string current_name(const ModelFamily& family, std::string_view tensor);

/// Whether files may hold the tensor, a part of the base model, where no graph reads it.
bool may_be_unread(const ModelFamily& family, std::string_view tensor);

/// Whether a file made for another task may lack the state, so that it starts fresh.
bool belongs_to_head(const ModelFamily& family, std::string_view state);

}  // namespace lathe::models
