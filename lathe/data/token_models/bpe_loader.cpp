// The model BPE of tokenizer.json.
#include "lathe/data/token_models/bpe_loader.h"

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/data/byte_alphabet.h"
#include "lathe/data/tokenizer_json.h"

namespace lathe::data {

std::pair<std::string, std::string> parse_merge(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == text.npos || space == 0 || space + 1 == text.size() ||
      text.find(' ', space + 1) != text.npos)
    fail("is {}, expected two tokens with a space between them", quote_text(text));
  return {std::string(text.substr(0, space)), std::string(text.substr(space + 1))};
}

namespace {

using Json = nlohmann::json;

// A merge is written "a b" or, by newer versions, ["a", "b"].
BpeModel::Merges read_merges(const Json* list) {
  if (!list || !list->is_array()) fail("model.merges is not a list");
  BpeModel::Merges merges;
  merges.reserve(list->size());
  for (const Json& merge : *list) {
    const bool is_pair =
        merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    if (is_pair) {
      merges.emplace_back(merge[0], merge[1]);
      continue;
    }
    with_place(fmt::format("merge {}", merges.size() + 1), [&] {
      if (!merge.is_string()) fail("is {}, expected two tokens", shown(merge));
      merges.push_back(parse_merge(merge.get_ref<const std::string&>()));
    });
  }
  return merges;
}

bool has_every_byte(const Json& vocabulary) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char one = static_cast<char>(byte);
    if (!vocabulary.contains(write_in_byte_alphabet({&one, 1}))) return false;
  }
  return true;
}

LoadedModel load_bpe(const Json& model, bool& reads_bytes) {
  const Json* const dropout = member(model, "dropout");
  if (dropout && !(dropout->is_number() && *dropout == 0))
    fail("model.dropout is {}, which is not supported: ids would be random", shown(*dropout));
  BpeModel::Options options;
  std::string unknown;
  read_member(model, "unk_token", unknown);
  if (!unknown.empty()) options.unknown_token = unknown;
  read_member(model, "fuse_unk", options.fuses_unknown);
  read_member(model, "byte_fallback", options.has_byte_tokens);
  read_member(model, "ignore_merges", options.ignores_merges);
  read_member(model, "continuing_subword_prefix", options.continuation_prefix);
  read_member(model, "end_of_word_suffix", options.word_suffix);
  const Json* const vocabulary = member(model, "vocab");
  LoadedModel loaded{.model = {}, .tokens = tokens_by_id(vocabulary ? *vocabulary : Json())};
  reads_bytes = reads_bytes && options.continuation_prefix.empty() && options.word_suffix.empty() &&
                has_every_byte(*vocabulary);
  options.reads_bytes = reads_bytes;
  loaded.model = std::make_unique<BpeModel>(loaded.tokens, read_merges(member(model, "merges")),
                                            std::move(options));
  return loaded;
}

const Register bpe_kind{TokenModelKind{.name = "BPE", .load = load_bpe}};

}  // namespace
}  // namespace lathe::data
