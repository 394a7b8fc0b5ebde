#include "lathe/generate/text_stream.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/data/byte_alphabet.h"
#include "lathe/data/byte_level_bpe.h"

namespace lathe::generate {
namespace {

// The bytes at the end that begin a character and do not finish it.
std::size_t unfinished(std::string_view text) {
  for (std::size_t count = 1; count <= std::min<std::size_t>(3, text.size()); ++count) {
    const auto byte = static_cast<unsigned char>(text[text.size() - count]);
    if ((byte & 0xC0) == 0x80) continue;  // goes on with one that began before
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > count ? count : 0;
  }
  return 0;
}

}  // namespace

TextStream::TextStream(std::shared_ptr<const data::Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)) {
  if (dynamic_cast<const data::ByteLevelBpe*>(tokenizer_.get()) == nullptr)
    fail(
        "the tokenizer's ids cannot be turned back into text: expected byte-level BPE; "
        "prompt-ids needs no tokenizer");
}

std::string TextStream::add(std::int32_t id) {
  if (std::ranges::count(tokenizer_->special_ids(), id) > 0) return {};
  const std::string& token = tokenizer_->token(id);
  waiting_ += data::read_byte_alphabet(token).value_or(token);
  const std::size_t kept = unfinished(waiting_);
  std::string whole = waiting_.substr(0, waiting_.size() - kept);
  waiting_.erase(0, whole.size());
  return whole;
}

std::string TextStream::finish() {
  return std::exchange(waiting_, {});
}

}  // namespace lathe::generate
