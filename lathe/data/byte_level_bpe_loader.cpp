// Where a byte-level tokenizer comes from: tokenizer.json, or vocab.json and merges.txt.
#include <algorithm>
#include <charconv>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/data/byte_level_bpe.h"
#include "lathe/data/tokenizer_json.h"
#include "lathe/data/tokenizer_source.h"

namespace lathe::data {
namespace {

using Json = nlohmann::json;
using Merges = std::vector<std::pair<std::string, std::string>>;

struct Parts {
  Vocabulary vocabulary;
  Merges merges;
  ByteLevelBpe::Options options;
};

std::pair<std::string, std::string> parse_merge(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == text.npos || space == 0 || space + 1 == text.size() ||
      text.find(' ', space + 1) != text.npos)
    fail("is {}, expected two tokens with a space between them", quote_text(text));
  return {std::string(text.substr(0, space)), std::string(text.substr(space + 1))};
}

// A merge is written "a b" or, by newer versions, ["a", "b"].
Merges read_merges(const Json& list) {
  if (!list.is_array()) fail("model.merges is not a list");
  Merges merges;
  for (const Json& merge : list)
    with_place(fmt::format("merge {}", merges.size() + 1), [&] {
      if (merge.is_string()) {
        merges.push_back(parse_merge(merge.get_ref<const std::string&>()));
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
                 merge[1].is_string()) {
        merges.emplace_back(merge[0], merge[1]);
      } else {
        fail("is {}, expected two tokens", merge.dump());
      }
    });
  return merges;
}

Merges read_merges_text(std::string_view text) {
  Merges merges;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t length = text.find('\n');
    std::string_view line = text.substr(0, length);
    text.remove_prefix(length == text.npos ? text.size() : length + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    with_place(fmt::format("line {}", number), [&] { merges.push_back(parse_merge(line)); });
  }
  return merges;
}

std::int32_t id_of(const std::string& token, const std::vector<std::string>& tokens) {
  const auto found = std::find(tokens.begin(), tokens.end(), token);
  if (found == tokens.end()) fail("token {} is not in the vocabulary", quote_text(token));
  return static_cast<std::int32_t>(found - tokens.begin());
}

void refuse_unless_absent(const Json& model, const char* key) {
  const Json* const found = member(model, key);
  const bool says_nothing =
      !found || *found == false || *found == "" || (found->is_number() && *found == 0);
  if (!says_nothing) fail("model.{} is {}, which is not supported", key, found->dump());
}

// The tokens put around a text.
void read_post_processor(const Json& json, Vocabulary& vocabulary) {
  if (!member(json, "post_processor")) return;
  require_type(json, "post_processor", {"ByteLevel", "RobertaProcessing", "TemplateProcessing"});
  const Json& processor = json["post_processor"];
  const std::string type = type_of(json, "post_processor");
  if (type == "RobertaProcessing") {
    for (const auto& [key, ids] :
         {std::pair{"cls", &vocabulary.before}, std::pair{"sep", &vocabulary.after}}) {
      const Json* const pair = member(processor, key);
      if (!pair || !pair->is_array() || pair->empty() || !(*pair)[0].is_string())
        fail("post_processor has no {} token", key);
      ids->push_back(id_of((*pair)[0], vocabulary.tokens));
    }
  } else if (type == "TemplateProcessing") {
    const Json* const single = member(processor, "single");
    if (!single || !single->is_array()) fail("post_processor has no template for a single text");
    bool seen_text = false;
    for (const Json& piece : *single) {
      if (member(piece, "Sequence")) {
        if (seen_text) fail("post_processor repeats the text");
        seen_text = true;
        continue;
      }
      const Json* const special = member(piece, "SpecialToken");
      std::string token;
      if (special) read_member(*special, "id", token);
      if (token.empty()) fail("post_processor has the part {}, expected a token", piece.dump());
      (seen_text ? vocabulary.after : vocabulary.before).push_back(id_of(token, vocabulary.tokens));
    }
    if (!seen_text) fail("post_processor leaves the text out");
  }
}

Parts read_tokenizer_json(const Json& json) {
  Parts parts;
  const Json& model = json["model"];
  if (member(json, "normalizer"))
    fail("normalizer is of type {}, but none is supported", type_of(json, "normalizer"));
  require_type(json, "pre_tokenizer", {"ByteLevel"});
  for (const char* const key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                                "byte_fallback", "ignore_merges"})
    refuse_unless_absent(model, key);
  bool use_regex = true;
  read_member(json["pre_tokenizer"], "use_regex", use_regex);
  if (!use_regex) fail("pre_tokenizer.use_regex is false, which is not supported");
  // The library's default, should a file leave it out.
  parts.options.add_prefix_space = true;
  read_member(json["pre_tokenizer"], "add_prefix_space", parts.options.add_prefix_space);

