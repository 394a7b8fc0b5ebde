#include "lathe/data/byte_level_bpe.h"

#include <algorithm>
#include <queue>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/data/byte_alphabet.h"
#include "lathe/data/gpt2_split.h"
#include "lathe/data/utf8.h"

namespace lathe::data {
namespace {

// `text` with bytes after it that TokenTable may read.
std::string padded(std::string_view text) {
  std::string result(text);
  result.append(TokenTable::kPadding, '\0');
  return result;
}

}  // namespace

// Encodes one text. A piece is a list of symbols linked by position; merging two lengthens the left
// one and drops the right one. Candidates wait in a heap and are looked at again when their turn
// comes, since a neighbour may have merged in the meantime.
class ByteLevelBpe::Encoder {
 public:
  /// Goes on until `enough` ids are there.
  Encoder(const ByteLevelBpe& tokenizer, std::vector<std::int32_t>& ids, std::size_t enough)
      : tokenizer_(tokenizer), ids_(ids), enough_(enough) {}

  bool has_enough() const { return ids_.size() >= enough_; }
  void add(std::int32_t id) { ids_.push_back(id); }

  /// Appends the ids of the text between two added tokens.
  void encode_fragment(std::string_view text) {
    if (text.empty()) return;
    // A copy with the bytes after it that TokenTable may read.
    fragment_.clear();
    if (tokenizer_.options_.add_prefix_space && text[0] != ' ') fragment_ += ' ';
    fragment_ += text;
    const std::size_t size = fragment_.size();
    fragment_.append(TokenTable::kPadding, '\0');
    std::string_view fragment = std::string_view(fragment_).substr(0, size);
    while (!fragment.empty() && !has_enough()) {
      const std::size_t length = gpt2_piece_length(fragment);
      const std::int32_t id = tokenizer_.whole_.find(fragment.data(), length);
      if (id != TokenTable::kAbsent) {
        ids_.push_back(id);
      } else {
        merge(fragment.substr(0, length));
      }
      fragment.remove_prefix(length);
    }
  }

