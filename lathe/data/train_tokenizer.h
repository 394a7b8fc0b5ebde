#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/interrupt.h"
#include "lathe/core/thread_pool.h"
#include "lathe/data/tokenizer.h"

namespace lathe::data {

/// A vocabulary to be learned from texts.
struct TokenizerTraining {
  std::string kind = "wordpiece";  ///< or byte-level-bpe, bpe, unigram
  std::int64_t size = 8000;        ///< tokens, special ones included; fewer where the texts are few
  std::int64_t least_count = 2;    ///< how often a pair must occur to become a token
  bool lowercase = true;           ///< lower case without accents, for wordpiece
};

/// Learns a tokenizer from texts: WordPiece with BERT's normalizer and special tokens, its pieces
/// found by byte-pair merges as Hugging Face finds them; GPT-2's byte-level BPE with
/// `<|endoftext|>`; or SentencePiece's BPE or unigram model (train_sentencepiece.h). The same texts
/// give the same tokenizer whatever their order and the number of threads. Its files are
/// tokenizer.json, for the first two the vocabulary in its older form, and tokenizer_config.json,
/// all of which Hugging Face reads.
std::vector<TokenizerFile> train_tokenizer(std::span<const std::string_view> texts,
                                           const TokenizerTraining& training, ThreadPool& pool,
                                           const ShouldStop& should_stop = {});

}  // namespace lathe::data
