#include "lathe/data/wordpiece_tokenizer.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lathe/core/error.h"
#include "lathe/data/utf8.h"

namespace lathe::data {
namespace {

// What a byte means where a code point may start. A byte with which an added token begins is
// MaybeAdded whatever else it is; it is looked at again when no added token follows.
enum ByteClass : std::uint8_t { Word, Isolated, Space, Removed, Wide, MaybeAdded };

ByteClass class_of(unsigned char byte, const CharacterTable& characters) {
  if (byte >= 0x80) return ByteClass::Wide;
  switch (characters.entry(byte).kind) {
    case CharacterKind::Word:
      return ByteClass::Word;
    case CharacterKind::Isolated:
      return ByteClass::Isolated;
    case CharacterKind::Space:
      return ByteClass::Space;
    default:
      return ByteClass::Removed;  // no ASCII character is a mark or decomposes
  }
}

constexpr std::int32_t kMostCharactersPerWord = 1000;

// The flags as Hugging Face writes them, from what was understood and not from what was found.
std::string config_text(const WordpieceTokenizer::Options& options) {
  const nlohmann::ordered_json config = {
      {"tokenizer_class", "BertTokenizer"},
      {"do_lower_case", options.normalizer.lowercase},
      {"strip_accents", options.normalizer.strip_accents},
      {"tokenize_chinese_chars", options.normalizer.isolate_chinese_characters},
      {"unk_token", options.unknown_token},
      {"cls_token", options.classification_token},
      {"sep_token", options.separator_token},
      {"pad_token", options.padding_token},
      {"mask_token", options.mask_token}};
  return config.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

// Encodes one text. Words are collected, already normalized, in a buffer and looked up when they
// end; nothing is allocated but the ids.
class WordpieceTokenizer::Encoder {
 public:
  Encoder(const WordpieceTokenizer& tokenizer, std::vector<std::int32_t>& ids)
      : tokenizer_(tokenizer), ids_(ids) {}

  /// Stops early once `enough` ids are there.
  void encode(std::string_view text, std::size_t enough) {
    const char* next = text.data();
    const char* const end = next + text.size();
    while (next != end) {
      const auto byte = static_cast<unsigned char>(*next);
      std::uint8_t kind = tokenizer_.byte_class_[byte];
      if (kind == ByteClass::MaybeAdded) {
        if (const AddedToken* const added = added_token_at(next, end)) {
          end_word();
          ids_.push_back(added->id);
          next += added->text.size();
          continue;
        }
        kind = class_of(byte, *tokenizer_.characters_);
      }
      switch (kind) {
        case ByteClass::Word:
          append_byte(tokenizer_.byte_result_[byte]);
          next = append_word_bytes(next + 1, end);
          break;
        case ByteClass::Space:
          end_word();
          ++next;
          if (ids_.size() >= enough) return;
          break;
        case ByteClass::Isolated:
          end_word();
          append_byte(tokenizer_.byte_result_[byte]);
          end_word();
          ++next;
          break;
        case ByteClass::Removed:
          ++next;
          break;
        default: {
          const char* const start = next;
          const char32_t code_point = next_code_point(next, end);
          take(code_point, std::string_view(start, static_cast<std::size_t>(next - start)));
        }
      }
    }
    end_word();
  }

 private:
  struct Mark {
    std::uint8_t combining_class;
    std::string_view bytes;
  };

  const AddedToken* added_token_at(const char* next, const char* end) const {
    const std::string_view rest(next, static_cast<std::size_t>(end - next));
    for (const AddedToken& added : tokenizer_.added_tokens_)
      if (rest.starts_with(added.text)) return &added;
    return nullptr;
  }

  void append_byte(char byte) {
    if (!marks_.empty()) flush_marks();
    if (length_ < kCapacity) word_[length_++] = byte;
  }
  // The rest of a run of plain word bytes; where nearly all time is spent.
  const char* append_word_bytes(const char* next, const char* end) {
    char* target = word_ + length_;
    const char* const stop =
        next +
        std::min<std::ptrdiff_t>(end - next, static_cast<std::ptrdiff_t>(kCapacity - length_));
    while (next != stop) {
      const auto byte = static_cast<unsigned char>(*next);
      if (tokenizer_.byte_class_[byte] != ByteClass::Word) break;
      *target++ = tokenizer_.byte_result_[byte];
      ++next;
    }
    length_ = static_cast<std::size_t>(target - word_);
    return next;
  }
  void append(std::string_view bytes) {
    // A word that fills the buffer is too long anyhow: what counts is that it stays so.
    const std::size_t count = std::min(bytes.size(), kCapacity - length_);
    std::copy_n(bytes.data(), count, word_ + length_);
    length_ += count;
  }

  void take(char32_t code_point, std::string_view source) {
    const CharacterTable& characters = *tokenizer_.characters_;
    const CharacterTable::Entry& entry = characters.entry(code_point);
    // A broken sequence is U+FFFD, whatever its bytes were.
    if (code_point == kReplacementCharacter) source = "\xEF\xBF\xBD";
    const std::string_view bytes = entry.unchanged ? source : characters.replacement(entry);
    switch (entry.kind) {
      case CharacterKind::Word:
        flush_marks();
        append(bytes);
        break;
      case CharacterKind::Isolated:
        end_word();
        append(bytes);
        end_word();
        break;
      case CharacterKind::Space:
        end_word();
        break;
      case CharacterKind::Removed:
        break;
      case CharacterKind::RemovedStarter:
        flush_marks();
        break;
      case CharacterKind::MovableMark:
        insert_mark({u_getCombiningClass(static_cast<UChar32>(code_point)), bytes});
        break;
      case CharacterKind::Sequence:
        for (const char *next = bytes.data(), *end = next + bytes.size(); next != end;) {
          const char* const start = next;
          const char32_t part = next_code_point(next, end);
          take(part, std::string_view(start, static_cast<std::size_t>(next - start)));
        }
    }
  }

  // Canonical ordering: marks of lower class go first, equal ones stay in order.
  void insert_mark(Mark mark) {
    const auto at = std::upper_bound(
        marks_.begin(), marks_.end(), mark,
        [](const Mark& a, const Mark& b) { return a.combining_class < b.combining_class; });
    marks_.insert(at, mark);
  }
  void flush_marks() {
    for (const Mark& mark : marks_) append(mark.bytes);
    marks_.clear();
  }

  void end_word() {
    if (!marks_.empty()) flush_marks();
    if (length_ == 0) return;
    const std::int32_t id = tokenizer_.words_.find(word_, length_);
    // A whole word of the vocabulary that is too long for the limit is unknown all the same.
    if (id >= 0 &&
        length_ <= static_cast<std::size_t>(tokenizer_.options_.max_characters_per_word)) {
      ids_.push_back(id);
    } else {
      cut_word();
    }
    length_ = 0;
  }

  void cut_word() {
    const std::size_t num_ids = ids_.size();
    const auto num_characters =
        std::count_if(word_, word_ + length_, [](char byte) { return (byte & 0xC0) != 0x80; });
    bool known = num_characters <= tokenizer_.options_.max_characters_per_word;
    for (std::size_t start = 0; known && start < length_;) {
      const TokenTable& table = start == 0 ? tokenizer_.words_ : tokenizer_.continuations_;
      std::size_t length = std::min(length_ - start, table.longest());
      std::int32_t id = TokenTable::kAbsent;
      for (; length > 0; --length) {
        // A piece ends where a code point does. Tokens are UTF-8, so other ends could not match:
        // this only saves looking.
        if (start + length < length_ && (word_[start + length] & 0xC0) == 0x80) continue;
        id = table.find(word_ + start, length);
        if (id != TokenTable::kAbsent) break;
      }
      known = id != TokenTable::kAbsent;
      if (known) ids_.push_back(id);
      start += length;
    }
    if (known) return;
    ids_.resize(num_ids);
    ids_.push_back(tokenizer_.unknown_id_);
  }

  // Four bytes for each allowed character and one character more, so that a word that was cut off
  // still counts as too long.
  static constexpr std::size_t kCapacity = std::size_t{4} * (kMostCharactersPerWord + 1);

  const WordpieceTokenizer& tokenizer_;
  std::vector<std::int32_t>& ids_;
  std::vector<Mark> marks_;
  std::size_t length_ = 0;
  char word_[kCapacity + TokenTable::kPadding];
};

WordpieceTokenizer WordpieceTokenizer::from_vocabulary(std::vector<std::string> tokens) {
  return from_vocabulary(std::move(tokens), Options{});
}

WordpieceTokenizer WordpieceTokenizer::from_vocabulary(std::vector<std::string> tokens,
                                                       Options options) {
  WordpieceTokenizer tokenizer;
  tokenizer.options_ = std::move(options);
  const Options& chosen = tokenizer.options_;
  if (tokens.empty()) fail("{}: has no tokens", chosen.source);
  if (tokens.size() > std::size_t{1} << 24)
    fail("{}: has {} tokens, more than the {} allowed", chosen.source, tokens.size(), 1 << 24);
  if (chosen.max_characters_per_word < 1 || chosen.max_characters_per_word > kMostCharactersPerWord)
    fail("{}: max_input_chars_per_word is {}, expected 1 to {}", chosen.source,
         chosen.max_characters_per_word, kMostCharactersPerWord);
  if (chosen.continuation_prefix.empty())
    fail("{}: continuing_subword_prefix is empty", chosen.source);

  Vocabulary& vocabulary = tokenizer.vocabulary_;
  vocabulary.tokens = std::move(tokens);
  vocabulary.source = chosen.source;
  tokenizer.words_ = TokenTable(vocabulary.tokens.size());
  tokenizer.continuations_ = TokenTable(vocabulary.tokens.size());
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string_view token = vocabulary.tokens[i];
    const auto id = static_cast<std::int32_t>(i);
    // Looked up by the first piece too: a word may begin with the prefix when it is not
    // punctuation.
    tokenizer.words_.insert(token, id);
    if (token.starts_with(chosen.continuation_prefix))
      tokenizer.continuations_.insert(token.substr(chosen.continuation_prefix.size()), id);
  }
  tokenizer.unknown_id_ = tokenizer.find_special(chosen.unknown_token);
  vocabulary.before = {tokenizer.find_special(chosen.classification_token)};
  vocabulary.after = {tokenizer.find_special(chosen.separator_token)};
  vocabulary.padding_id = tokenizer.find_special(chosen.padding_token);
  vocabulary.special_ids = {vocabulary.before[0], vocabulary.after[0], vocabulary.padding_id};
  const auto mask =
      std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), chosen.mask_token);
  if (mask != vocabulary.tokens.end())
    vocabulary.mask_id = tokenizer.find_special(chosen.mask_token);
  vocabulary.files = {{"vocab.txt", fmt::format("{}\n", fmt::join(vocabulary.tokens, "\n"))},
                      {"tokenizer_config.json", config_text(chosen)}};

