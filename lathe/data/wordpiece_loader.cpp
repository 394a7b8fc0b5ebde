// Where a tokenizer comes from: vocab.txt or tokenizer.json, and tokenizer_config.json.
#include <algorithm>
#include <unordered_map>

#include "lathe/core/error.h"
#include "lathe/data/pipeline_tokenizer.h"
#include "lathe/data/tokenizer_json.h"
#include "lathe/data/tokenizer_source.h"
#include "lathe/data/utf8.h"
#include "lathe/data/wordpiece_tokenizer.h"

namespace lathe::data {
namespace {

using Json = nlohmann::json;
using Options = WordpieceTokenizer::Options;

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

std::vector<std::string> read_vocabulary(const std::string& text, const std::string& place) {
  return with_place(place, [&] {
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

// The names of the tokens put around a text; the two kinds of post-processor write them
// differently.
void read_template(const Json& processor, Options& options) {
  if (const Json* const single = member(processor, "single")) {
    std::vector<std::string> names;
    for (const Json& piece : *single)
      if (const Json* const special = member(piece, "SpecialToken")) {
        names.emplace_back();
        read_member(*special, "id", names.back());
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
  read_member(model, "unk_token", options.unknown_token);
  read_member(model, "continuing_subword_prefix", options.continuation_prefix);
  if (const Json* const most = member(model, "max_input_chars_per_word")) {
    if (!most->is_number_unsigned() || most->get<std::uint64_t>() > 1'000'000)
      fail("max_input_chars_per_word is {}, expected a number of characters", most->dump());
    options.max_characters_per_word = most->get<std::int32_t>();
  }
  read_member(normalizer, "clean_text", options.normalizer.clean_text);
  read_member(normalizer, "handle_chinese_chars", options.normalizer.isolate_chinese_characters);
  read_member(normalizer, "lowercase", options.normalizer.lowercase);
  options.normalizer.strip_accents = options.normalizer.lowercase;
  read_member(normalizer, "strip_accents", options.normalizer.strip_accents);
  read_template(json["post_processor"], options);
  const Json* const vocabulary = member(model, "vocab");
  std::vector<std::string> tokens = tokens_by_id(vocabulary ? *vocabulary : Json());
  for (const AddedToken& added : read_added_tokens(json, tokens)) {
    if (added.normalized)
      fail("added token \"{}\" is normalized, which is not supported", added.content);
    options.added_tokens.push_back(added.content);
  }
  return tokens;
}

void read_config(const Json& config, Options& options) {
  const bool was_lowercase = options.normalizer.lowercase;
  read_member(config, "do_lower_case", options.normalizer.lowercase);
  if (options.normalizer.lowercase != was_lowercase)
    options.normalizer.strip_accents = options.normalizer.lowercase;
  read_member(config, "strip_accents", options.normalizer.strip_accents);
  read_member(config, "tokenize_chinese_chars", options.normalizer.isolate_chinese_characters);
  read_member(config, "unk_token", options.unknown_token);
  read_member(config, "cls_token", options.classification_token);
  read_member(config, "sep_token", options.separator_token);
  read_member(config, "pad_token", options.padding_token);
  read_member(config, "mask_token", options.mask_token);
}

bool recognizes_wordpiece(const TokenizerSource& source) {
  return source.tokenizer_json() ? source.model_type() == "WordPiece" : source.has("vocab.txt");
}

// BERT's own steps are folded into one (wordpiece_tokenizer.h); others are taken one by one.
bool is_of_bert(const Json& json) {
  if (type_of(json, "normalizer") != "BertNormalizer" ||
      type_of(json, "pre_tokenizer") != "BertPreTokenizer" ||
      (type_of(json, "post_processor") != "TemplateProcessing" &&
       type_of(json, "post_processor") != "BertProcessing"))
    return false;
  const Json* const list = member(json, "added_tokens");
  if (!list || !list->is_array()) return true;
  return std::none_of(list->begin(), list->end(), [](const Json& added) {
    bool is_any_set = false;
    for (const char* const flag : {"normalized", "single_word", "lstrip", "rstrip"}) {
      bool is_set = false;
      read_member(added, flag, is_set);
      is_any_set |= is_set;
    }
    return is_any_set;
  });
}

std::shared_ptr<const Tokenizer> load_wordpiece(const TokenizerSource& source) {
  const Json* const json = source.tokenizer_json();
  if (json && !with_place(source.place(kTokenizerJson), [&] { return is_of_bert(*json); }))
    return load_pipeline(source);
  return std::make_shared<const WordpieceTokenizer>(WordpieceTokenizer::load(source));
}

const Register wordpiece{TokenizerKind{
    .name = "wordpiece",
    .summary = "words cut into the longest pieces of a vocabulary",
    .files = {"tokenizer.json", "vocab.txt"},
    .recognizes = recognizes_wordpiece,
    .load = load_wordpiece,
}};

}  // namespace

WordpieceTokenizer WordpieceTokenizer::load(const TokenizerSource& source) {
  Options options;
  std::vector<std::string> tokens;
  const std::string file(source.tokenizer_json() ? kTokenizerJson : "vocab.txt");
  options.source = source.place(file);
  std::string contents = source.read(file);
  if (const Json* const json = source.tokenizer_json()) {
    tokens = with_place(options.source, [&] { return read_tokenizer_json(*json, options); });
  } else {
    tokens = read_vocabulary(contents, options.source);
  }
  const Json config = source.read_object(kTokenizerConfig);
  with_place(source.place(kTokenizerConfig), [&] { read_config(config, options); });
  WordpieceTokenizer tokenizer = from_vocabulary(std::move(tokens), std::move(options));
  tokenizer.vocabulary_.files[0] = {file, std::move(contents)};
  return tokenizer;
}

}  // namespace lathe::data
