#include "lathe/data/added_tokens.h"

#include "lathe/core/error.h"
#include "lathe/data/unicode_classes.h"
#include "lathe/data/utf8.h"

namespace lathe::data {
namespace {

// Where the last character before `end` begins.
std::size_t previous(std::string_view text, std::size_t end) {
  do {
    --end;
  } while (end > 0 && (text[end] & 0xC0) == 0x80);
  return end;
}

char32_t character_at(std::string_view text, std::size_t at) {
  const char* next = text.data() + at;
  return next_code_point(next, text.data() + text.size());
}

bool is_within_word(std::string_view text, std::size_t begin, std::size_t end) {
  return (begin > 0 && is_word_character(character_at(text, previous(text, begin)))) ||
         (end < text.size() && is_word_character(character_at(text, end)));
}

std::size_t without_space_before(std::string_view text, std::size_t begin, std::size_t least) {
  while (begin > least) {
    const std::size_t at = previous(text, begin);
    if (!is_white_space(character_at(text, at))) break;
    begin = at;
  }
  return std::max(begin, least);
}

std::size_t with_space_behind(std::string_view text, std::size_t end) {
  while (end < text.size()) {
    const char* next = text.data() + end;
    if (!is_white_space(next_code_point(next, text.data() + text.size()))) break;
    end = static_cast<std::size_t>(next - text.data());
  }
  return end;
}

std::vector<ByteTrie::Entry> entries_of(const std::vector<std::string>& texts) {
  std::vector<ByteTrie::Entry> entries;
  for (std::size_t i = 0; i < texts.size(); ++i)
    entries.emplace_back(texts[i], static_cast<std::int32_t>(i));
  return entries;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, std::vector<std::string> texts)
    : tokens_(std::move(tokens)), trie_(entries_of(texts)) {
  check(tokens_.size() == texts.size(), "a text for every added token");
  for (const std::string& text : texts)
    if (!text.empty()) is_first_[static_cast<unsigned char>(text[0])] = true;
}

std::vector<AddedTokens::Part> AddedTokens::cut(std::string_view text) const {
  std::vector<Part> parts;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_first_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    std::size_t end = 0;
    std::int32_t place = -1;
    trie_.find(text.substr(at), [&](std::size_t length, std::int32_t found) {
      end = at + length;
      place = found;
    });
    if (place < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<std::size_t>(place)];
    std::size_t begin = at;
    at = end;  // the search goes on here whatever becomes of what was found
    if (token.single_word && is_within_word(text, begin, end)) continue;
    if (token.lstrip) begin = without_space_before(text, begin, done);
    if (token.rstrip) end = with_space_behind(text, end);
    if (done < begin) parts.push_back({done, begin, -1});
    parts.push_back({begin, end, token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({done, text.size(), -1});
  return parts;
}

}  // namespace lathe::data
