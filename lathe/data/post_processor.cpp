#include "lathe/data/post_processor.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/data/tokenizer_json.h"

namespace lathe::data {
namespace post_processors {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<std::int32_t>;

std::int32_t checked_id(const Json& id, const Vocabulary& vocabulary) {
  if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= vocabulary.tokens.size())
    fail("has the id {}, expected one below {}, the size of the vocabulary", shown(id),
         vocabulary.tokens.size());
  return id.get<std::int32_t>();
}

std::int32_t id_of(const std::string& token, const Vocabulary& vocabulary) {
  const auto& tokens = vocabulary.tokens;
  const auto found = std::find(tokens.begin(), tokens.end(), token);
  if (found == tokens.end()) fail("token {} is not in the vocabulary", quote_text(token));
  return static_cast<std::int32_t>(found - tokens.begin());
}

// ["[CLS]", 101]
std::int32_t read_token(const Json& description, const char* key, const Vocabulary& vocabulary) {
  const Json* const pair = member(description, key);
  if (!pair || !pair->is_array() || pair->empty() || !(*pair)[0].is_string())
    fail("has no {} token", key);
  if (pair->size() > 1) return checked_id((*pair)[1], vocabulary);
  return id_of((*pair)[0], vocabulary);
}

// One or two texts and what stands before, between and behind them.
struct Template {
  std::vector<Ids> around = {{}};  // one more than there are texts
  std::size_t num_between_first = 0;
};

Ids special_ids(const Json& description, const std::string& name, const Vocabulary& vocabulary) {
  const Json* const all = member(description, "special_tokens");
  const Json* const special = all ? member(*all, name.c_str()) : nullptr;
  const Json* const ids = special ? member(*special, "ids") : nullptr;
  if (!ids) return {id_of(name, vocabulary)};
  if (!ids->is_array()) fail("the ids of {} are not a list", quote_text(name));
  Ids result;
  for (const Json& id : *ids) result.push_back(checked_id(id, vocabulary));
  return result;
}

Template read_template(const Json& description, const char* key, std::size_t num_texts,
                       const Vocabulary& vocabulary) {
  const Json* const list = member(description, key);
  if (!list || !list->is_array()) fail("has no template for a {}", key);
  Template result;
  std::int64_t first_type = 0;
  for (const Json& part : *list) {
    if (const Json* const text = member(part, "Sequence")) {
      std::string name;
      read_member(*text, "id", name);
      const std::size_t place = result.around.size() - 1;
      if (place == num_texts || name != (place == 0 ? "A" : "B"))
        fail("{}: has the text {}, which is not supported there", key, quote_text(name));
      if (place == 0) read_member(*text, "type_id", first_type, 0, 1 << 20);
      result.around.emplace_back();
      continue;
    }
    const Json* const special = member(part, "SpecialToken");
    std::string name;
    if (special) read_member(*special, "id", name);
    if (name.empty()) fail("{}: has the part {}, expected a text or a token", key, shown(part));
    const Ids ids = special_ids(description, name, vocabulary);
    result.around.back().insert(result.around.back().end(), ids.begin(), ids.end());
    std::int64_t type = 0;
    read_member(*special, "type_id", type, 0, 1 << 20);
    if (result.around.size() == 2 && type == first_type)
      result.num_between_first = result.around.back().size();
  }
  if (result.around.size() != num_texts + 1) fail("{}: leaves a text out", key);
  return result;
}

// Puts tokens around those that are there: of several processors the last is outermost.
void wrap(const Ids& before, const Ids& after, Ids& old_before, Ids& old_after) {
  old_before.insert(old_before.begin(), before.begin(), before.end());
  old_after.insert(old_after.end(), after.begin(), after.end());
}

void add(const Ids& before, const Ids& after, PairTokens pair, Vocabulary& vocabulary) {
  if (vocabulary.pair) {
    const PairTokens inner = *vocabulary.pair;
    wrap(inner.before, inner.after, pair.before, pair.after);
    if (!inner.between.empty() && !pair.between.empty())
      fail("two processors put tokens between a pair of texts, which is not supported");
    if (pair.between.empty()) {
      pair.between = inner.between;
      pair.num_between_first = inner.num_between_first;
    }
  }
  wrap(before, after, vocabulary.before, vocabulary.after);
  vocabulary.pair = std::move(pair);
}

void read(const Json& description, Vocabulary& vocabulary) {
  const std::string type = described_type(description);
  if (type == "ByteLevel") {
    if (!vocabulary.pair) vocabulary.pair.emplace();  // it moves offsets, no ids
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const Ids first = {read_token(description, "cls", vocabulary)};
    const Ids last = {read_token(description, "sep", vocabulary)};
    const bool is_roberta = type == "RobertaProcessing";
    add(first, last,
        {.before = first,
         .between = is_roberta ? Ids{last[0], last[0]} : last,
         .after = last,
         .num_between_first = is_roberta ? std::size_t{2} : std::size_t{1}},
        vocabulary);
  } else if (type == "TemplateProcessing") {
    const Template single = read_template(description, "single", 1, vocabulary);
    PairTokens pair{.before = single.around[0],
                    .between = single.around[1],
                    .after = single.around[1],
                    .num_between_first = single.around[1].size()};
    if (member(description, "pair")) {
      const Template both = read_template(description, "pair", 2, vocabulary);
      pair = {both.around[0], both.around[1], both.around[2], both.num_between_first};
    }
    add(single.around[0], single.around[1], std::move(pair), vocabulary);
  } else if (type == "Sequence") {
    const Json* const list = member(description, "processors");
    if (!list || !list->is_array()) fail("processors is not a list");
    for (const Json& each : *list) read(each, vocabulary);
  } else {
    throw unknown_name(
        "post-processor", type,
        {"BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence", "TemplateProcessing"});
  }
}

}  // namespace
}  // namespace post_processors

void read_post_processor(const nlohmann::json* description, Vocabulary& vocabulary) {
  vocabulary.pair.emplace();
  if (description && !description->is_null())
    with_place("post_processor", [&] { post_processors::read(*description, vocabulary); });
}

}  // namespace lathe::data
