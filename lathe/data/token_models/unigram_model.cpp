#include "lathe/data/token_models/unigram_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/data/tokenizer_json.h"
#include "lathe/data/utf8.h"

namespace lathe::data {
namespace {

using Json = nlohmann::json;

constexpr double kUnknownPenalty = 10;

// The best cut that ends at some byte: its last token and where that begins.
struct BestEnd {
  double score = 0;
  std::int32_t id = -1;
  std::int32_t begin = -1;  // -1: no cut ends here
};

std::vector<ByteTrie::Entry> trie_entries(const UnigramModel::Scores& scores) {
  std::vector<ByteTrie::Entry> entries;
  entries.reserve(scores.size());
  for (std::size_t id = 0; id < scores.size(); ++id)
    entries.emplace_back(scores[id].first, static_cast<std::int32_t>(id));
  return entries;
}

}  // namespace

UnigramModel::UnigramModel(Scores scores, std::int32_t unknown_id, bool has_byte_tokens)
    : unknown_id_(unknown_id),
      has_byte_tokens_(has_byte_tokens),
      trie_(trie_entries(scores)),
      ids_(scores.size()),
      whole_(scores.size()) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t id = 0; id < scores.size(); ++id) {
    ids_.insert(scores[id].first, static_cast<std::int32_t>(id));
    scores_.push_back(scores[id].second);
    least = std::min(least, scores[id].second);
  }
  unknown_score_ = least - kUnknownPenalty;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::string token = padded(fmt::format("<0x{:02X}>", byte));
    byte_ids_[byte] = ids_.find(token.data(), token.size() - TokenTable::kPadding);
  }
  std::vector<std::int32_t> ids;
  for (const auto& [token, score] : scores) {
    if (token.empty()) continue;
    ids.clear();
    const std::string readable = padded(token);
    try {
      append_best(std::string_view(readable).substr(0, token.size()), ids);
    } catch (const UserError&) {
      continue;  // it has unknown characters: a text that has them fails, not the file
    }
    if (ids.size() == 1) whole_.insert(token, ids[0]);
  }
}

void UnigramModel::append_ids(std::string_view piece, std::vector<std::int32_t>& ids) const {
  const std::int32_t id = whole_.find(piece.data(), piece.size());
  if (id != TokenTable::kAbsent) {
    ids.push_back(id);
  } else {
    append_best(piece, ids);
  }
}

void UnigramModel::append_best(std::string_view piece, std::vector<std::int32_t>& ids) const {
  // What one thread needs for one piece after the other.
  static thread_local std::vector<BestEnd> ends;
  static thread_local std::vector<std::pair<std::size_t, std::size_t>> cut;
  ends.assign(piece.size() + 1, {});
  const auto offer = [&](std::size_t begin, std::size_t end, std::int32_t id, double score) {
    BestEnd& best = ends[end];
    if (best.begin < 0 || score > best.score) best = {score, id, static_cast<std::int32_t>(begin)};
  };
  for (std::size_t at = 0; at < piece.size();) {
    const char* next = piece.data() + at;
    next_code_point(next, piece.data() + piece.size());
    const std::size_t length = static_cast<std::size_t>(next - piece.data()) - at;
    const double score = ends[at].score;
    bool has_character = false;
    trie_.find(piece.substr(at), [&](std::size_t found, std::int32_t id) {
      offer(at, at + found, id, scores_[static_cast<std::size_t>(id)] + score);
      has_character |= found == length;
    });
    if (!has_character) {
      if (unknown_id_ < 0)
        fail("the character {} has no token, and there is none for unknown ones",
             quote_text(piece.substr(at, length)));
      offer(at, at + length, unknown_id_, unknown_score_ + score);
    }
    at += length;
  }
  // From the end, unknown ones in a row as one.
  cut.clear();
  for (std::size_t end = piece.size(), fused = 0; end > 0;) {
    const BestEnd& best = ends[end];
    const auto begin = static_cast<std::size_t>(best.begin);
    const bool is_unknown = best.id == unknown_id_;
    if (is_unknown && fused > 0) {
      cut.back().first = begin;
    } else {
      cut.emplace_back(begin, end);
    }
    fused = is_unknown ? 1 : 0;
    end = begin;
  }
  for (auto part = cut.rbegin(); part != cut.rend(); ++part)
    append_token(piece.substr(part->first, part->second - part->first), ids);
}

// What was cut out is looked up once more: unknown characters that were fused may be a token.
void UnigramModel::append_token(std::string_view text, std::vector<std::int32_t>& ids) const {
  const std::int32_t id = ids_.find(text.data(), text.size());
  const auto byte_id = [this](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  if (id != TokenTable::kAbsent) {
    ids.push_back(id);
  } else if (has_byte_tokens_ && std::all_of(text.begin(), text.end(), [&](char byte) {
               return byte_id(byte) != TokenTable::kAbsent;
             })) {
    for (const char byte : text) ids.push_back(byte_id(byte));
  } else {
    ids.push_back(unknown_id_);
  }
}

namespace {

// A number as the library's parser reads its shortest decimal form: all digits as one whole number,
// divided by a power of ten, which rounds twice. Different ways to cut a word often have sums that
// differ in the last bit or not at all, so that the last bit of a score decides between them.
double as_read_by_the_library(double value) {
  if (value == 0) return value;
  char text[32];
  const auto end =
      std::to_chars(text, text + sizeof text, std::abs(value), std::chars_format::scientific).ptr;
  std::uint64_t whole = 0;
  int exponent = 0;
  bool is_fraction = false;
  const char* next = text;
  for (; next != end && *next != 'e'; ++next) {
    if (*next == '.') {
      is_fraction = true;
      continue;
    }
    whole = whole * 10 + static_cast<std::uint64_t>(*next - '0');
    if (is_fraction) --exponent;
  }
  int scale = 0;
  if (next != end) ++next;
  if (next != end && *next == '+') ++next;
  std::from_chars(next, end, scale);
  exponent += scale;
  const auto digits = static_cast<double>(whole);
  const double power = std::pow(10.0, std::abs(exponent));
  return std::copysign(exponent < 0 ? digits / power : digits * power, value);
}

LoadedModel load_unigram(const Json& model, bool& reads_bytes) {
  reads_bytes = false;
  const Json* const vocabulary = member(model, "vocab");
  if (!vocabulary || !vocabulary->is_array() || vocabulary->empty())
    fail("model.vocab has no tokens");
  UnigramModel::Scores scores;
  LoadedModel loaded;
  for (const Json& each : *vocabulary) {
    if (!each.is_array() || each.size() != 2 || !each[0].is_string() || !each[1].is_number() ||
        !std::isfinite(each[1].get<double>()))
      fail("token {} is {}, expected a text and its score", scores.size(), shown(each));
    scores.emplace_back(each[0], as_read_by_the_library(each[1].get<double>()));
    loaded.tokens.push_back(scores.back().first);
  }
  std::int64_t unknown = -1;
  read_member(model, "unk_id", unknown, 0, static_cast<std::int64_t>(scores.size()) - 1);
  bool has_byte_tokens = false;
  read_member(model, "byte_fallback", has_byte_tokens);
  loaded.model = std::make_unique<UnigramModel>(
      std::move(scores), static_cast<std::int32_t>(unknown), has_byte_tokens);
  return loaded;
}

const Register unigram_kind{TokenModelKind{.name = "Unigram", .load = load_unigram}};

}  // namespace
}  // namespace lathe::data
