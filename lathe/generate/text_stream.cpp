#include "lathe/generate/text_stream.h"

namespace lathe::generate {
namespace {

constexpr std::string_view kNoCharacter = "\uFFFD";

// So many tokens of a prompt are looked back at: as many as a character may have bytes. Where that
// is in the middle of a character, there are up to three more.
constexpr std::size_t kLookBack = 4, kMostLookBack = kLookBack + 3;

}  // namespace

TextStream::TextStream(std::shared_ptr<const data::Tokenizer> tokenizer,
                       std::span<const std::int32_t> prompt)
    : tokenizer_(std::move(tokenizer)) {
  for (std::size_t count = kLookBack; count <= kMostLookBack; ++count) {
    const auto last = prompt.last(std::min(prompt.size(), count));
    ids_.assign(last.begin(), last.end());
    given_ = tokenizer_->decode(ids_);
    if (!given_.starts_with(kNoCharacter)) break;
  }
  num_given_ = ids_.size();
}

std::string TextStream::add(std::int32_t id) {
  if (id >= tokenizer_->vocabulary_size()) return {};
  ids_.push_back(id);
  const std::string text = new_text();
  // A character that is not whole is U+FFFD at the end.
  if (text.empty() || text.ends_with(kNoCharacter)) return {};
  forget_given();
  return text;
}

std::string TextStream::finish() {
  std::string text = new_text();
  if (!text.empty()) forget_given();
  return text;
}

// What the text has more than was given. Bytes that follow each other are characters together or
// none of them is, so one that is wrong changes what was given before it; that stays as it was, and
// the new tokens are read alone.
std::string TextStream::new_text() const {
  const std::string text = tokenizer_->decode(ids_);
  if (text.starts_with(given_)) return text.substr(given_.size());
  return tokenizer_->decode(std::span(ids_).subspan(num_given_));
}

void TextStream::forget_given() {
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(num_given_));
  num_given_ = ids_.size();
  given_ = tokenizer_->decode(ids_);
}

}  // namespace lathe::generate
