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

TEST(CopyTokenizer, RefusesALinkOutOfTheDirectory) {
  const ScratchDirectory scratch;
  scratch.write("secret", "password");
  const std::string model = write_tiny_bert(scratch, "m");
  fs::create_symlink(scratch / "secret", scratch / "m/special_tokens_map.json");
  const std::string link = model + "/special_tokens_map.json";
  EXPECT_EQ(refusal(link, [&] { write_huggingface(scratch / "copy", load_model(model)); }),
            "is a link, which is not copied along with a model");
  EXPECT_EQ(refusal(link, [&] { write_checkpoint(scratch / "copy", load_model(model)); }),
            "is a link, which is not copied along with a model");
  EXPECT_FALSE(fs::exists(scratch / "copy"));
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
