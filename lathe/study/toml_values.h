#pragma once

#include <toml++/toml.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lathe/study/distribution.h"

/// What files of spaces have in common.
namespace lathe::study {

/// The text as TOML; errors begin with `source` and the line.
toml::table parse_toml(std::string_view text, const std::string& source);
/// The text of a file; errors name the table that it should hold.
std::string read_toml_file(const std::filesystem::path& path, std::string_view table);

/// `FILE:LINE` of a node.
std::string place_of(const toml::node& node, const std::string& source);
/// A table is sorted by name; people expect the order in which they wrote.
std::vector<std::pair<std::string, const toml::node*>> in_file_order(const toml::table& table);
/// Fails on a key that is not known, with the nearest one.
void require_keys(const toml::table& table, const std::vector<std::string>& known);

/// Fails on what is neither true, false, a number nor a text.
Choice choice_of(const toml::node& node);
/// Reads `{type = "float", low = 0, high = 1}` and the like; not validated.
Distribution distribution_of(const toml::table& table);

}  // namespace lathe::study
