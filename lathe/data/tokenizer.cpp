#include "lathe/data/tokenizer.h"

#include <algorithm>
#include <set>

#include "lathe/core/error.h"
#include "lathe/data/decoders/decoder.h"
#include "lathe/data/tokenizer_json.h"
#include "lathe/data/tokenizer_source.h"

namespace lathe::data {

Truncation parse_truncation(std::string_view name) {
  if (name == "head") return Truncation::Head;
  if (name == "head+tail") return Truncation::HeadTail;
  throw unknown_name("truncation", name, {"head", "head+tail"});
}

std::string_view name(Truncation truncation) {
  return truncation == Truncation::Head ? "head" : "head+tail";
}

void Tokenizer::encode(std::string_view text, std::vector<std::int32_t>& ids,
                       std::int64_t max_length, Truncation truncation) const {
  check_length(max_length);
  const std::vector<std::int32_t>& before = vocabulary_.before;
  const std::vector<std::int32_t>& after = vocabulary_.after;
  ids.insert(ids.end(), before.begin(), before.end());
  const std::size_t first = ids.size();
  const auto room = static_cast<std::size_t>(max_length - num_special());
  const bool head_only = truncation == Truncation::Head && max_length != kNoLimit;
  append_ids(text, ids, head_only ? first + room : std::numeric_limits<std::size_t>::max());
  const std::size_t num_found = ids.size() - first;
  if (num_found > room) {
    const std::size_t head = truncation == Truncation::Head ? room : room / 4;
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(first + head);
    ids.erase(begin, begin + static_cast<std::ptrdiff_t>(num_found - room));
  }
  ids.insert(ids.end(), after.begin(), after.end());
}

namespace {

// Keeps `room` ids of those from `first` on.
void truncate(std::vector<std::int32_t>& ids, std::size_t first, std::size_t room,
              Truncation truncation) {
  const std::size_t found = ids.size() - first;
  if (found <= room) return;
  const std::size_t head = truncation == Truncation::Head ? room : room / 4;
  const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(first + head);
  ids.erase(begin, begin + static_cast<std::ptrdiff_t>(found - room));
}

}  // namespace

std::int64_t Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                    std::vector<std::int32_t>& ids, std::int64_t max_length,
                                    Truncation truncation) const {
  const PairTokens around = vocabulary_.pair.value_or(PairTokens{
      vocabulary_.before, vocabulary_.after, vocabulary_.after, vocabulary_.after.size()});
  const auto& [before, between, after, num_between_first] = around;
  const auto num_special = static_cast<std::int64_t>(before.size() + between.size() + after.size());
  if (max_length < num_special + 2)
    fail("max_length is {}, expected at least {} for a pair of texts", max_length, num_special + 2);
  const std::size_t begin = ids.size();
  ids.insert(ids.end(), before.begin(), before.end());
  const std::size_t first_begin = ids.size();
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  append_ids(first, ids, kAll);
  std::vector<std::int32_t> others;
  append_ids(second, others, kAll);
  // What each may have: the shorter keeps all it has up to half of the room.
  const auto room = static_cast<std::size_t>(max_length - num_special);
  std::size_t most_first = ids.size() - first_begin, most_second = others.size();
  if (most_first + most_second > room) {
    const bool is_first_shorter = most_first <= most_second;
    std::size_t& shorter = is_first_shorter ? most_first : most_second;
    std::size_t& longer = is_first_shorter ? most_second : most_first;
    shorter = std::min(shorter, room / 2);
    longer = room - shorter;
  }
  truncate(ids, first_begin, most_first, truncation);
  const auto num_first = static_cast<std::int64_t>(ids.size() - begin + num_between_first);
  ids.insert(ids.end(), between.begin(), between.end());
  truncate(others, 0, most_second, truncation);
  ids.insert(ids.end(), others.begin(), others.end());
  ids.insert(ids.end(), after.begin(), after.end());
  return num_first;
}

