// Parts of the tokenizer.json that a trained tokenizer is written as.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lathe::data {

using OrderedJson = nlohmann::ordered_json;

/// JSON as a file holds it.
std::string json_text(const OrderedJson& json);
/// The object from token to id.
OrderedJson vocabulary_json(const std::vector<std::string>& tokens);
/// Special tokens, the first of which has the id 0.
OrderedJson added_tokens_json(const std::vector<std::string>& special);

}  // namespace lathe::data
