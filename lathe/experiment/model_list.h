#pragma once

#include <string>
#include <vector>

namespace lathe::experiment {

/// The models that a text names, separated by commas. A directory that has a comma in its name, or
/// a builder's name that does (`mlp:4,8`), is one model.
std::vector<std::string> model_list(const std::string& text);

}  // namespace lathe::experiment
