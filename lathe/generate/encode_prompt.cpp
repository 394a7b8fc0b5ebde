#include "lathe/generate/encode_prompt.h"

namespace lathe::generate {

std::vector<std::int32_t> encode_prompt(const data::Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> ids = tokenizer.encode(text);
  // Around no text stands what stands around every text.
  std::vector<std::int32_t> around = tokenizer.encode("");
  while (!around.empty() && ids.size() > 1 && around.back() == ids.back()) {
    around.pop_back();
    ids.pop_back();
  }
  return ids;
}

}  // namespace lathe::generate
