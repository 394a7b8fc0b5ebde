// Reading the parts of tokenizer.json and tokenizer_config.json that every kind of tokenizer has.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lathe::data {

/// The member of that name; nullptr where it is absent or null.
const nlohmann::json* member(const nlohmann::json& object, const char* key);

/// Overwrites `value` when the key is there; null counts as absent.
void read_member(const nlohmann::json& object, const char* key, bool& value);
/// A text may also be written as an object with the key `content`, as special tokens are.
void read_member(const nlohmann::json& object, const char* key, std::string& value);

/// A whole number of `least` to `most`.
void read_member(const nlohmann::json& object, const char* key, std::int64_t& value,
                 std::int64_t least, std::int64_t most);

/// Untrusted JSON as it may appear in a message: on one line and shortened when it is long.
std::string shown(const nlohmann::json& json);

/// Gives a name back that a file says, if a message may say it too; fails where it has other
/// characters than letters, digits and `_`.
std::string plain_name(const std::string& text);

/// The `type` of a description of a step; fails where it says none.
std::string described_type(const nlohmann::json& description);
/// The `type` of a part such as "normalizer"; "none" where it is absent.
std::string type_of(const nlohmann::json& json, const char* part);
/// Fails by name when a part is of another type than these.
void require_type(const nlohmann::json& json, const char* part,
                  const std::vector<std::string>& known);

/// The tokens of an object from token to id, in the order of the ids, which count up from 0.
std::vector<std::string> tokens_by_id(const nlohmann::json& vocabulary);

/// A token that is matched in a text before the text is cut.
struct AddedToken {
  std::string content;
  bool normalized = false;   ///< matched in the normalized text
  bool single_word = false;  ///< matched only where no word goes on before or behind it
  bool lstrip = false;       ///< takes the white space in front
  bool rstrip = false;       ///< takes the white space behind
  bool special = false;      ///< left out of what is decoded
  std::int32_t id = -1;
};

/// Reads an added token that is to have that id. One that follows the vocabulary is appended to it;
/// one that differs from it is an error.
AddedToken read_added_token(const nlohmann::json& added, std::uint64_t id,
                            std::vector<std::string>& tokens);
/// Reads the list `added_tokens` of tokenizer.json.
std::vector<AddedToken> read_added_tokens(const nlohmann::json& json,
                                          std::vector<std::string>& tokens);

}  // namespace lathe::data
