#include "lathe/io/json_reader.h"

#include <gtest/gtest.h>

#include "lathe/io/testing/refusal.h"
#include "lathe/io/testing/scratch_directory.h"

namespace lathe::io {
namespace {

std::string parse(std::string_view text, const JsonLimits& limits = {}) {
  std::string printed;
  const std::string message =
      refusal("x.json", [&] { printed = parse_json(text, "x.json", limits).dump(); });
  return message == "accepted" ? printed : message;
}

TEST(JsonReader, BuildsEveryKindOfValue) {
  EXPECT_EQ(
      parse(R"( {"a": [1, -2, 0.5, true, false, null, "t\u00e9"], "b": {"c": {}, "d": []}} )"),
      R"({"a":[1,-2,0.5,true,false,null,"té"],"b":{"c":{},"d":[]}})");
  EXPECT_EQ(parse("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(parse(R"([{"a":1},{"a":2}])"), R"([{"a":1},{"a":2}])");
}

struct Case {
  std::string_view text;
  std::string_view message;
};

TEST(JsonReader, RefusesWithLineAndColumn) {
  using std::string_view_literals::operator""sv;
  const Case cases[] = {
      {"", "1:1: invalid JSON: unexpected end of input; expected '[', '{', or a literal"},
      {"{", "1:2: invalid JSON: unexpected end of input; expected string literal"},
      {"{\n  \"a\": 1,\n  \"a\": 2\n}", "3:5: duplicate key \"a\""},
      {R"({"a":{"b":1,"b":1}})", "1:15: duplicate key \"b\""},
      {R"({"a":1,"\u0061":2})", "1:15: duplicate key \"a\""},
      {"[1,\n2,]", "2:3: invalid JSON: unexpected ']'; expected '[', '{', or a literal"},
      {"[1] 2", "1:5: invalid JSON: unexpected number literal; expected end of input"},
      {"[1]\0[2]"sv, "1:4: NUL byte"},
      {"[1]\0"sv, "1:4: NUL byte"},
      {"nul", "1:4: invalid JSON: invalid literal"},
      {"[NaN]", "1:2: invalid JSON: invalid literal"},
      {"[1e999]", "1:6: invalid JSON: number out of range"},
      {"[01]", "1:3: invalid JSON: unexpected number literal; expected ']'"},
      {"[\"\xff\"]", "1:3: invalid JSON: invalid string: ill-formed UTF-8 byte"},
      {"[\"\xc0\x80\"]", "1:3: invalid JSON: invalid string: ill-formed UTF-8 byte"},
      {"[\"\\ud800\"]",
       "1:9: invalid JSON: invalid string: surrogate U+D800..U+DBFF must be followed by "
       "U+DC00..U+DFFF"},
      {"[1] // note", "1:5: invalid JSON: invalid literal"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(parse(text), message) << text;
}

TEST(JsonReader, BoundsDepthSizeAndNumberOfValues) {
  EXPECT_EQ(parse("[[[]]]", {.max_depth = 3}), "[[[]]]");
  EXPECT_EQ(parse("[[[[]]]]", {.max_depth = 3}), "1:4: nested more than 3 deep");
  EXPECT_EQ(parse(std::string(1'000'000, '[')), "1:65: nested more than 64 deep");
  EXPECT_EQ(parse("[123]", {.max_bytes = 5}), "[123]");
  EXPECT_EQ(parse("[1234]", {.max_bytes = 5}),
            "is 6 bytes long, more than the 5 that are read as JSON");
  EXPECT_EQ(parse("[1,2]", {.max_values = 3}), "[1,2]");
  EXPECT_EQ(parse("[1,2,3]", {.max_values = 3}), "1:7: more than 3 values");
}

TEST(JsonReader, DoesNotRepeatWhatItStumbledOver) {
  EXPECT_EQ(parse("\"" + std::string(10'000, 'x') + "\x1b[31m\""),
            "1:10002: invalid JSON: invalid string: control character U+001B (ESC) must be escaped "
            "to \\u001B");
}

TEST(JsonReader, NamesTheFile) {
  const ScratchDirectory scratch;
  const auto path = scratch.write("config.json", "{\n}x");
  EXPECT_EQ(refusal(scratch.path().string(), [&] { read_json(path); }),
            "config.json:2:2: invalid JSON: invalid literal");
  EXPECT_EQ(read_json(scratch.write("b.json", "[1]")).dump(), "[1]");
}

}  // namespace
}  // namespace lathe::io
