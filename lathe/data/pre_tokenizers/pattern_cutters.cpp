// Pre-tokenizers that cut by a pattern, or that also write spaces and bytes otherwise.
#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/data/byte_alphabet.h"
#include "lathe/data/gpt2_split.h"
#include "lathe/data/metaspace.h"
#include "lathe/data/pre_tokenizers/byte_level.h"
#include "lathe/data/pre_tokenizers/cut_pieces.h"
#include "lathe/data/text_pattern.h"
#include "lathe/data/tokenizer_json.h"

namespace lathe::data {
namespace pattern_cutters {
namespace {

using Json = nlohmann::json;

class Split final : public PreTokenizer {
 public:
  explicit Split(const Json& description) : pattern_(read_pattern(description, "pattern")) {
    std::string behavior;
    read_member(description, "behavior", behavior);
    delimiters_ = parse_delimiters(plain_name(behavior));
    read_member(description, "invert", is_inverted_);
  }
  void cut(CutText& text) const override {
    cut_pieces(text, delimiters_, is_inverted_, [this](std::string_view piece, const auto& take) {
      pattern_->find(piece, [&](TextPattern::Match match) { take(match.begin, match.end); });
    });
  }

 private:
  std::unique_ptr<const TextPattern> pattern_;
  Delimiters delimiters_ = Delimiters::Isolated;
  bool is_inverted_ = false;
};

class MetaspaceCutter final : public PreTokenizer {
 public:
  explicit MetaspaceCutter(const Json& description) : metaspace_(read_metaspace(description)) {}
  void cut(CutText& text) const override {
    std::string written;
    written.reserve(text.text.size() * 3 / 2 + 8);
    std::vector<CutText::Piece> pieces;
    pieces.reserve(text.pieces.size() + text.text.size() / 4);
    for (const CutText::Piece& piece : text.pieces) {
      const std::size_t begin = written.size();
      write(text.view(piece), text.is_at_start && piece.begin == 0, written);
      pieces.push_back({begin, written.size() - begin});
    }
    text.text = std::move(written);
    text.pieces = std::move(pieces);
    if (!metaspace_.is_split) return;
    cut_pieces(
        text, Delimiters::MergedWithNext, false, [this](std::string_view piece, const auto& take) {
          const std::string& mark = metaspace_.replacement;
          for (std::size_t at = 0; (at = piece.find(mark, at)) != piece.npos; at += mark.size())
            take(at, at + mark.size());
        });
  }

 private:
  void write(std::string_view piece, bool is_at_start, std::string& written) const {
    const bool may_prepend = metaspace_.prepend == Metaspace::Prepend::Always ||
                             (metaspace_.prepend == Metaspace::Prepend::First && is_at_start);
    if (may_prepend && !piece.starts_with(' ') && !piece.starts_with(metaspace_.replacement))
      written += metaspace_.replacement;
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t space = std::min(piece.find(' ', at), piece.size());
      written += piece.substr(at, space - at);
      if (space < piece.size()) written += metaspace_.replacement;
      at = space + 1;
    }
  }

  Metaspace metaspace_;
};

template <typename Kind>
std::unique_ptr<const PreTokenizer> make(const Json& description) {
  return std::make_unique<Kind>(description);
}

const Register split{PreTokenizerKind{.name = "Split", .make = make<Split>}};
const Register metaspace{PreTokenizerKind{.name = "Metaspace", .make = make<MetaspaceCutter>}};
const Register byte_level{PreTokenizerKind{
    .name = "ByteLevel",
    .make = [](const Json& description) { return make_byte_level(description, true); },
}};

// What GPT-2 does: a space in front, its pattern, and every byte written as a character.
class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(const Json& description, bool writes_bytes) : writes_bytes_(writes_bytes) {
    read_member(description, "add_prefix_space", adds_space_);
    read_member(description, "use_regex", uses_pattern_);
  }
  void cut(CutText& text) const override {
    if (adds_space_) add_spaces(text);
    if (uses_pattern_)
      cut_pieces(text, Delimiters::Isolated, false, [](std::string_view piece, const auto& take) {
        for (std::size_t at = 0; at < piece.size();) {
          const std::size_t length = gpt2_piece_length(piece.substr(at));
          take(at, at + length);
          at += length;
        }
      });
    if (writes_bytes_) write_bytes(text);
  }

 private:
  static void add_spaces(CutText& text) {
    std::string written;
    written.reserve(text.text.size() + text.pieces.size() + 8);
    for (CutText::Piece& piece : text.pieces) {
      const std::string_view old = text.view(piece);
      const std::size_t begin = written.size();
      if (!old.starts_with(' ')) written += ' ';
      written += old;
      piece = {begin, written.size() - begin};
    }
    text.text = std::move(written);
  }
  static void write_bytes(CutText& text) {
    std::string written;
    for (CutText::Piece& piece : text.pieces) {
      const std::string bytes = write_in_byte_alphabet(text.view(piece));
      piece = {written.size(), bytes.size()};
      written += bytes;
    }
    text.text = std::move(written);
  }

  // The library's defaults, should a file leave them out.
  bool adds_space_ = true, uses_pattern_ = true;
  bool writes_bytes_;
};

}  // namespace
}  // namespace pattern_cutters

std::unique_ptr<const PreTokenizer> make_byte_level(const nlohmann::json& description,
                                                    bool writes_bytes) {
  return std::make_unique<pattern_cutters::ByteLevel>(description, writes_bytes);
}

}  // namespace lathe::data
