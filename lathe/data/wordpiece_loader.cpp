// Where a tokenizer comes from: vocab.txt or tokenizer.json, and tokenizer_config.json.
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "lathe/core/error.h"
#include "lathe/core/json_reader.h"
#include "lathe/data/text_file.h"
#include "lathe/data/utf8.h"
#include "lathe/data/wordpiece_tokenizer.h"

namespace lathe::data {
namespace {

using Json = nlohmann::json;
using Options = WordpieceTokenizer::Options;

constexpr std::int64_t kMostVocabularyBytes = std::int64_t{1} << 30;

Json read_object(const std::filesystem::path& path) {
  Json json = parse_json(read_text_file(path, kMostVocabularyBytes), path.string());
  if (!json.is_object()) fail("{}: is not a JSON object", path.string());
  return json;
}

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

// Overwrites `value` when the key is there; null counts as absent.
void read(const Json& object, const char* key, bool& value) {
  const Json* const found = member(object, key);
  if (!found) return;
  if (!found->is_boolean()) fail("{} is {}, expected true or false", key, found->dump());
  value = found->get<bool>();
}

void read(const Json& object, const char* key, std::string& value) {
  const Json* found = member(object, key);
  if (!found) return;
  if (const Json* const content = member(*found, "content")) found = content;
  if (!found->is_string()) fail("{} is {}, expected a text", key, found->dump());
  value = found->get<std::string>();
}

void require_type(const Json& json, const char* part, std::vector<std::string> known) {
  const Json* const object = member(json, part);
  const Json* const type = object ? member(*object, "type") : nullptr;
  const std::string name = type && type->is_string() ? type->get<std::string>() : "none";
  for (const std::string& candidate : known)
    if (name == candidate) return;
  fail("{} is of type {}, but only {} is supported", part, name, fmt::join(known, " or "));
}

// Every White_Space code point as UTF-8.
constexpr std::string_view kSpaces[] = {" ",
                                        "\t",
                                        "\n",
                                        "\v",
                                        "\f",
                                        "\r",
                                        "\xC2\x85",
                                        "\xC2\xA0",
                                        "\xE1\x9A\x80",
                                        "\xE2\x80\x80",
                                        "\xE2\x80\x81",
                                        "\xE2\x80\x82",
                                        "\xE2\x80\x83",
                                        "\xE2\x80\x84",
                                        "\xE2\x80\x85",
                                        "\xE2\x80\x86",
                                        "\xE2\x80\x87",
                                        "\xE2\x80\x88",
                                        "\xE2\x80\x89",
                                        "\xE2\x80\x8A",
                                        "\xE2\x80\xA8",
                                        "\xE2\x80\xA9",
                                        "\xE2\x80\xAF",
                                        "\xE2\x81\x9F",
                                        "\xE3\x80\x80"};

// The rust loader drops all white space at a line's end, so that a CRLF file reads the same.
std::string_view without_trailing_space(std::string_view line) {
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view space : kSpaces) {
      if (!line.ends_with(space)) continue;
      line.remove_suffix(space.size());
      again = true;
    }
  }
  return line;
}

std::vector<std::string> read_vocabulary(const std::filesystem::path& path) {
  const std::string text = read_text_file(path, kMostVocabularyBytes);
  return with_place(path.string(), [&] {
    std::vector<std::string> tokens;
    std::unordered_map<std::string_view, std::size_t> first_lines;  // by the line as it is written
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t length = rest.find('\n');
      std::string_view line = rest.substr(0, length);
      rest.remove_prefix(length == std::string_view::npos ? rest.size() : length + 1);
      const std::size_t number = tokens.size() + 1;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!is_utf8(line)) fail("line {} is not UTF-8", number);
      // Lines that differ only in white space at their end may collide: some published vocabularies
      // have them, and the last one wins there. The very same line twice is a mistake.
      const auto [found, is_new] = first_lines.emplace(line, number);
      if (!is_new && !line.empty())
        fail("line {} repeats the token \"{}\" of line {}", number, line, found->second);
      tokens.emplace_back(without_trailing_space(line));
    }
    while (!tokens.empty() && tokens.back().empty()) tokens.pop_back();
    if (tokens.empty()) fail("has no tokens, expected one a line");
    return tokens;
  });
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

void read_added_tokens(const Json& json, std::vector<std::string>& tokens, Options& options) {
  const Json* const list = member(json, "added_tokens");
  if (!list) return;
  if (!list->is_array()) fail("added_tokens is not a list");
  for (const Json& added : *list) {
    std::string content;
    read(added, "content", content);
    const Json* const id = member(added, "id");
    if (content.empty() || !id || !id->is_number_unsigned())
      fail("an added token is {}, expected content and id", added.dump());
    bool normalized = false;
    read(added, "normalized", normalized);
    bool unsupported = normalized;
    for (const char* const flag : {"single_word", "lstrip", "rstrip"}) {
      bool value = false;
      read(added, flag, value);
      unsupported |= value;
    }
    if (unsupported)
      fail(
          "added token \"{}\" is normalized, single_word, lstrip or rstrip, which is not supported",
          content);
    const auto index = id->get<std::uint64_t>();
    if (index == tokens.size()) tokens.push_back(content);
    if (index >= tokens.size() || tokens[index] != content)
      fail("added token \"{}\" has the id {}, which does not fit the vocabulary", content, index);
    options.added_tokens.push_back(content);
  }
}

