#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/json_reader.h"
#include "lathe/data/sentence_reader.h"
#include "lathe/data/utf8.h"

namespace lathe::data {
namespace {

using Json = nlohmann::json;

// The key of a list: the one asked for, the one a model was trained with, or a usual one.
std::string key_of(const Json& object, const std::vector<std::string>& asked,
                   const std::vector<std::string>& known, std::string_view option,
                   const std::vector<std::string>& usual, std::int64_t line) {
  if (asked.size() > 1) fail("{}: {} {}: expected one key", line, option, fmt::join(asked, ","));
  if (!asked.empty()) return asked.front();
  for (const std::vector<std::string>* const names : {&known, &usual})
    for (const std::string& name : *names)
      if (object.contains(name)) return name;
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  fail("{}: has the keys {}: expected a list under {}", line, fmt::join(keys, ", "),
       fmt::join(usual, ", "));
}

const Json& list_at(const Json& object, const std::string& key, std::int64_t line) {
  const auto found = object.find(key);
  if (found == object.end()) fail("{}: has no {}", line, key);
  if (!found->is_array()) fail("{}: {} is {}, expected a list", line, key, found->type_name());
  return *found;
}

Sentence read_sentence(const Json& object, const std::string& words_key,
                       const std::string& labels_key, std::int64_t line) {
  Sentence sentence;
  for (const Json& word : list_at(object, words_key, line)) {
    if (!word.is_string() || word.get_ref<const std::string&>().empty())
      fail("{}: {} has {}, expected words", line, words_key, word.dump());
    sentence.words.push_back(word.get<std::string>());
    sentence.lines.push_back(line);
  }
  if (labels_key.empty()) return sentence;
  const Json& labels = list_at(object, labels_key, line);
  if (labels.size() != sentence.words.size())
    fail("{}: {} has {} words, but {} has {} labels", line, words_key, sentence.words.size(),
         labels_key, labels.size());
  for (const Json& label : labels) {
    if (!label.is_string() && !label.is_number_integer())
      fail("{}: {} has {}, expected texts or whole numbers", line, labels_key, label.dump());
    sentence.labels.push_back(label.is_string() ? label.get<std::string>() : label.dump());
    if (sentence.labels.back().empty()) fail("{}: {} has an empty label", line, labels_key);
  }
  return sentence;
}

}  // namespace

void read_sentences_jsonl(std::string_view contents, const ColumnOptions& columns, bool labelled,
                          const TakeSentence& take) {
  contents = without_byte_order_mark(contents);
  std::string words, labels;
  for (std::int64_t number = 1; !contents.empty(); ++number) {
    const std::size_t length = contents.find('\n');
    const std::string_view line = contents.substr(0, length);
    contents.remove_prefix(length == std::string_view::npos ? contents.size() : length + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json object = is_utf8(line) ? parse_json(line, "", {}, number)
                                      : parse_json(as_utf8(line), "", {}, number);
    if (!object.is_object()) fail("{}: is not a JSON object", number);
    if (words.empty()) {
      words = key_of(object, columns.text, columns.known_text, "text-column", {"tokens", "words"},
                     number);
      if (labelled)
        labels = key_of(object, columns.label, columns.known_label, "label-column",
                        {"labels", "ner_tags", "tags"}, number);
    }
    Sentence sentence = read_sentence(object, words, labels, number);
    if (!sentence.words.empty()) take(std::move(sentence));
  }
}

}  // namespace lathe::data
