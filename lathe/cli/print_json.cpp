#include "lathe/cli/print_json.h"

#include <fmt/core.h>

#include "lathe/core/utf8_text.h"

namespace lathe::cli {
namespace {

// Paths hold any bytes, JSON's texts only UTF-8.
void escape_texts(nlohmann::ordered_json& json) {
  if (json.is_string()) {
    auto& text = json.get_ref<std::string&>();
    if (!is_utf8(text)) text = escape_bytes(text);
  } else if (json.is_structured()) {
    for (nlohmann::ordered_json& each : json) escape_texts(each);
  }
}

}  // namespace

std::string json_line(nlohmann::ordered_json json) {
  escape_texts(json);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void print_json(nlohmann::ordered_json json) {
  fmt::print("{}\n", json_line(std::move(json)));
}

}  // namespace lathe::cli
