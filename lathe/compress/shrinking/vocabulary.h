#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lathe/core/thread_pool.h"
#include "lathe/data/dataset.h"
#include "lathe/data/tokenizer.h"
#include "lathe/io/model.h"

/// A smaller vocabulary: rows of the table of tokens go, and with them words that texts may still
/// hold. Unlike other shrinking this changes answers, so it is done only when asked for.
namespace lathe::compress {

/// How often each token of a tokenizer occurs in data, by id.
std::vector<std::int64_t> count_tokens(const data::Tokenizer& tokenizer,
                                       const data::Dataset& dataset, ThreadPool& pool);

/// The state of the table that a model's tokens are looked up in.
std::string token_table(const Graph& graph);

/// The tokens that the mask of the table of tokens leaves something of; all where it has none.
std::vector<std::int32_t> unmasked_tokens(const io::Model& model);

/// What came of it.
struct VocabularyReport {
  std::int64_t rows_before = 0, rows_after = 0;
  std::int64_t bytes_before = 0, bytes_after = 0;  ///< of the model's states
};

/// Keeps these tokens of a model that reads tokens, and those that its tokenizer cannot do without
/// ([UNK] and the other special ones). Ids change: the model's tokenizer becomes one that knows the
/// kept tokens alone, and words that they do not make become [UNK]. The configuration says the new
/// size. A layer that predicts tokens, on the same table or on its own, loses the same rows.
///
/// Fails, leaving the model as it was, where the tokenizer cannot have fewer tokens, or where
/// something else reads the table.
VocabularyReport shrink_vocabulary(io::Model& model, const std::vector<std::int32_t>& tokens);

/// What a smaller vocabulary costs on given data.
struct UnknownTokens {
  std::int64_t tokens_before = 0, tokens_after = 0;    ///< special ones around texts not counted
  std::int64_t unknown_before = 0, unknown_after = 0;  ///< [UNK] among them
  std::int64_t texts = 0, changed_texts = 0;           ///< that are read as other tokens now

  /// Of today's tokens, those that are unknown and were not.
  double share() const;
};
UnknownTokens compare_tokenizers(const data::Tokenizer& before, const data::Tokenizer& after,
                                 const data::Dataset& dataset, ThreadPool& pool);

}  // namespace lathe::compress
