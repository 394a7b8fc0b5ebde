#include "lathe/io/sha256.h"

#include <gtest/gtest.h>

#include <string_view>

#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::io {
namespace {

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Of nothing, of FIPS 180-2's first example and of its last, a million letters a.
constexpr std::string_view kEmpty =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr std::string_view kAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr std::string_view kMillion =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Sha256, MatchesPublishedDigests) {
  EXPECT_EQ(sha256({}), kEmpty);
  EXPECT_EQ(sha256(bytes("abc")), kAbc);
  EXPECT_EQ(sha256(bytes(std::string(1'000'000, 'a'))), kMillion);
}

TEST(Sha256, OfPiecesIsThatOfTheWhole) {
  Sha256 digest;
  digest.update(bytes("a"));
  digest.update(bytes("bc"));
  EXPECT_EQ(digest.hex(), kAbc);
}

TEST(Sha256, OfAFileIsThatOfItsBytes) {
  const ScratchDirectory scratch;
  EXPECT_EQ(sha256_of_file(scratch.write("empty", "")), kEmpty);
  EXPECT_EQ(sha256_of_file(scratch.write("abc", "abc")), kAbc);
  // More than one block of reading.
  const std::string large(3'000'001, 'x');
  EXPECT_EQ(sha256_of_file(scratch.write("large", large)), sha256(bytes(large)));
}

TEST(Sha256, OfAMissingFileIsAUserError) {
  EXPECT_EQ(refusal("/nowhere/file", [] { sha256_of_file("/nowhere/file"); }),
            "cannot open: no such file or directory");
}

}  // namespace
}  // namespace lathe::io
