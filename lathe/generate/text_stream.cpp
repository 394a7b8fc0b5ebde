#include "lathe/generate/text_stream.h"

namespace lathe::generate {
namespace {

// So many tokens of a prompt are looked back at: as many as a character may have bytes.
constexpr std::size_t kLookBack = 4;

}  // namespace

TextStream::TextStream(std::shared_ptr<const data::Tokenizer> tokenizer,
                       std::span<const std::int32_t> prompt)
    : tokenizer_(std::move(tokenizer)) {
  const std::span<const std::int32_t> last =
      prompt.last(std::min<std::size_t>(prompt.size(), kLookBack));
  ids_.assign(last.begin(), last.end());
  num_given_ = ids_.size();
  given_ = tokenizer_->decode(ids_);
}

std::string TextStream::add(std::int32_t id) {
  ids_.push_back(id);
  const std::string text = tokenizer_->decode(ids_);
  // A character that is not whole is U+FFFD at the end.
  if (text.size() <= given_.size() || text.ends_with("\uFFFD")) return {};
  return take(text);
}

std::string TextStream::finish() {
  const std::string text = tokenizer_->decode(ids_);
  return text.size() > given_.size() ? take(text) : std::string();
}

// What the text has more than was given; the tokens before are forgotten.
std::string TextStream::take(const std::string& text) {
  std::string more = text.substr(given_.size());
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(num_given_));
  num_given_ = ids_.size();
  given_ = tokenizer_->decode(ids_);
  return more;
}

}  // namespace lathe::generate
