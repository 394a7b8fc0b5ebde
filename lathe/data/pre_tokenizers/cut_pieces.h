#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lathe/data/pre_tokenizers/pre_tokenizer.h"
#include "lathe/data/utf8.h"

namespace lathe::data {

/// What becomes of the delimiters that a text is cut at.
enum class Delimiters : std::uint8_t {
  Removed,             ///< gone
  Isolated,            ///< pieces of their own
  MergedWithPrevious,  ///< the end of the piece before, the first of several in a row
  MergedWithNext,      ///< the beginning of the piece behind, the last of several in a row
  Contiguous,          ///< one piece for all of them in a row
};
/// The behaviour called `Removed`, `Isolated`, ...
Delimiters parse_delimiters(std::string_view name);

/// A part of a piece: a delimiter, or what stands between two.
struct PiecePart {
  std::size_t begin, end;
  bool is_delimiter;
};

/// Appends the pieces that parts make which cover a text without gaps.
void append_pieces(const std::vector<PiecePart>& parts, Delimiters delimiters,
                   std::vector<CutText::Piece>& pieces);

/// Cuts every piece: `find(text, take)` calls take(begin, end) for each delimiter from left to
/// right.
template <typename Find>
void cut_pieces(CutText& text, Delimiters delimiters, bool is_inverted, const Find& find) {
  std::vector<CutText::Piece> pieces;
  pieces.reserve(text.pieces.size() + text.text.size() / 4);
  std::vector<PiecePart> parts;
  for (const CutText::Piece& piece : text.pieces) {
    parts.clear();
    std::size_t done = piece.begin;
    find(text.view(piece), [&](std::size_t begin, std::size_t end) {
      begin += piece.begin;
      end += piece.begin;
      if (begin != done) parts.push_back({done, begin, is_inverted});
      parts.push_back({begin, end, !is_inverted});
      done = end;
    });
    const std::size_t end = piece.begin + piece.length;
    if (done != end) parts.push_back({done, end, is_inverted});
    append_pieces(parts, delimiters, pieces);
  }
  text.pieces = std::move(pieces);
}

/// Cuts every piece at the characters for which `is_delimiter(character)`.
template <typename IsDelimiter>
void cut_at_characters(CutText& text, Delimiters delimiters, const IsDelimiter& is_delimiter) {
  cut_pieces(text, delimiters, false, [&](std::string_view piece, const auto& take) {
    const char* next = piece.data();
    const char* const end = next + piece.size();
    while (next != end) {
      const char* const begin = next;
      if (is_delimiter(next_code_point(next, end)))
        take(static_cast<std::size_t>(begin - piece.data()),
             static_cast<std::size_t>(next - piece.data()));
    }
  });
}

}  // namespace lathe::data
