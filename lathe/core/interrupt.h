#pragma once

#include <exception>

namespace lathe {

/// Work that stopped because somebody asked it to. Not an error: the program exits 130 or 143.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

}  // namespace lathe