// The names of the tokens put around a text; the two kinds of post-processor write them
// differently.
void read_template(const Json& processor, Options& options) {
  if (const Json* const single = member(processor, "single")) {
    std::vector<std::string> names;
    for (const Json& piece : *single)
      if (const Json* const special = member(piece, "SpecialToken")) {
        names.emplace_back();
        read(*special, "id", names.back());
      }
    if (!single->is_array() || single->size() != 3 || names.size() != 2 ||
        !member((*single)[1], "Sequence"))
      fail("post_processor puts other tokens around a text than one before and one after");
    options.classification_token = names[0];
    options.separator_token = names[1];
    return;
  }
  for (const auto& [key, name] : {std::pair{"cls", &options.classification_token},
                                  std::pair{"sep", &options.separator_token}}) {
    const Json* const pair = member(processor, key);
    if (!pair || !pair->is_array() || pair->empty() || !(*pair)[0].is_string())
      fail("post_processor has no {} token", key);
    *name = (*pair)[0].get<std::string>();
  }
}

std::vector<std::string> read_tokenizer_json(const Json& json, Options& options) {
  require_type(json, "model", {"WordPiece"});
  require_type(json, "normalizer", {"BertNormalizer"});
  require_type(json, "pre_tokenizer", {"BertPreTokenizer"});
  require_type(json, "post_processor", {"TemplateProcessing", "BertProcessing"});
  const Json& model = json["model"];
  const Json& normalizer = json["normalizer"];
  read(model, "unk_token", options.unknown_token);
  read(model, "continuing_subword_prefix", options.continuation_prefix);
  if (const Json* const most = member(model, "max_input_chars_per_word")) {
    if (!most->is_number_unsigned() || most->get<std::uint64_t>() > 1'000'000)
      fail("max_input_chars_per_word is {}, expected a number of characters", most->dump());
    options.max_characters_per_word = most->get<std::int32_t>();
  }
  read(normalizer, "clean_text", options.normalizer.clean_text);
  read(normalizer, "handle_chinese_chars", options.normalizer.isolate_chinese_characters);
  read(normalizer, "lowercase", options.normalizer.lowercase);
  options.normalizer.strip_accents = options.normalizer.lowercase;
  read(normalizer, "strip_accents", options.normalizer.strip_accents);
  read_template(json["post_processor"], options);
  const Json* const vocabulary = member(model, "vocab");
  std::vector<std::string> tokens = tokens_by_id(vocabulary ? *vocabulary : Json());
  read_added_tokens(json, tokens, options);
  return tokens;
}

void read_config(const Json& config, Options& options) {
  const bool was_lowercase = options.normalizer.lowercase;
  read(config, "do_lower_case", options.normalizer.lowercase);
  if (options.normalizer.lowercase != was_lowercase)
    options.normalizer.strip_accents = options.normalizer.lowercase;
  read(config, "strip_accents", options.normalizer.strip_accents);
  read(config, "tokenize_chinese_chars", options.normalizer.isolate_chinese_characters);
  read(config, "unk_token", options.unknown_token);
  read(config, "cls_token", options.classification_token);
  read(config, "sep_token", options.separator_token);
  read(config, "pad_token", options.padding_token);
  read(config, "mask_token", options.mask_token);
}

}  // namespace

WordpieceTokenizer WordpieceTokenizer::load(const std::filesystem::path& directory) {
  const std::filesystem::path json = directory / "tokenizer.json";
  const std::filesystem::path text = directory / "vocab.txt";
  const std::filesystem::path config = directory / "tokenizer_config.json";
  std::error_code error;
  Options options;
  std::vector<std::string> tokens;
  if (std::filesystem::exists(json, error)) {
    options.source = json.string();
    const Json parsed = read_object(json);
    tokens = with_place(json.string(), [&] { return read_tokenizer_json(parsed, options); });
  } else if (std::filesystem::exists(text, error)) {
    options.source = text.string();
    tokens = read_vocabulary(text);
  } else {
    fail("{}: has no tokenizer: looked for tokenizer.json and vocab.txt", directory.string());
  }
  if (std::filesystem::exists(config, error)) {
    const Json parsed = read_object(config);
    with_place(config.string(), [&] { read_config(parsed, options); });
  }
  return from_vocabulary(std::move(tokens), std::move(options));
}

}  // namespace lathe::data
