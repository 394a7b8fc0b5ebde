#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/search/search_space.h"

namespace lathe::search {

/// Reads a space from TOML:
///
///     [architecture]
///     model = "bert-tiny"                      # the builder that sizes are changed of
///     layers = [2, 4, 8]
///     hidden = [128, 256]
///     projections = ["linear", "identity"]     # each square projection by itself
///     # or, of any family: model = "cnn:1x28x28,c{filters}k5,m2,10", filters = [4, 8]
///     [precision.families]                     # or [precision.weights] and [precision.data]
///     float = "float"
///     integer = {format = "fixed:{width},{fraction}", width = [8, 16], fraction = [4, 8]}
///     [recipe]
///     lr = {low = 1e-4, high = 1e-3, log = true}
///     epochs = 1
///
/// A value is one, a list, or a range of numbers. Errors begin with `source` and the line.
SearchSpace parse_search_space(std::string_view text, const std::string& source);

/// The space of a file, or one that is shipped, by its name: `lab2`.
SearchSpace read_search_space(const std::string& file_or_name);

/// The text that it reads.
std::string space_text(const std::string& file_or_name);

/// The text of a shipped space, and the names of all of them.
std::string_view shipped_space(std::string_view name);
std::vector<std::string> shipped_spaces();

}  // namespace lathe::search
