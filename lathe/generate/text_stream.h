#pragma once

#include <memory>
#include <string>

#include "lathe/data/tokenizer.h"

namespace lathe::generate {

/// Turns tokens back into text as they come. A character whose bytes are spread over tokens comes
/// with the last of them.
class TextStream {
 public:
  /// Fails for a tokenizer whose tokens cannot be turned back: byte-level BPE's can.
  explicit TextStream(std::shared_ptr<const data::Tokenizer> tokenizer);
  /// The text that one more token completes; nothing for a token that only marks something.
  std::string add(std::int32_t id);
  /// What is left of a character that never got whole, as it is.
  std::string finish();

 private:
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  std::string waiting_;
};

}  // namespace lathe::generate
