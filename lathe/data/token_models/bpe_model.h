#pragma once

#include <array>
#include <optional>
#include <utility>

#include "lathe/data/merge_table.h"
#include "lathe/data/token_models/token_model.h"
#include "lathe/data/token_table.h"

namespace lathe::data {

/// Byte-pair encoding: a piece's characters, or its bytes, are merged pair by pair, the pair of
/// lowest rank first and of equal ones the leftmost, until no pair merges.
class BpeModel final : public TokenModel {
 public:
  using Merges = std::vector<std::pair<std::string, std::string>>;
  struct Options {
    /// The tokens are written in the byte alphabet, and pieces are given as bytes.
    bool reads_bytes = false;
    std::optional<std::string> unknown_token = {};
    bool fuses_unknown = false;    ///< unknown characters in a row are one token
    bool has_byte_tokens = false;  ///< an unknown character becomes tokens such as <0xE4>
    bool ignores_merges = false;   ///< a piece that is a token is that token
    std::string continuation_prefix = {};
    std::string word_suffix = {};
  };

  BpeModel(const std::vector<std::string>& tokens, const Merges& merges, Options options);

  void append_ids(std::string_view piece, std::vector<std::int32_t>& ids) const override;
  std::int32_t unknown_id() const override { return unknown_id_; }

 private:
  class Merger;

  std::int32_t find(std::string_view token) const;
  std::int32_t require(std::string_view token) const;
  void add_merges(const Merges& merges);
  void find_whole_tokens(const std::vector<std::string>& tokens);
  bool are_words_apart(const Merges& merges) const;
  void append_word(std::string_view word, std::vector<std::int32_t>& ids) const;
  void append_merged(std::string_view word, std::vector<std::int32_t>& ids) const;
  void spell(std::string_view word, std::vector<std::int32_t>& symbols) const;

  Options options_;
  TokenTable ids_;  // by the token as it is written
  std::array<std::int32_t, 256> byte_ids_{};
  std::int32_t unknown_id_ = -1;
  MergeTable merges_;
  // Words that merge into a single token: most of a text. What a cache of words would learn, made
  // once, so that threads need no lock.
  TokenTable whole_;
  // No merge joins the end of a word and the space written in front of the next, so that a text
  // that was not cut at all can be cut there.
  bool is_cut_at_spaces_ = false;
};

}  // namespace lathe::data
