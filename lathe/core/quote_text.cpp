#include "lathe/core/quote_text.h"

#include <nlohmann/json.hpp>

namespace lathe {

std::string quote_text(std::string_view text) {
  constexpr std::size_t kShown = 120;
  std::string shown(text.substr(0, kShown));
  if (text.size() > kShown) shown += "...";
  // Cutting may split a character and the bytes may not be UTF-8: both become U+FFFD.
  using nlohmann::json;
  return json(shown).dump(-1, ' ', true, json::error_handler_t::replace);
}

}  // namespace lathe
