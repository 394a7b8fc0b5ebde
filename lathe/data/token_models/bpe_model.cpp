#include "lathe/data/token_models/bpe_model.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/data/byte_alphabet.h"
#include "lathe/data/utf8.h"

namespace lathe::data {
namespace {

constexpr std::string_view kSpace = "\u2581";
// Up to here looking at all pairs again is quicker than a heap.
constexpr std::size_t kFewSymbols = 24;

}  // namespace

// Merges the symbols of one word. Symbols are linked by position; merging two lengthens the left
// one and drops the right one. Candidates wait in a heap and are looked at again when their turn
// comes, since a neighbour may have merged in the meantime.
class BpeModel::Merger {
 public:
  /// Merges in place.
  void run(const MergeTable& table, std::vector<std::int32_t>& ids) {
    if (ids.size() <= kFewSymbols) return run_few(table, ids);
    table_ = &table;
    symbols_.clear();
    for (std::size_t i = 0; i < ids.size(); ++i)
      symbols_.push_back(
          {ids[i], static_cast<std::int32_t>(i) - 1, static_cast<std::int32_t>(i) + 1});
    symbols_.back().next = kNone;
    for (std::int32_t i = 0; i + 1 < static_cast<std::int32_t>(symbols_.size()); ++i) consider(i);
    while (!candidates_.empty()) {
      std::pop_heap(candidates_.begin(), candidates_.end());
      const Candidate best = candidates_.back();
      candidates_.pop_back();
      apply(best);
    }
    ids.clear();
    for (std::int32_t i = 0; i != kNone; i = symbol(i).next) ids.push_back(symbol(i).id);
  }

 private:
  static constexpr std::int32_t kNone = -1;

  struct Symbol {
    std::int32_t id;
    std::int32_t previous;
    std::int32_t next;
  };
  struct Candidate {
    std::int32_t rank;
    std::int32_t left;  // the position of its left symbol
    // The heap gives the greatest first.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };

  void run_few(const MergeTable& table, std::vector<std::int32_t>& ids) {
    few_.clear();
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) few_.push_back(table.find(ids[i], ids[i + 1]));
    while (true) {
      std::size_t best = few_.size();
      for (std::size_t i = 0; i < few_.size(); ++i)
        if (few_[i].rank >= 0 && (best == few_.size() || few_[i].rank < few_[best].rank)) best = i;
      if (best == few_.size()) return;
      const auto at = static_cast<std::ptrdiff_t>(best);
      ids[best] = few_[best].id;
      ids.erase(ids.begin() + at + 1);
      few_.erase(few_.begin() + at);
      if (best < few_.size()) few_[best] = table.find(ids[best], ids[best + 1]);
      if (best > 0) few_[best - 1] = table.find(ids[best - 1], ids[best]);
    }
  }

  Symbol& symbol(std::int32_t position) { return symbols_[static_cast<std::size_t>(position)]; }

  MergeTable::Merge merge_at(std::int32_t left) {
    const std::int32_t right = symbol(left).next;
    if (symbol(left).id == kNone || right == kNone) return {};
    return table_->find(symbol(left).id, symbol(right).id);
  }
  void consider(std::int32_t left) {
    const MergeTable::Merge merge = merge_at(left);
    if (merge.rank < 0) return;
    candidates_.push_back({merge.rank, left});
    std::push_heap(candidates_.begin(), candidates_.end());
  }
  void apply(const Candidate& candidate) {
    const std::int32_t left = candidate.left;
    const MergeTable::Merge merge = merge_at(left);
    if (merge.rank != candidate.rank) return;  // one of the two has merged otherwise
    const std::int32_t right = symbol(left).next;
    const std::int32_t after = symbol(right).next;
    symbol(left).id = merge.id;
    symbol(left).next = after;
    symbol(right).id = kNone;
    if (after != kNone) symbol(after).previous = left;
    consider(left);
    if (symbol(left).previous != kNone) consider(symbol(left).previous);
  }

  const MergeTable* table_ = nullptr;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;
  std::vector<MergeTable::Merge> few_;
};

BpeModel::BpeModel(const std::vector<std::string>& tokens, const Merges& merges, Options options)
    : options_(std::move(options)), ids_(tokens.size()), whole_(tokens.size()) {
  for (std::size_t id = 0; id < tokens.size(); ++id)
    ids_.insert(tokens[id], static_cast<std::int32_t>(id));
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char one = static_cast<char>(byte);
    byte_ids_[byte] = find(options_.reads_bytes ? write_in_byte_alphabet({&one, 1})
                                                : fmt::format("<0x{:02X}>", byte));
    if (options_.reads_bytes && byte_ids_[byte] == TokenTable::kAbsent)
      fail("has no token for the byte {}, expected one for each of the 256", byte);
  }
  if (options_.unknown_token) {
    unknown_id_ = find(*options_.unknown_token);
    // A piece of bytes always has tokens.
    if (unknown_id_ == TokenTable::kAbsent && !options_.reads_bytes)
      fail("has no token {}, which stands for what has none", quote_text(*options_.unknown_token));
  }
  add_merges(merges);
  is_cut_at_spaces_ = are_words_apart(merges);
  find_whole_tokens(tokens);
}

std::int32_t BpeModel::find(std::string_view token) const {
  return ids_.find(padded(token).data(), token.size());
}

