#include "lathe/generate/encode_prompt.h"

#include <algorithm>

namespace lathe::generate {

std::vector<std::int32_t> encode_prompt(const data::Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> ids = tokenizer.encode(text);
  // A prompt of nothing but such tokens keeps the first, for there must be one to go on from.
  const auto behind = static_cast<std::size_t>(tokenizer.num_special_behind());
  if (!ids.empty()) ids.resize(std::max<std::size_t>(ids.size() - behind, 1));
  return ids;
}

}  // namespace lathe::generate
