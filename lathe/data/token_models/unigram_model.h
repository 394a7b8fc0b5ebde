#pragma once

#include <array>
#include <utility>

#include "lathe/data/byte_trie.h"
#include "lathe/data/token_models/token_model.h"
#include "lathe/data/token_table.h"

namespace lathe::data {

/// SentencePiece's unigram model (Kudo 2018): of all ways to cut a piece into tokens the one whose
/// scores, logarithms of probabilities, have the greatest sum. A character without a token of its
/// own may be cut off as unknown for ten less than the lowest score; unknown ones in a row are one.
class UnigramModel final : public TokenModel {
 public:
  using Scores = std::vector<std::pair<std::string, double>>;
  /// `unknown_id` is -1 where there is none: then a text with an unknown character is an error.
  UnigramModel(Scores scores, std::int32_t unknown_id, bool has_byte_tokens);

  void append_ids(std::string_view piece, std::vector<std::int32_t>& ids) const override;
  std::int32_t unknown_id() const override { return unknown_id_; }

 private:
  void append_best(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void append_token(std::string_view text, std::vector<std::int32_t>& ids) const;

  std::vector<double> scores_;  // by id
  std::int32_t unknown_id_;
  double unknown_score_ = 0;
  bool has_byte_tokens_;
  std::array<std::int32_t, 256> byte_ids_{};
  ByteTrie trie_;
  TokenTable ids_;
  TokenTable whole_;  // pieces whose best cut is no cut
};

}  // namespace lathe::data
