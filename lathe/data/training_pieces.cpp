#include "lathe/data/training_pieces.h"

#include <map>

#include "lathe/data/utf8.h"

namespace lathe::data {
namespace {

// Hugging Face's limit: a text of many scripts would otherwise fill the vocabulary with characters.
constexpr std::size_t kMostCharacters = 1000;

}  // namespace

std::vector<std::string> characters_of(const std::string& word) {
  std::vector<std::string> characters;
  for (const char *next = word.data(), *end = next + word.size(); next != end;) {
    const char* const start = next;
    next_code_point(next, end);
    characters.emplace_back(start, next);
  }
  return characters;
}

// UTF-8 sorts as code points do.
std::vector<std::string> alphabet_of(const std::vector<CountedWord>& words) {
  std::map<std::string, std::int64_t> counts;
  for (const CountedWord& word : words)
    for (const std::string& character : characters_of(word.word)) counts[character] += word.count;
  std::vector<std::pair<std::string, std::int64_t>> all(counts.begin(), counts.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  all.resize(std::min(all.size(), kMostCharacters));
  std::vector<std::string> kept;
  for (const auto& [character, count] : all) kept.push_back(character);
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace lathe::data