  const Json* const vocabulary = member(model, "vocab");
  const Json* const merges = member(model, "merges");
  parts.vocabulary.tokens = tokens_by_id(vocabulary ? *vocabulary : Json());
  parts.merges = read_merges(merges ? *merges : Json());
  parts.options.added_tokens = read_added_tokens(json, parts.vocabulary.tokens);
  read_post_processor(json, parts.vocabulary);
  return parts;
}

// Special tokens of vocab.json are known by the configuration, or by GPT-2's custom.
void add_special_tokens(const Json& config, Parts& parts) {
  std::vector<std::string>& tokens = parts.vocabulary.tokens;
  const auto add = [&](const AddedToken& token) {
    std::vector<AddedToken>& all = parts.options.added_tokens;
    if (std::none_of(all.begin(), all.end(),
                     [&](const AddedToken& each) { return each.content == token.content; }))
      all.push_back(token);
  };
  if (const Json* const decoder = member(config, "added_tokens_decoder")) {
    if (!decoder->is_object()) fail("added_tokens_decoder is not an object");
    // By their ids as numbers: those that follow the vocabulary are appended in order.
    std::vector<std::pair<std::uint64_t, const Json*>> by_id;
    for (const auto& [text, added] : decoder->items()) {
      std::uint64_t id = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
      if (error != std::errc{} || end != text.data() + text.size())
        fail("added_tokens_decoder has the key {}, expected an id", quote_text(text));
      by_id.emplace_back(id, &added);
    }
    std::sort(by_id.begin(), by_id.end());
    for (const auto& [id, added] : by_id) add(read_added_token(*added, id, tokens));
  }
  for (const char* const key : {"bos_token", "eos_token", "unk_token", "pad_token", "mask_token"}) {
    const bool is_gpt2 =
        std::string_view(key) != "pad_token" && std::string_view(key) != "mask_token";
    std::string token = is_gpt2 ? "<|endoftext|>" : "";
    read_member(config, key, token);
    const bool is_known = std::find(tokens.begin(), tokens.end(), token) != tokens.end();
    if (member(config, key) && !is_known)
      fail("{} is {}, which is not in the vocabulary", key, quote_text(token));
    if (is_known) add({token, false});
  }
}

std::int32_t find_token(const Json& config, const char* key, const std::string& usual,
                        const std::vector<std::string>& tokens) {
  std::string token = usual;
  read_member(config, key, token);
  const auto found = std::find(tokens.begin(), tokens.end(), token);
  return found == tokens.end() ? -1 : static_cast<std::int32_t>(found - tokens.begin());
}

