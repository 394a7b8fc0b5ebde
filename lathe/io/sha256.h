#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace lathe::io {

/// A SHA-256 digest that takes its input piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  /// The digest of everything so far as 64 lower-case hex digits; call it once, at the end.
  std::string hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// The digest of `bytes` as 64 lower-case hex digits.
std::string sha256(std::span<const std::byte> bytes);
/// The digest of a regular file, read in pieces so that its size does not matter.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace lathe::io
