#pragma once

#include <fmt/format.h>

#include <exception>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe {

/// Something the user can fix: a file, a flag, a model, a shape. Exits 1 with one clear line.
///
/// The message names the place, the value and what was expected, in lower case, without a full
/// stop. Code that knows the place puts it in front with `at` as the error passes by.
class UserError : public std::exception {
 public:
  explicit UserError(std::string message, std::string hint = {})
      : message_(std::move(message)), hint_(std::move(hint)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& message() const { return message_; }
  /// What to do about it; empty when we have no advice.
  const std::string& hint() const { return hint_; }
  /// The same error with `place` and a colon in front.
  UserError at(std::string_view place) const;

 private:
  std::string message_;
  std::string hint_;
};

/// Something we got wrong. Exits 70 and asks for a report.
class InternalError : public std::exception {
 public:
  InternalError(std::string_view what, std::source_location where);
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

/// Holds in every build; a failure is our bug, never the user's.
inline void check(bool condition, std::string_view what_should_hold,
                  std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]]
    throw InternalError(what_should_hold, where);
}

/// Throws a UserError whose message is formatted like fmt::format.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

/// Runs `body` and puts `place` in front of any UserError that passes.
template <typename Body>
decltype(auto) with_place(std::string_view place, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const UserError& error) {
    throw error.at(place);
  }
}

/// The candidate closest to `name` by edit distance, or empty when none is close enough to suggest.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// A UserError "unknown KIND "NAME"; known: a, b, c" with the nearest name as its hint.
UserError unknown_name(std::string_view kind, std::string_view name,
                       const std::vector<std::string>& known);

}  // namespace lathe