void Tokenizer::encode_words(std::span<const std::string> sentence, std::vector<std::int32_t>& ids,
                             std::vector<std::int32_t>& words, std::int64_t max_length) const {
  check_length(max_length);
  const std::size_t begin = ids.size(), begin_words = words.size();
  ids.insert(ids.end(), vocabulary_.before.begin(), vocabulary_.before.end());
  const auto end =
      begin + static_cast<std::size_t>(std::min(max_length, kNoLimit / 2) -
                                       static_cast<std::int64_t>(vocabulary_.after.size()));
  words.resize(begin_words + ids.size() - begin, -1);
  for (std::size_t i = 0; i < sentence.size() && ids.size() < end; ++i) {
    const std::size_t first = ids.size();
    append_ids(" " + sentence[i], ids, end);
    ids.resize(std::min(ids.size(), end));
    words.resize(begin_words + ids.size() - begin, -1);
    // Nothing may be left of a word, such as of one of control characters alone.
    if (ids.size() > first) words[begin_words + first - begin] = static_cast<std::int32_t>(i);
  }
  ids.insert(ids.end(), vocabulary_.after.begin(), vocabulary_.after.end());
  words.resize(begin_words + ids.size() - begin, -1);
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  encode(text, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool with_special) const {
  std::vector<std::string> tokens;
  for (const std::int32_t id : ids) {
    const std::string& text = token(id);
    const std::vector<std::int32_t>& unread = vocabulary_.unread_ids;
    if (with_special || !std::binary_search(unread.begin(), unread.end(), id))
      tokens.push_back(text);
  }
  if (!decoder_) return fmt::format("{}", fmt::join(tokens, " "));
  decoder_->decode(tokens);
  return fmt::format("{}", fmt::join(tokens, ""));
}

void Tokenizer::check_size(std::int64_t expected) const {
  // Some models pad their tables to rows that hardware likes, or round their number up (DeBERTa's
  // third version has 128,100 for 128,001 tokens); the rows beyond are never read.
  constexpr std::int64_t kRows = 64, kMostPadding = 1024, kLeastShare = 100;
  const std::int64_t padding = expected - vocabulary_size();
  const bool is_padded = (expected % kRows == 0 || padding <= expected / kLeastShare) &&
                         padding > 0 && padding < kMostPadding;
  if (padding != 0 && !is_padded)
    fail("{}: has {} tokens, but config.json says vocab_size is {}", vocabulary_.source,
         vocabulary_size(), expected);
}

void Tokenizer::check_length(std::int64_t max_length) const {
  if (max_length > num_special()) return;
  std::vector<std::string> parts;
  for (const std::int32_t id : vocabulary_.before) parts.push_back(token(id));
  parts.emplace_back("a token");
  for (const std::int32_t id : vocabulary_.after) parts.push_back(token(id));
  fail("max_length is {}, expected at least {}: {}", max_length, num_special() + 1,
       fmt::join(parts, ", "));
}

SmallerTokenizer Tokenizer::with_tokens(const std::vector<std::int32_t>&) const {
  fail("{}: its tokens cannot be made fewer: only BERT's WordPiece can do without some",
       vocabulary_.source);
}

const std::string& Tokenizer::token(std::int32_t id) const {
  if (id < 0 || id >= vocabulary_size())
    fail("token id {} is outside the vocabulary of {} tokens", id, vocabulary_size());
  return vocabulary_.tokens[static_cast<std::size_t>(id)];
}

std::shared_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& path) {
  const TokenizerSource source(path);
  const Registry<TokenizerKind>& kinds = Registry<TokenizerKind>::instance();
  for (const auto& [name, kind] : kinds.all())
    if (kind.recognizes(source)) return kind.load(source);
  if (source.tokenizer_json())
    fail("{}: its model is of type {}, which no kind of tokenizer reads; known: {}",
         source.place(kTokenizerJson),
         with_place(source.place(kTokenizerJson), [&] { return plain_name(source.model_type()); }),
         fmt::join(kinds.names(), ", "));
  fail("{}: has no tokenizer: expected tokenizer.json or a vocabulary such as vocab.txt",
       path.string());
}

std::vector<std::string> all_tokenizer_files() {
  std::set<std::string> names = {"special_tokens_map.json", "tokenizer_config.json"};
  for (const auto& [name, kind] : Registry<TokenizerKind>::instance().all())
    names.insert(kind.files.begin(), kind.files.end());
  return {names.begin(), names.end()};
}

}  // namespace lathe::data
