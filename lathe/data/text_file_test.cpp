#include "lathe/data/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "lathe/core/testing/error_text.h"
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

std::string gzipped(std::string_view text) {
  std::string bytes(text.size() + 100, '\0');
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
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

TEST(TextFile, IsCompressedAndDecompressed) {
  std::string large;
  for (int i = 0; i < 20'000; ++i) large += std::to_string(i);
  for (const std::string& text : {std::string(), std::string("[PAD]\n[UNK]\n"), large})
    EXPECT_EQ(decompressed_text(compressed_text(text)), text);
  EXPECT_LT(compressed_text(large).size(), large.size() / 2);
  EXPECT_EQ(error_text([&] { decompressed_text(compressed_text(large), 1000); }),
            "holds more than 1000 bytes of text, the most that is read");
  EXPECT_EQ(error_text([&] { decompressed_text(compressed_text(large).substr(0, 100)); }),
            "is not a sound zstd file: it ends in the middle");
}

TEST(TextFile, ReadsGzip) {
  const TemporaryDirectory directory;
  std::string large;
  for (int i = 0; i < 200'000; ++i) large += std::to_string(i);
  EXPECT_EQ(read_text_file(directory.write("large.gz", gzipped(large))), large);
  EXPECT_EQ(read_text_file(directory.write("two.gz", gzipped("one ") + gzipped("two"))), "one two");
  EXPECT_EQ(read_text_file(directory.write("zeros.gz", gzipped(std::string(1 << 20, '0')))),
            std::string(1 << 20, '0'));
}

TEST(TextFile, RefusesBrokenGzip) {
  const TemporaryDirectory directory;
  const std::string sound = gzipped(std::string(1000, 'x') + "the end");
  for (std::size_t length = 0; length < sound.size(); ++length) {
    const auto cut = directory.write("cut.gz", sound.substr(0, length));
    EXPECT_THAT(error_of([&] { read_text_file(cut); }),
                EndsWith("cut.gz: is not a sound gzip file: it ends in the middle"))
        << length;
  }
  std::string damaged = sound;
  damaged[damaged.size() - 6] ^= 1;
  const auto bad = directory.write("bad.gz", damaged);
  EXPECT_THAT(error_of([&] { read_text_file(bad); }), HasSubstr("bad.gz: is not a sound gzip"));
  const auto bomb = directory.write("bomb.gz", gzipped(std::string(1 << 20, '0')));
  EXPECT_THAT(error_of([&] { read_text_file(bomb, 1000); }),
              EndsWith("bomb.gz: holds more than 1000 bytes of text, the most that is read"));
}

TEST(TextFile, IsFoundCompressedToo) {
  const TemporaryDirectory directory;
  EXPECT_EQ(find_file(directory.path(), "a.csv"), std::nullopt);
  const auto packed = directory.write("a.csv.gz", gzipped("x"));
  EXPECT_EQ(find_file(directory.path(), "a.csv"), packed);
  const auto plain = directory.write("a.csv", "x");
  EXPECT_EQ(find_file(directory.path(), "a.csv"), plain);
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
