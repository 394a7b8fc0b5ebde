#include "lathe/data/tokenizer_json.h"

#include <optional>

#include "lathe/core/error.h"

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
  if (!found->is_boolean()) fail("{} is {}, expected true or false", key, found->dump());
  value = found->get<bool>();
}

void read_member(const Json& object, const char* key, std::string& value) {
  const Json* found = member(object, key);
  if (!found) return;
  if (const Json* const content = member(*found, "content")) found = content;
  if (!found->is_string()) fail("{} is {}, expected a text", key, found->dump());
  value = found->get<std::string>();
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
      fail("token \"{}\" has the id {}, expected a number below {}, the size of the vocabulary",
           token, id.dump(), slots.size());
    std::optional<std::string>& slot = slots[id.get<std::size_t>()];
    if (slot) fail("tokens \"{}\" and \"{}\" have the same id {}", *slot, token, id.dump());
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
  if (token.content.empty()) fail("an added token is {}, expected content and id", added.dump());
  read_member(added, "normalized", token.normalized);
  for (const char* const flag : {"single_word", "lstrip", "rstrip"}) {
    bool value = false;
    read_member(added, flag, value);
    if (value) fail("added token \"{}\" is {}, which is not supported", token.content, flag);
  }
  if (id == tokens.size()) tokens.push_back(token.content);
  if (id >= tokens.size() || tokens[id] != token.content)
    fail("added token \"{}\" has the id {}, which does not fit the vocabulary", token.content, id);
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
      fail("an added token is {}, expected content and id", added.dump());
    all.push_back(read_added_token(added, id->get<std::uint64_t>(), tokens));
  }
  return all;
}

}  // namespace lathe::data