  tokenizer.characters_ = std::make_shared<const CharacterTable>(chosen.normalizer);
  const CharacterTable& characters = *tokenizer.characters_;
  for (std::size_t i = 0; i < 256; ++i) {
    const auto byte = static_cast<unsigned char>(i);
    tokenizer.byte_class_[i] = class_of(byte, characters);
    tokenizer.byte_result_[i] = static_cast<char>(byte);
    if (byte >= 0x80) continue;
    const CharacterTable::Entry& entry = characters.entry(byte);
    if (entry.length == 1) tokenizer.byte_result_[i] = characters.replacement(entry)[0];
  }
  for (const std::string& special :
       {chosen.unknown_token, chosen.classification_token, chosen.separator_token,
        chosen.padding_token, chosen.mask_token})
    if (special != chosen.mask_token || vocabulary.mask_id >= 0) tokenizer.add_raw_token(special);
  for (const std::string& added : chosen.added_tokens) tokenizer.add_raw_token(added);
  std::stable_sort(
      tokenizer.added_tokens_.begin(), tokenizer.added_tokens_.end(),
      [](const AddedToken& a, const AddedToken& b) { return a.text.size() > b.text.size(); });
  return tokenizer;
}

std::int32_t WordpieceTokenizer::find_special(const std::string& token) const {
  std::string padded = token;
  padded.resize(token.size() + TokenTable::kPadding);
  const std::int32_t id = words_.find(padded.data(), token.size());
  if (id == TokenTable::kAbsent)
    fail("{}: has no token \"{}\", which the tokenizer needs", options_.source, token);
  return id;
}