std::int32_t BpeModel::require(std::string_view token) const {
  const std::int32_t id = find(token);
  if (id == TokenTable::kAbsent) fail("has no token {}", quote_text(token));
  return id;
}

void BpeModel::add_merges(const Merges& merges) {
  merges_ = MergeTable(merges.size());
  std::int32_t rank = 0;
  for (const auto& [left, right] : merges) {
    with_place(fmt::format("merge {}", rank + 1), [&] {
      // The prefix of what continues a word is written once.
      const std::size_t prefix = options_.continuation_prefix.size();
      if (right.size() < prefix)
        fail("{} does not begin with the prefix {}", quote_text(right),
             quote_text(options_.continuation_prefix));
      merges_.insert(require(left), require(right), {rank, require(left + right.substr(prefix))});
    });
    ++rank;
  }
}

// Whether words can be merged one by one although a text was not cut: nothing crosses from the end
// of one into the space in front of the next, and that space is a token, so that unknown characters
// of two words never fuse.
bool BpeModel::are_words_apart(const Merges& merges) const {
  if (options_.reads_bytes || !options_.continuation_prefix.empty() ||
      !options_.word_suffix.empty() || options_.ignores_merges ||
      find(kSpace) == TokenTable::kAbsent)
    return false;
  return std::none_of(merges.begin(), merges.end(), [](const auto& merge) {
    return merge.second.starts_with(kSpace) && !merge.first.ends_with(kSpace);
  });
}

void BpeModel::find_whole_tokens(const std::vector<std::string>& tokens) {
  std::vector<std::int32_t> ids;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    std::string word = tokens[id];
    if (options_.reads_bytes) word = read_byte_alphabet(word).value_or("");
    if (!word.ends_with(options_.word_suffix)) continue;
    word.resize(word.size() - options_.word_suffix.size());
    if (word.empty()) continue;
    ids.clear();
    if (options_.ignores_merges && options_.word_suffix.empty()) {
      ids.push_back(static_cast<std::int32_t>(id));
    } else {
      const std::string readable = padded(word);
      append_merged(std::string_view(readable).substr(0, word.size()), ids);
    }
    if (ids.size() == 1) whole_.insert(word, ids[0]);
  }
}

void BpeModel::append_ids(std::string_view piece, std::vector<std::int32_t>& ids) const {
  if (!is_cut_at_spaces_) return append_word(piece, ids);
  std::size_t begin = 0;
  for (std::size_t at = 0; (at = piece.find(kSpace, at)) != piece.npos; at += kSpace.size()) {
    if (at == begin || piece.substr(0, at).ends_with(kSpace)) continue;
    append_word(piece.substr(begin, at - begin), ids);
    begin = at;
  }
  append_word(piece.substr(begin), ids);
}

void BpeModel::append_word(std::string_view word, std::vector<std::int32_t>& ids) const {
  const std::int32_t id = whole_.find(word.data(), word.size());
  if (id != TokenTable::kAbsent) {
    ids.push_back(id);
  } else {
    append_merged(word, ids);
  }
}

void BpeModel::append_merged(std::string_view word, std::vector<std::int32_t>& ids) const {
  // What one thread needs for one word after the other.
  static thread_local std::vector<std::int32_t> symbols;
  static thread_local Merger merger;
  symbols.clear();
  if (options_.reads_bytes) {
    for (const char byte : word) symbols.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
  } else {
    spell(word, symbols);
  }
  if (symbols.size() > 1) merger.run(merges_, symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

// The tokens of a word's characters. An unknown one waits until a known one follows, for it may
// fuse with others; tokens of bytes do not end its waiting, as in the reference.
void BpeModel::spell(std::string_view word, std::vector<std::int32_t>& symbols) const {
  bool waits = false;
  const char* next = word.data();
  const char* const end = next + word.size();
  std::string written;
  while (next != end) {
    const char* const begin = next;
    next_code_point(next, end);
    const auto length = static_cast<std::size_t>(next - begin);
    const bool has_prefix = begin != word.data() && !options_.continuation_prefix.empty();
    const bool has_suffix = next == end && !options_.word_suffix.empty();
    std::int32_t id = TokenTable::kAbsent;
    std::string_view character(begin, length);
    if (has_prefix || has_suffix) {
      written = has_prefix ? options_.continuation_prefix : "";
      written.append(begin, length);
      if (has_suffix) written += options_.word_suffix;
      character = written;
      id = find(written);
    } else {
      id = ids_.find(begin, length);
    }
    if (id != TokenTable::kAbsent) {
      if (waits) symbols.push_back(unknown_id_);
      waits = false;
      symbols.push_back(id);
      continue;
    }
    const auto byte_id = [this](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
    if (options_.has_byte_tokens && std::all_of(character.begin(), character.end(), [&](char byte) {
          return byte_id(byte) != TokenTable::kAbsent;
        })) {
      for (const char byte : character) symbols.push_back(byte_id(byte));
      continue;
    }
    if (unknown_id_ < 0) continue;  // what has no token is left out
    if (waits && !options_.fuses_unknown) symbols.push_back(unknown_id_);
    waits = true;
  }
  if (waits) symbols.push_back(unknown_id_);
}

}  // namespace lathe::data
