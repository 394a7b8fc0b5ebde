#pragma once

#include <exception>
#include <functional>

namespace lathe {

/// Work that stopped because somebody asked it to. Not an error: the program exits 130 or 143.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// Asked now and then by long work, from any of its threads, which throws `Interrupted` when it
/// says true. Empty: never.
using ShouldStop = std::function<bool()>;

}  // namespace lathe
