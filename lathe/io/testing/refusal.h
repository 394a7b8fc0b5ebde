#pragma once

#include <string>
#include <string_view>

#include "lathe/core/error.h"

namespace lathe::io {

/// The message of the UserError that `body` throws, less `place` and its punctuation, or
/// "accepted". Any other exception passes and fails the test.
template <typename Body>
std::string refusal(std::string_view place, Body&& body) {
  try {
    body();
  } catch (const UserError& error) {
    const std::string& message = error.message();
    if (!message.starts_with(place)) return message;
    return message.substr(message.find_first_not_of(": /", place.size()));
  }
  return "accepted";
}

}  // namespace lathe::io
