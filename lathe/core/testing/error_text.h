#pragma once

#include <string>

#include "lathe/core/error.h"

namespace lathe {

/// What a user would read of the error that `body` throws: the message and, on a second line, the
/// hint. For tests, which compare whole texts; "no error" and "internal error" say what else came.
template <typename Body>
std::string error_text(Body&& body) {
  try {
    body();
  } catch (const UserError& error) {
    return error.hint().empty() ? error.message() : error.message() + "\nhint: " + error.hint();
  } catch (const InternalError&) {
    return "internal error";
  }
  return "no error";
}

}  // namespace lathe