  void merge(std::string_view piece) {
    symbols_.clear();
    for (std::size_t i = 0; i < piece.size(); ++i)
      symbols_.push_back({tokenizer_.byte_ids_[static_cast<unsigned char>(piece[i])],
                          static_cast<std::int32_t>(i) - 1, static_cast<std::int32_t>(i) + 1});
    symbols_.back().next = kNone;
    for (std::int32_t i = 0; i + 1 < static_cast<std::int32_t>(symbols_.size()); ++i) consider(i);
    while (!candidates_.empty()) {
      const Candidate best = candidates_.top();
      candidates_.pop();
      apply(best);
    }
    for (std::int32_t i = 0; i != kNone; i = symbols_[static_cast<std::size_t>(i)].next)
      ids_.push_back(symbols_[static_cast<std::size_t>(i)].id);
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

  Symbol& symbol(std::int32_t position) { return symbols_[static_cast<std::size_t>(position)]; }

  MergeTable::Merge merge_at(std::int32_t left) {
    const std::int32_t right = symbol(left).next;
    if (symbol(left).id == kNone || right == kNone) return {};
    return tokenizer_.merges_.find(symbol(left).id, symbol(right).id);
  }
  void consider(std::int32_t left) {
    if (const MergeTable::Merge merge = merge_at(left); merge.rank >= 0)
      candidates_.push({merge.rank, left});
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

  const ByteLevelBpe& tokenizer_;
  std::vector<std::int32_t>& ids_;
  std::size_t enough_;
  std::string fragment_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> candidates_;
};

ByteLevelBpe::ByteLevelBpe(Vocabulary vocabulary,
                           const std::vector<std::pair<std::string, std::string>>& merges,
                           Options options)
    : options_(std::move(options)) {
  vocabulary_ = std::move(vocabulary);
  ids_ = TokenTable(vocabulary_.tokens.size());
  for (std::size_t id = 0; id < vocabulary_.tokens.size(); ++id)
    ids_.insert(vocabulary_.tokens[id], static_cast<std::int32_t>(id));
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char one = static_cast<char>(byte);
    const std::string token = padded(write_in_byte_alphabet({&one, 1}));
    byte_ids_[byte] = ids_.find(token.data(), token.size() - TokenTable::kPadding);
    if (byte_ids_[byte] == TokenTable::kAbsent)
      fail("{}: has no token for the byte {}, expected one for each of the 256", vocabulary_.source,
           byte);
  }
  add_merges(merges);
  find_whole_tokens();
  add_raw_tokens();
}

std::int32_t ByteLevelBpe::require_token(std::string_view token) const {
  const std::int32_t id = ids_.find(padded(token).data(), token.size());
  if (id == TokenTable::kAbsent) fail("has no token {}", quote_text(token));
  return id;
}

void ByteLevelBpe::add_merges(const std::vector<std::pair<std::string, std::string>>& merges) {
  merges_ = MergeTable(merges.size());
  std::int32_t rank = 0;
  for (const auto& [left, right] : merges) {
    with_place(fmt::format("{}: merge {}", vocabulary_.source, rank + 1), [&] {
      merges_.insert(require_token(left), require_token(right),
                     {rank, require_token(left + right)});
    });
    ++rank;
  }
}

void ByteLevelBpe::find_whole_tokens() {
  whole_ = TokenTable(vocabulary_.tokens.size());
  std::vector<std::int32_t> ids;
  Encoder encoder(*this, ids, 0);
  for (const std::string& token : vocabulary_.tokens) {
    const std::optional<std::string> bytes = read_byte_alphabet(token);
    if (!bytes || bytes->empty()) continue;
    ids.clear();
    encoder.merge(*bytes);
    if (ids.size() == 1) whole_.insert(*bytes, ids[0]);
  }
}

void ByteLevelBpe::add_raw_tokens() {
  for (const AddedToken& added : options_.added_tokens) {
    RawTokens& round = raw_tokens_[added.normalized ? 1 : 0];
    with_place(vocabulary_.source, [&] {
      round.tokens.push_back({added.content, require_token(added.content)});
    });
    round.is_first[static_cast<unsigned char>(added.content[0])] = true;
  }
  for (RawTokens& round : raw_tokens_)
    std::stable_sort(
        round.tokens.begin(), round.tokens.end(),
        [](const RawToken& a, const RawToken& b) { return a.text.size() > b.text.size(); });
}

// Cuts at the added tokens of one round after the other, leftmost and longest first. What is left
// are fragments, each encoded as a text of its own.
void ByteLevelBpe::cut(std::string_view text, std::size_t round, Encoder& encoder) const {
  if (round == raw_tokens_.size()) return encoder.encode_fragment(text);
  const RawTokens& raw = raw_tokens_[round];
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !encoder.has_enough(); ++at) {
    if (!raw.is_first[static_cast<unsigned char>(text[at])]) continue;
    const std::string_view rest = text.substr(at);
    const auto found =
        std::find_if(raw.tokens.begin(), raw.tokens.end(),
                     [&](const RawToken& token) { return rest.starts_with(token.text); });
    if (found == raw.tokens.end()) continue;
    cut(text.substr(done, at - done), round + 1, encoder);
    encoder.add(found->id);
    done = at + found->text.size();
    at = done - 1;
  }
  cut(text.substr(done), round + 1, encoder);
}

void ByteLevelBpe::append_ids(std::string_view text, std::vector<std::int32_t>& ids,
                              std::size_t enough) const {
  Encoder encoder(*this, ids, enough);
  if (is_utf8(text)) {
    cut(text, 0, encoder);
  } else {
    cut(as_utf8(text), 0, encoder);
  }
}

}  // namespace lathe::data
