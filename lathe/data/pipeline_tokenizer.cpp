#include "lathe/data/pipeline_tokenizer.h"

#include "lathe/data/decoders/decoder.h"
#include "lathe/data/token_table.h"
#include "lathe/data/utf8.h"

namespace lathe::data {

PipelineTokenizer::PipelineTokenizer(Parts parts) : parts_(std::move(parts)) {
  vocabulary_ = std::move(parts_.vocabulary);
  decoder_ = std::move(parts_.decoder);
  std::vector<AddedToken> raw, normalized;
  std::vector<std::string> raw_texts, normalized_texts;
  for (const AddedToken& token : parts_.added_tokens) {
    if (!token.normalized) {
      raw.push_back(token);
      raw_texts.push_back(token.content);
      continue;
    }
    NormalizedText text{.text = token.content};
    if (parts_.normalizer) parts_.normalizer->normalize(text);
    normalized.push_back(token);
    normalized_texts.push_back(std::move(text.text));
  }
  raw_tokens_ = AddedTokens(std::move(raw), std::move(raw_texts));
  normalized_tokens_ = AddedTokens(std::move(normalized), std::move(normalized_texts));
}

void PipelineTokenizer::append_ids(std::string_view text, std::vector<std::int32_t>& ids,
                                   std::size_t enough) const {
  std::string sound;
  if (!is_utf8(text)) {
    sound = as_utf8(text);
    text = sound;
  }
  for (const AddedTokens::Part& part : raw_tokens_.cut(text)) {
    if (ids.size() >= enough) return;
    if (part.id >= 0) {
      ids.push_back(part.id);
    } else {
      append_fragment(text.substr(part.begin, part.end - part.begin), part.begin == 0, ids, enough);
    }
  }
}

void PipelineTokenizer::append_fragment(std::string_view text, bool is_at_start,
                                        std::vector<std::int32_t>& ids, std::size_t enough) const {
  NormalizedText normalized{.text = std::string(text), .is_at_start = is_at_start};
  if (parts_.normalizer) parts_.normalizer->normalize(normalized);
  if (normalized_tokens_.empty()) return append_pieces(std::move(normalized), ids, enough);
  const std::string_view all = normalized.text;
  for (const AddedTokens::Part& part : normalized_tokens_.cut(all)) {
    if (ids.size() >= enough) return;
    if (part.id >= 0) {
      ids.push_back(part.id);
    } else {
      append_pieces({.text = std::string(all.substr(part.begin, part.end - part.begin)),
                     .is_at_start = normalized.is_at_start && part.begin == 0},
                    ids, enough);
    }
  }
}

void PipelineTokenizer::append_pieces(NormalizedText text, std::vector<std::int32_t>& ids,
                                      std::size_t enough) const {
  CutText cut(std::move(text));
  for (const auto& step : parts_.pre_tokenizers) step->cut(cut);
  cut.text.append(TokenTable::kPadding, '\0');
  for (const CutText::Piece& piece : cut.pieces) {
    if (ids.size() >= enough) return;
    parts_.model->append_ids(cut.view(piece), ids);
  }
}

}  // namespace lathe::data
