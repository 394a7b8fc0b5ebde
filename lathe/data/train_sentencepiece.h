#pragma once

#include "lathe/data/train_tokenizer.h"

namespace lathe::data {

/// Learns a SentencePiece-like BPE: texts as they are, spaces written as U+2581, `<unk>`, `<s>`,
/// `</s>` and a token for every byte, of which characters are made that have none (Llama 2).
std::vector<TokenizerFile> train_bpe(std::span<const std::string_view> texts,
                                     const TokenizerTraining& training, ThreadPool& pool,
                                     const ShouldStop& should_stop);

/// Learns a SentencePiece-like unigram model: texts in the form NFKC, spaces written as U+2581,
/// `<unk>`, `<s>`, `</s>`, `<pad>` and `<mask>`.
std::vector<TokenizerFile> train_unigram(std::span<const std::string_view> texts,
                                         const TokenizerTraining& training, ThreadPool& pool,
                                         const ShouldStop& should_stop);

}  // namespace lathe::data
