#pragma once

#include <array>
#include <memory>

#include "lathe/data/added_tokens.h"
#include "lathe/data/normalizers/normalizer.h"
#include "lathe/data/pre_tokenizers/pre_tokenizer.h"
#include "lathe/data/token_models/token_model.h"
#include "lathe/data/tokenizer.h"

namespace lathe::data {

/// A tokenizer made of the steps that a tokenizer.json describes, equal to the Hugging Face
/// tokenizers library.
///
/// Added tokens that are not normalized are matched in the raw text. What is left between them is
/// normalized, the other added tokens are matched in it, and what is left then is cut into pieces,
/// each of which the model turns into ids.
class PipelineTokenizer final : public Tokenizer {
 public:
  struct Parts {
    Vocabulary vocabulary;
    std::vector<AddedToken> added_tokens;
    std::unique_ptr<const Normalizer> normalizer;                     ///< may be nullptr
    std::vector<std::unique_ptr<const PreTokenizer>> pre_tokenizers;  ///< one after the other
    std::unique_ptr<const TokenModel> model;
    std::unique_ptr<const Decoder> decoder;  ///< may be nullptr
  };

  explicit PipelineTokenizer(Parts parts);

  std::int32_t unknown_id() const override { return parts_.model->unknown_id(); }

 private:
  void append_ids(std::string_view text, std::vector<std::int32_t>& ids,
                  std::size_t enough) const override;
  void append_fragment(std::string_view text, bool is_at_start, std::vector<std::int32_t>& ids,
                       std::size_t enough) const;
  void append_pieces(NormalizedText text, std::vector<std::int32_t>& ids, std::size_t enough) const;

  Parts parts_;  // without the vocabulary and the decoder, which have moved
  AddedTokens raw_tokens_, normalized_tokens_;
};

/// Makes the tokenizer of a tokenizer.json, or of vocab.json and merges.txt, and of what
/// tokenizer_config.json says.
std::shared_ptr<const Tokenizer> load_pipeline(const TokenizerSource& source);

}  // namespace lathe::data
