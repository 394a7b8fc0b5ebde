#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

/// What a directory remembers of the options that its work was started with.
namespace lathe::experiment {

/// A path as it is wherever the work is resumed from; as given where nothing is there.
std::string absolute_path(const std::string& path);

/// The same as JSON can hold it: bytes that are no UTF-8 as `\xff`.
std::string recorded_path(const std::string& path);
/// The path that was recorded so.
std::string path_of_record(const std::string& recorded);

/// Fails naming the first option that is asked for and was recorded with another value. `work` is
/// what the message calls it: "sweep".
void check_recorded(const nlohmann::json& asked, const nlohmann::json& recorded,
                    const std::string& work, const std::filesystem::path& directory);

}  // namespace lathe::experiment
