#include "lathe/io/json_file.h"

#include <gtest/gtest.h>

#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::io {
namespace {

TEST(JsonFile, NamesTheFile) {
  const ScratchDirectory scratch;
  const auto path = scratch.write("config.json", "{\n}x");
  EXPECT_EQ(refusal(scratch.path().string(), [&] { read_json(path); }),
            "config.json:2:2: invalid JSON: invalid literal");
  EXPECT_EQ(read_json(scratch.write("b.json", "[1]")).dump(), "[1]");
}

}  // namespace
}  // namespace lathe::io
