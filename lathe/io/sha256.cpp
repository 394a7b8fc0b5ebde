#include "lathe/io/sha256.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/io/file_descriptor.h"

namespace lathe::io {

struct Sha256::Context {
  Context() : digest(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    check(digest && EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) == 1,
          "OpenSSL to start a SHA-256 digest");
  }
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  check(EVP_DigestUpdate(context_->digest.get(), bytes.data(), bytes.size()) == 1,
        "OpenSSL to take more bytes");
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  check(EVP_DigestFinal_ex(context_->digest.get(), digest.data(), nullptr) == 1,
        "OpenSSL to finish a SHA-256 digest");
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

std::string sha256(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.hex();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  const FileDescriptor file = open_regular_file(path);
  std::vector<std::byte> block(std::size_t{1} << 20);
  Sha256 digest;
  while (true) {
    const ssize_t count = ::read(file.number(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with_errno(path, "read", errno);
    if (count == 0) return digest.hex();
    digest.update(std::span(block).first(static_cast<std::size_t>(count)));
  }
}

}  // namespace lathe::io
