#include "lathe/io/copy_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/io/model.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/tiny_bert.h"

namespace lathe::io {
namespace {

namespace fs = std::filesystem;

TEST(CopyTokenizer, CopiesTheFilesThatAreThere) {
  const ScratchDirectory scratch;
  fs::create_directory(scratch / "from");
  fs::create_directory(scratch / "to");
  scratch.write("from/vocab.txt", "a\n");
  scratch.write("from/other.txt", "b\n");
  copy_tokenizer(scratch / "from", scratch / "to");
  EXPECT_EQ(scratch.read("to/vocab.txt"), "a\n");
  EXPECT_FALSE(fs::exists(scratch / "to/other.txt"));
}

TEST(CopyTokenizer, CompressesAndDecompressesOnTheWay) {
  const ScratchDirectory scratch;
  for (const char* name : {"from", "compressed", "plain"}) fs::create_directory(scratch / name);
  std::string vocabulary;
  for (int i = 0; i < 1000; ++i) vocabulary += fmt::format("word{}\n", i);
  scratch.write("from/vocab.txt", vocabulary);
  copy_tokenizer(scratch / "from", scratch / "compressed", true);
  EXPECT_FALSE(fs::exists(scratch / "compressed/vocab.txt"));
  EXPECT_LT(fs::file_size(scratch / "compressed/vocab.txt.zst"), vocabulary.size() / 2);
  copy_tokenizer(scratch / "compressed", scratch / "plain");
  EXPECT_EQ(scratch.read("plain/vocab.txt"), vocabulary);

  scratch.write("compressed/vocab.txt.zst", "no archive");
  EXPECT_EQ(refusal((scratch / "compressed/vocab.txt.zst").string(),
                    [&] { copy_tokenizer(scratch / "compressed", scratch / "plain"); }),
            "is not a sound zstd file: Unknown frame descriptor");
}

void expect_refused(const ScratchDirectory& scratch, const std::string& model, const char* name) {
  const std::string link = model + "/" + name;
  EXPECT_EQ(refusal(link, [&] { write_huggingface(scratch / "copy", load_model(model)); }),
            "is a link, which is not copied along with a model");
  EXPECT_EQ(refusal(link, [&] { write_checkpoint(scratch / "copy", load_model(model)); }),
            "is a link, which is not copied along with a model");
  EXPECT_FALSE(fs::exists(scratch / "copy"));
}

TEST(CopyTokenizer, RefusesALinkOutOfTheDirectory) {
  const ScratchDirectory scratch;
  scratch.write("secret", "password");
  const std::string model = write_tiny_bert(scratch, "m");
  for (const char* name : {"special_tokens_map.json", "special_tokens_map.json.zst"}) {
    fs::create_symlink(scratch / "secret", scratch / ("m/" + std::string(name)));
    expect_refused(scratch, model, name);
    fs::remove(scratch / ("m/" + std::string(name)));
  }
}

TEST(CopyTokenizer, RefusesWhatIsNoRegularFile) {
  const ScratchDirectory scratch;
  fs::create_directories(scratch / "from/vocab.txt");
  fs::create_directory(scratch / "to");
  const std::string path = (scratch / "from/vocab.txt").string();
  EXPECT_EQ(refusal(path, [&] { copy_tokenizer(scratch / "from", scratch / "to"); }),
            "is a directory, not a regular file");
}

}  // namespace
}  // namespace lathe::io
