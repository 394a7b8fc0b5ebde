#pragma once

#include <nlohmann/json.hpp>

#include "lathe/data/tokenizer.h"

namespace lathe::data {

/// Reads the post-processor of tokenizer.json, which may be null: what is put around a text, and
/// around and between a pair. The vocabulary's tokens must be there.
void read_post_processor(const nlohmann::json* description, Vocabulary& vocabulary);

}  // namespace lathe::data
