#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "lathe/data/token_models/bpe_model.h"

namespace lathe::data {

/// The two tokens of a merge that is written with a space between them.
std::pair<std::string, std::string> parse_merge(std::string_view text);

}  // namespace lathe::data
