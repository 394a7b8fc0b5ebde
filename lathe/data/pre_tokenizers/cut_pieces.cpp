#include "lathe/data/pre_tokenizers/cut_pieces.h"

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe::data {
namespace {

using Pieces = std::vector<CutText::Piece>;

CutText::Piece piece_of(const PiecePart& part) {
  return {part.begin, part.end - part.begin};
}

void merge_with_previous(const std::vector<PiecePart>& parts, Pieces& pieces) {
  const std::size_t first = pieces.size();
  bool was_delimiter = false;
  for (const PiecePart& part : parts) {
    if (part.is_delimiter && !was_delimiter && pieces.size() > first) {
      pieces.back().length = part.end - pieces.back().begin;
    } else {
      pieces.push_back(piece_of(part));
    }
    was_delimiter = part.is_delimiter;
  }
}

void merge_with_next(const std::vector<PiecePart>& parts, Pieces& pieces) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool joins = parts[i].is_delimiter && i + 1 < parts.size() && !parts[i + 1].is_delimiter;
    pieces.push_back({parts[i].begin, parts[joins ? i + 1 : i].end - parts[i].begin});
    if (joins) ++i;
  }
}

void join_delimiters(const std::vector<PiecePart>& parts, Pieces& pieces) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && parts[i].is_delimiter == parts[i - 1].is_delimiter) {
      pieces.back().length += parts[i].end - parts[i].begin;
    } else {
      pieces.push_back(piece_of(parts[i]));
    }
  }
}

}  // namespace

Delimiters parse_delimiters(std::string_view name) {
  if (name == "Removed") return Delimiters::Removed;
  if (name == "Isolated") return Delimiters::Isolated;
  if (name == "MergedWithPrevious") return Delimiters::MergedWithPrevious;
  if (name == "MergedWithNext") return Delimiters::MergedWithNext;
  if (name == "Contiguous") return Delimiters::Contiguous;
  throw unknown_name("behavior", name,
                     {"Contiguous", "Isolated", "MergedWithNext", "MergedWithPrevious", "Removed"});
}

void append_pieces(const std::vector<PiecePart>& parts, Delimiters delimiters, Pieces& pieces) {
  switch (delimiters) {
    case Delimiters::Removed:
      for (const PiecePart& part : parts)
        if (!part.is_delimiter) pieces.push_back(piece_of(part));
      break;
    case Delimiters::Isolated:
      for (const PiecePart& part : parts) pieces.push_back(piece_of(part));
      break;
    case Delimiters::MergedWithPrevious:
      merge_with_previous(parts, pieces);
      break;
    case Delimiters::MergedWithNext:
      merge_with_next(parts, pieces);
      break;
    case Delimiters::Contiguous:
      join_delimiters(parts, pieces);
  }
}

}  // namespace lathe::data
