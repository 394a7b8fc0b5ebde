#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

/// What a directory remembers of the options that its work was started with.
namespace lathe::experiment {

/// A path as it is wherever the work is resumed from; as given where nothing is there.
std::string absolute_path(const std::string& path);

/// Fails naming the first option that is asked for and was recorded with another value. `work` is
/// what the message calls it: "sweep".
void check_recorded(const nlohmann::json& asked, const nlohmann::json& recorded,
                    const std::string& work, const std::filesystem::path& directory);

}  // namespace lathe::experiment
