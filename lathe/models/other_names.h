#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lathe/models/family.h"

/// What another library than Hugging Face's calls the tensors of a family: files of both are read,
/// and can be written.
namespace lathe::models {

/// Such names, registered beside the family.
struct OtherNames {
  std::string name;     ///< the family's
  std::string library;  ///< torchvision
  /// Patterns that the library's names begin with, each with that of the states. In both, # stands
  /// for a number; + for one that counts from 1 where the states' # counts from 0.
  std::vector<std::pair<std::string, std::string>> patterns;
};

/// Whether the library has names for the family's tensors.
bool has_names_in(const ModelFamily& family, std::string_view library);

/// The state that another library's tensor is; the name itself where it is no such tensor's.
std::string name_from_elsewhere(const ModelFamily& family, std::string_view tensor);

/// What the family's other library calls a state.
std::string name_elsewhere(const ModelFamily& family, std::string_view state);

}  // namespace lathe::models
