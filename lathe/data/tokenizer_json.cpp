#include "lathe/data/tokenizer_json.h"

#include <algorithm>
#include <optional>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"

namespace lathe::data {

using Json = nlohmann::json;

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

void read_member(const Json& object, const char* key, bool& value) {
  const Json* const found = member(object, key);
  if (!found) return;
  if (!found->is_boolean()) fail("{} is {}, expected true or false", key, shown(*found));
  value = found->get<bool>();
}

void read_member(const Json& object, const char* key, std::string& value) {
  const Json* found = member(object, key);
  if (!found) return;
  if (const Json* const content = member(*found, "content")) found = content;
  if (!found->is_string()) fail("{} is {}, expected a text", key, shown(*found));
  value = found->get<std::string>();
}

void read_member(const Json& object, const char* key, std::int64_t& value, std::int64_t least,
                 std::int64_t most) {
  const Json* const found = member(object, key);
  if (!found) return;
  const bool fits = found->is_number_integer() && *found >= least && *found <= most;
  if (!fits) fail("{} is {}, expected {} to {}", key, shown(*found), least, most);
  value = found->get<std::int64_t>();
}

std::string shown(const Json& json) {
  // Only so much of a list or an object is written out at all.
  if (json.is_structured() && json.size() > 16)
    return fmt::format("{} of {} values", json.is_array() ? "a list" : "an object", json.size());
  constexpr std::size_t kMostBytes = 200;
  std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kMostBytes) text = text.substr(0, kMostBytes) + "...";
  return text;
}

std::string described_type(const Json& description) {
  const Json* const type = member(description, "type");
  if (!type || !type->is_string()) fail("{} has no type", shown(description));
  return plain_name(type->get<std::string>());
}

std::string plain_name(const std::string& text) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!is_plain) fail("{} is not the name of anything", quote_text(text));
  return text;
}

std::string type_of(const Json& json, const char* part) {
  const Json* const object = member(json, part);
  const Json* const type = object ? member(*object, "type") : nullptr;
  return type && type->is_string() ? type->get<std::string>() : "none";
}

void require_type(const Json& json, const char* part, const std::vector<std::string>& known) {
  const std::string name = type_of(json, part);
  for (const std::string& candidate : known)
    if (name == candidate) return;
  fail("{} is of type {}, but only {} is supported", part, name, fmt::join(known, " or "));
}

std::vector<std::string> tokens_by_id(const Json& vocabulary) {
  if (!vocabulary.is_object() || vocabulary.empty()) fail("model.vocab has no tokens");
  std::vector<std::optional<std::string>> slots(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= slots.size())
      fail("token {} has the id {}, expected a number below {}, the size of the vocabulary",
           quote_text(token), shown(id), slots.size());
    std::optional<std::string>& slot = slots[id.get<std::size_t>()];
    if (slot)
      fail("tokens {} and {} have the same id {}", quote_text(*slot), quote_text(token), shown(id));
    slot = token;
  }
  // As many tokens as slots and no slot used twice: every slot is filled.
  std::vector<std::string> tokens(slots.size());
  for (std::size_t id = 0; id < slots.size(); ++id) tokens[id] = slots[id].value_or("");
  return tokens;
}

AddedToken read_added_token(const Json& added, std::uint64_t id, std::vector<std::string>& tokens) {
  AddedToken token;
  read_member(added, "content", token.content);
  if (token.content.empty()) fail("an added token is {}, expected content and id", shown(added));
  read_member(added, "normalized", token.normalized);
  read_member(added, "single_word", token.single_word);
  read_member(added, "lstrip", token.lstrip);
  read_member(added, "rstrip", token.rstrip);
  read_member(added, "special", token.special);
  if (id == tokens.size()) tokens.push_back(token.content);
  if (id >= tokens.size() || tokens[id] != token.content)
    fail("added token {} has the id {}, which does not fit the vocabulary",
         quote_text(token.content), id);
  token.id = static_cast<std::int32_t>(id);
  return token;
}

std::vector<AddedToken> read_added_tokens(const Json& json, std::vector<std::string>& tokens) {
  std::vector<AddedToken> all;
  const Json* const list = member(json, "added_tokens");
  if (!list) return all;
  if (!list->is_array()) fail("added_tokens is not a list");
  for (const Json& added : *list) {
    const Json* const id = member(added, "id");
    if (!id || !id->is_number_unsigned())
      fail("an added token is {}, expected content and id", shown(added));
    all.push_back(read_added_token(added, id->get<std::uint64_t>(), tokens));
  }
  return all;
}

}  // namespace lathe::data
