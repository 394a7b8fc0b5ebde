// Where a tokenizer of steps comes from: tokenizer.json, or vocab.json and merges.txt.
#include <algorithm>
#include <charconv>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/data/decoders/decoder.h"
#include "lathe/data/pipeline_tokenizer.h"
#include "lathe/data/post_processor.h"
#include "lathe/data/pre_tokenizers/byte_level.h"
#include "lathe/data/token_models/bpe_loader.h"
#include "lathe/data/tokenizer_json.h"
#include "lathe/data/tokenizer_source.h"

namespace lathe::data {
namespace {

using Json = nlohmann::json;
using Parts = PipelineTokenizer::Parts;

// The steps of a pre-tokenizer, a sequence of which is taken apart.
std::vector<const Json*> steps_of(const Json* description) {
  if (!description) return {};
  std::vector<const Json*> steps;
  const Json* const list = type_of({{"it", *description}}, "it") == "Sequence"
                               ? member(*description, "pretokenizers")
                               : nullptr;
  if (!list || !list->is_array()) return {description};
  for (const Json& each : *list)
    if (!each.is_null()) steps.push_back(&each);
  return steps;
}

bool is_byte_level(const Json& step) {
  const Json* const type = member(step, "type");
  return type && *type == "ByteLevel";
}

Parts read_parts(const Json& json) {
  Parts parts;
  const Json* const model = member(json, "model");
  if (!model) fail("has no model");
  const std::vector<const Json*> steps = steps_of(member(json, "pre_tokenizer"));
  // Where bytes are written as characters only for the model to read, it can read the bytes.
  bool reads_bytes = !steps.empty() && is_byte_level(*steps.back()) &&
                     std::count_if(steps.begin(), steps.end(),
                                   [](const Json* step) { return is_byte_level(*step); }) == 1;
  // The first versions of the format did not say the type.
  const std::string type = member(*model, "type") ? described_type(*model) : "BPE";
  LoadedModel loaded =
      Registry<TokenModelKind>::instance().at(type, "model").load(*model, reads_bytes);
  parts.model = std::move(loaded.model);
  parts.vocabulary.tokens = std::move(loaded.tokens);
  parts.added_tokens = read_added_tokens(json, parts.vocabulary.tokens);
  with_place("normalizer", [&] { parts.normalizer = make_normalizer(member(json, "normalizer")); });
  with_place("pre_tokenizer", [&] {
    for (const Json* const step : steps)
      parts.pre_tokenizers.push_back(is_byte_level(*step) ? make_byte_level(*step, !reads_bytes)
                                                          : make_pre_tokenizer(step));
  });
  with_place("decoder", [&] { parts.decoder = make_decoder(member(json, "decoder")); });
  read_post_processor(member(json, "post_processor"), parts.vocabulary);
  return parts;
}

Json read_merges_text(std::string_view text) {
  Json merges = Json::array();
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t length = text.find('\n');
    std::string_view line = text.substr(0, length);
    text.remove_prefix(length == text.npos ? text.size() : length + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    with_place(fmt::format("line {}", number), [&] {
      const auto [left, right] = parse_merge(line);
      merges.push_back({left, right});
    });
  }
  return merges;
}

// GPT-2's older files as what a tokenizer.json would say.
Json as_tokenizer_json(const TokenizerSource& source) {
  if (!source.has("vocab.json"))
    fail("{}: is absent, but merges.txt is there: expected both", source.place("vocab.json"));
  const std::string merges = source.read("merges.txt");
  Json json;
  json["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  json["decoder"] = {{"type", "ByteLevel"}};
  json["model"] = {{"type", "BPE"}, {"vocab", source.read_object("vocab.json")}};
  json["model"]["merges"] =
      with_place(source.place("merges.txt"), [&] { return read_merges_text(merges); });
  return json;
}

// Special tokens of vocab.json are known by the configuration, or by GPT-2's custom.
void add_special_tokens(const Json& config, Parts& parts) {
  std::vector<std::string>& tokens = parts.vocabulary.tokens;
  const auto add = [&](const AddedToken& token) {
    std::vector<AddedToken>& all = parts.added_tokens;
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
    const auto found = std::find(tokens.begin(), tokens.end(), token);
    const bool is_known = found != tokens.end();
    if (member(config, key) && !is_known)
      fail("{} is {}, which is not in the vocabulary", key, quote_text(token));
    if (is_known)
      add({.content = token,
           .special = true,
           .id = static_cast<std::int32_t>(found - tokens.begin())});
  }
}

std::int32_t find_token(const Json& config, const char* key, const std::string& usual,
                        const std::vector<std::string>& tokens) {
  std::string token = usual;
  read_member(config, key, token);
  const auto found = std::find(tokens.begin(), tokens.end(), token);
  return found == tokens.end() ? -1 : static_cast<std::int32_t>(found - tokens.begin());
}

// What a loader of Hugging Face has to know besides tokenizer.json: from what was understood, so
// that nothing else in a configuration travels along.
std::string config_text(const Vocabulary& vocabulary, std::int32_t padding,
                        std::optional<bool> add_prefix_space) {
  nlohmann::ordered_json config = {
      {"tokenizer_class", add_prefix_space ? "GPT2Tokenizer" : "PreTrainedTokenizerFast"}};
  if (add_prefix_space) config["add_prefix_space"] = *add_prefix_space;
  for (const auto& [key, id] :
       {std::pair{"bos_token", vocabulary.begin_id}, std::pair{"eos_token", vocabulary.end_id},
        std::pair{"pad_token", padding}, std::pair{"mask_token", vocabulary.mask_id}})
    if (id >= 0) config[key] = vocabulary.tokens[static_cast<std::size_t>(id)];
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void read_config(const Json& config, std::optional<bool> add_prefix_space, Parts& parts) {
  Vocabulary& vocabulary = parts.vocabulary;
  bool adds_begin = false;
  read_member(config, "add_bos_token", adds_begin);
  if (adds_begin && vocabulary.before.empty())
    fail("add_bos_token is true, which is not supported without a post_processor");
  vocabulary.begin_id = find_token(config, "bos_token", "<|endoftext|>", vocabulary.tokens);
  vocabulary.end_id = find_token(config, "eos_token", "<|endoftext|>", vocabulary.tokens);
  vocabulary.mask_id = find_token(config, "mask_token", "", vocabulary.tokens);
  const std::int32_t padding = find_token(config, "pad_token", "", vocabulary.tokens);
  // Without a token for it any other does: what is padded is never read.
  vocabulary.padding_id = padding >= 0 ? padding : std::max(vocabulary.end_id, 0);
  vocabulary.special_ids = vocabulary.before;
  vocabulary.special_ids.insert(vocabulary.special_ids.end(), vocabulary.after.begin(),
                                vocabulary.after.end());
  for (const std::int32_t id : {vocabulary.end_id, padding})
    if (id >= 0) vocabulary.special_ids.push_back(id);
  for (const AddedToken& token : parts.added_tokens)
    if (token.special) vocabulary.unread_ids.push_back(token.id);
  std::sort(vocabulary.unread_ids.begin(), vocabulary.unread_ids.end());
  vocabulary.files.push_back(
      {std::string(kTokenizerConfig), config_text(vocabulary, padding, add_prefix_space)});
}

}  // namespace

std::shared_ptr<const Tokenizer> load_pipeline(const TokenizerSource& source) {
  const bool is_json = source.tokenizer_json() != nullptr;
  const Json config = source.read_object(kTokenizerConfig);
  const std::string place = source.place(is_json ? kTokenizerJson : "vocab.json");
  Json json = is_json ? *source.tokenizer_json() : as_tokenizer_json(source);
  // GPT-2's configuration has the last word on the space in front of a text.
  std::optional<bool> add_prefix_space;
  if (Json* const step = json.contains("pre_tokenizer") ? &json["pre_tokenizer"] : nullptr;
      step && is_byte_level(*step)) {
    add_prefix_space = true;
    with_place(place, [&] { read_member(*step, "add_prefix_space", *add_prefix_space); });
    with_place(source.place(kTokenizerConfig),
               [&] { read_member(config, "add_prefix_space", *add_prefix_space); });
    (*step)["add_prefix_space"] = *add_prefix_space;
  }
  Parts parts = with_place(place, [&] { return read_parts(json); });
  parts.vocabulary.source = place;
  for (const char* const file : {"tokenizer.json", "vocab.json", "merges.txt"})
    if (is_json == (std::string_view(file) == kTokenizerJson))
      parts.vocabulary.files.push_back({file, source.read(file)});
  with_place(source.place(kTokenizerConfig), [&] {
    if (!is_json) add_special_tokens(config, parts);
    read_config(config, add_prefix_space, parts);
  });
  return std::make_shared<const PipelineTokenizer>(std::move(parts));
}

namespace {

bool recognizes_byte_level_bpe(const TokenizerSource& source) {
  const Json* const json = source.tokenizer_json();
  if (!json) return source.has("merges.txt");
  const std::string type = source.model_type();
  const Json* const model = member(*json, "model");
  const bool is_bpe = type == "BPE" || (type.empty() && model && member(*model, "merges"));
  const std::vector<const Json*> steps = steps_of(member(*json, "pre_tokenizer"));
  return is_bpe && std::any_of(steps.begin(), steps.end(),
                               [](const Json* step) { return is_byte_level(*step); });
}

bool recognizes_bpe(const TokenizerSource& source) {
  return source.model_type() == "BPE" && !recognizes_byte_level_bpe(source);
}

bool recognizes_unigram(const TokenizerSource& source) {
  return source.model_type() == "Unigram";
}

const Register byte_level_bpe{TokenizerKind{
    .name = "byte-level-bpe",
    .summary = "bytes merged pair by pair (GPT-2, RoBERTa, Llama 3, Qwen 2)",
    .files = {"merges.txt", "tokenizer.json", "vocab.json"},
    .recognizes = recognizes_byte_level_bpe,
    .load = load_pipeline,
}};
const Register bpe_tokenizer{TokenizerKind{
    .name = "bpe",
    .summary = "characters merged pair by pair (SentencePiece: Llama 2, Mistral, Gemma)",
    .files = {"tokenizer.json"},
    .recognizes = recognizes_bpe,
    .load = load_pipeline,
}};
const Register unigram_tokenizer{TokenizerKind{
    .name = "unigram",
    .summary = "the most likely tokens (SentencePiece: T5, ALBERT, XLM-R, DeBERTa v2)",
    .files = {"tokenizer.json"},
    .recognizes = recognizes_unigram,
    .load = load_pipeline,
}};

}  // namespace
}  // namespace lathe::data
