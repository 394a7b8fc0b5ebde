#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lathe/data/tokenizer.h"

namespace lathe::generate {

/// Turns tokens back into text as they come. A character whose bytes are spread over tokens comes
/// with the last of them.
class TextStream {
 public:
  /// `prompt` is what the tokens go on with: whether a word begins with a space depends on it.
  explicit TextStream(std::shared_ptr<const data::Tokenizer> tokenizer,
                      std::span<const std::int32_t> prompt = {});
  /// The text that one more token completes; nothing for a token that only marks something, or is
  /// one of the rows that a model's table is padded with.
  std::string add(std::int32_t id);
  /// What is left of a character that never got whole: U+FFFD.
  std::string finish();

 private:
  std::string new_text() const;
  void forget_given();

  std::shared_ptr<const data::Tokenizer> tokenizer_;
  // The last tokens whose text has come, then those whose text has not. What a token becomes may
  // depend on its neighbour, never on what lies further back.
  std::vector<std::int32_t> ids_;
  std::size_t num_given_ = 0;
  std::string given_;  // the text of the first of them
};

}  // namespace lathe::generate