void WordpieceTokenizer::add_raw_token(const std::string& text) {
  if (text.empty()) fail("{}: an added token is empty", options_.source);
  added_tokens_.push_back({text, find_special(text)});
  byte_class_[static_cast<unsigned char>(text[0])] = ByteClass::MaybeAdded;
}

void WordpieceTokenizer::append_ids(std::string_view text, std::vector<std::int32_t>& ids,
                                    std::size_t enough) const {
  Encoder(*this, ids).encode(text, enough);
}

SmallerTokenizer WordpieceTokenizer::with_tokens(const std::vector<std::int32_t>& ids) const {
  // vocab.txt has no place for these.
  const Options defaults;
  if (options_.continuation_prefix != defaults.continuation_prefix ||
      options_.max_characters_per_word != defaults.max_characters_per_word)
    fail("{}: its tokens cannot be made fewer: it has rules of its own for pieces of words",
         options_.source);
  std::set<std::int32_t> kept(vocabulary_.special_ids.begin(), vocabulary_.special_ids.end());
  kept.insert(unknown_id_);
  if (mask_id() >= 0) kept.insert(mask_id());
  for (const AddedToken& added : added_tokens_)
    if (!kept.contains(added.id))
      fail("{}: its tokens cannot be made fewer: \"{}\" is matched in the raw text",
           options_.source, added.text);
  for (const std::int32_t id : ids) {
    token(id);  // refuses what is outside
    kept.insert(id);
  }
  SmallerTokenizer result{.tokenizer = {}, .kept = {kept.begin(), kept.end()}};
  std::vector<std::string> tokens;
  for (const std::int32_t id : result.kept) tokens.push_back(token(id));
  Options options = options_;
  options.added_tokens.clear();
  options.source = "vocab.txt";
  result.tokenizer = std::make_shared<const WordpieceTokenizer>(
      from_vocabulary(std::move(tokens), std::move(options)));
  return result;
}

}  // namespace lathe::data
