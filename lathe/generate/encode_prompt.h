#pragma once

#include <string_view>
#include <vector>

#include "lathe/data/tokenizer.h"

namespace lathe::generate {

/// The ids of a text to go on with: without the tokens that a tokenizer puts behind whole texts.
std::vector<std::int32_t> encode_prompt(const data::Tokenizer& tokenizer, std::string_view text);

}  // namespace lathe::generate