// Written from what was understood, so that nothing else in a configuration travels along.
std::string config_text(const Parts& parts, std::int32_t end, std::int32_t padding) {
  const std::vector<std::string>& tokens = parts.vocabulary.tokens;
  nlohmann::ordered_json config = {{"tokenizer_class", "GPT2Tokenizer"},
                                   {"add_prefix_space", parts.options.add_prefix_space}};
  if (end >= 0)
    for (const char* const key : {"bos_token", "eos_token", "unk_token"})
      config[key] = tokens[static_cast<std::size_t>(end)];
  if (padding >= 0) config["pad_token"] = tokens[static_cast<std::size_t>(padding)];
  if (const std::int32_t mask = parts.vocabulary.mask_id; mask >= 0)
    config["mask_token"] = tokens[static_cast<std::size_t>(mask)];
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void read_config(const Json& config, bool is_from_json, Parts& parts) {
  read_member(config, "add_prefix_space", parts.options.add_prefix_space);
  bool adds_begin = false;
  read_member(config, "add_bos_token", adds_begin);
  if (adds_begin && parts.vocabulary.before.empty())
    fail("add_bos_token is true, which is not supported without a post_processor");
  if (!is_from_json) add_special_tokens(config, parts);
  Vocabulary& vocabulary = parts.vocabulary;
  const std::int32_t end = find_token(config, "eos_token", "<|endoftext|>", vocabulary.tokens);
  const std::int32_t padding = find_token(config, "pad_token", "", vocabulary.tokens);
  vocabulary.mask_id = find_token(config, "mask_token", "", vocabulary.tokens);
  // Without a token for it any other does: what is padded is never read.
  vocabulary.padding_id = padding >= 0 ? padding : std::max(end, 0);
  vocabulary.special_ids = vocabulary.before;
  vocabulary.special_ids.insert(vocabulary.special_ids.end(), vocabulary.after.begin(),
                                vocabulary.after.end());
  for (const std::int32_t id : {end, padding})
    if (id >= 0) vocabulary.special_ids.push_back(id);
  vocabulary.files.push_back({std::string(kTokenizerConfig), config_text(parts, end, padding)});
}

bool recognizes_byte_level_bpe(const TokenizerSource& source) {
  const Json* const json = source.tokenizer_json();
  if (!json) return source.has("merges.txt");
  const std::string type = source.model_type();
  // The first versions of the format did not say the type.
  return type == "BPE" ||
         (type.empty() && json->contains("model") && member((*json)["model"], "merges") != nullptr);
}

std::shared_ptr<const Tokenizer> load_byte_level_bpe(const TokenizerSource& source) {
  return std::make_shared<const ByteLevelBpe>(ByteLevelBpe::load(source));
}

const Register byte_level_bpe{TokenizerKind{
    .name = "byte-level-bpe",
    .summary = "bytes merged pair by pair (GPT-2)",
    .files = {"merges.txt", "tokenizer.json", "vocab.json"},
    .recognizes = recognizes_byte_level_bpe,
    .load = load_byte_level_bpe,
}};

}  // namespace

ByteLevelBpe ByteLevelBpe::load(const TokenizerSource& source) {
  Parts parts;
  if (const Json* const json = source.tokenizer_json()) {
    const std::string place = source.place(kTokenizerJson);
    parts = with_place(place, [&] { return read_tokenizer_json(*json); });
    parts.vocabulary.source = place;
    parts.vocabulary.files = {{std::string(kTokenizerJson), source.read(kTokenizerJson)}};
  } else {
    const std::string place = source.place("vocab.json");
    if (!source.has("vocab.json"))
      fail("{}: is absent, but merges.txt is there: expected both", place);
    const std::string merges = source.read("merges.txt");
    const Json vocabulary = source.read_object("vocab.json");
    parts.vocabulary.tokens = with_place(place, [&] { return tokens_by_id(vocabulary); });
    parts.merges = with_place(source.place("merges.txt"), [&] { return read_merges_text(merges); });
    parts.vocabulary.source = place;
    parts.vocabulary.files = {{"vocab.json", source.read("vocab.json")}, {"merges.txt", merges}};
  }
  const Json config = source.read_object(kTokenizerConfig);
  with_place(source.place(kTokenizerConfig),
             [&] { read_config(config, source.tokenizer_json() != nullptr, parts); });
  return ByteLevelBpe(std::move(parts.vocabulary), parts.merges, std::move(parts.options));
}

}  // namespace lathe::data
