#include "lathe/data/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include "lathe/data/testing/temporary_directory.h"

namespace lathe::data {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

std::string compressed(std::string_view text) {
  std::string bytes(ZSTD_compressBound(text.size()), '\0');
  bytes.resize(ZSTD_compress(bytes.data(), bytes.size(), text.data(), text.size(), 1));
  return bytes;
}

TEST(TextFile, ReadsPlainAndCompressedFiles) {
  const TemporaryDirectory directory;
  EXPECT_EQ(read_text_file(directory.write("plain.tsv", "1\tgood\n")), "1\tgood\n");
  EXPECT_EQ(read_text_file(directory.write("small.tsv.zst", compressed("1\tgood\n"))), "1\tgood\n");
  std::string large;
  for (int i = 0; i < 200'000; ++i) large += std::to_string(i);
  EXPECT_EQ(read_text_file(directory.write("large.zst", compressed(large))), large);
  EXPECT_EQ(read_text_file(directory.write("two.zst", compressed("one ") + compressed("two"))),
            "one two");
}

TEST(TextFile, RefusesABrokenArchive) {
  const TemporaryDirectory directory;
  const std::string sound = compressed(std::string(1000, 'x') + "the end");
  const auto cut = directory.write("cut.zst", sound.substr(0, sound.size() / 2));
  EXPECT_THAT(error_of([&] { read_text_file(cut); }),
              EndsWith("cut.zst: is not a sound zstd file: it ends in the middle"));
  const auto text = directory.write("text.zst", "0\tnot compressed at all\n");
  EXPECT_THAT(error_of([&] { read_text_file(text); }), HasSubstr("text.zst: is not a sound zstd"));
}

TEST(TextFile, StopsAtTheSizeLimit) {
  const TemporaryDirectory directory;
  const auto bomb = directory.write("bomb.zst", compressed(std::string(1 << 20, 'x')));
  EXPECT_THAT(error_of([&] { read_text_file(bomb, 1000); }),
              EndsWith("bomb.zst: holds more than 1000 bytes of text, the most that is read"));
}

TEST(TextFile, SaysWhyAFileCannotBeOpened) {
  const TemporaryDirectory directory;
  EXPECT_THAT(error_of([&] { read_text_file(directory.path() / "none.tsv"); }),
              EndsWith("none.tsv: cannot be opened: No such file or directory"));
  EXPECT_THAT(error_of([&] { read_text_file(directory.path()); }),
              EndsWith("is a directory, expected a file"));
}

}  // namespace
}  // namespace lathe::data
