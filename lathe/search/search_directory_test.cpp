#include "lathe/search/search_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/json_file.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::search {
namespace {

// A directory of a program that did not know some option yet goes on where that has its default,
// and says what it was started with where it has not.
TEST(SearchDirectory, GoesOnWithThatOfAnOlderProgram) {
  const io::ScratchDirectory scratch;
  SearchOptions options;
  options.data = "reviews";
  options.out = scratch.path() / "s";
  { const SearchDirectory directory(options); }
  const auto results = options.out / "results.json";
  nlohmann::json older = io::read_json(results);
  ASSERT_EQ(older["configuration"].erase("front"), 1U);
  ASSERT_EQ(older["configuration"].erase("rung-rows"), 1U);
  io::write_atomically(results, older.dump());

  SearchOptions other = options;
  other.rung_rows = 100;
  EXPECT_THAT(error_text([&] { const SearchDirectory directory(other); }),
              testing::MatchesRegex("rung-rows 100: the search in .* was started with 2000"));
  { const SearchDirectory directory(options); }
  EXPECT_EQ(io::read_json(results)["configuration"], to_json(options));
}

}  // namespace
}  // namespace lathe::search
