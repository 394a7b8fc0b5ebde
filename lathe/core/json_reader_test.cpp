#include "lathe/core/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "lathe/core/testing/error_text.h"

namespace lathe {
namespace {

std::string parse(std::string_view text, const JsonLimits& limits = {}) {
  std::string printed;
  const std::string message = error_text([&] { printed = parse_json(text, "", limits).dump(); });
  return message == "no error" ? printed : message;
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

TEST(JsonReader, PutsTheNameInFrontAndCountsFromTheGivenLine) {
  EXPECT_EQ(error_text([] { parse_json("[1]\nx", "a.json"); }),
            "a.json:2:1: invalid JSON: invalid literal");
  EXPECT_EQ(error_text([] { parse_json("[1,", "", {}, 7); }),
            "7:4: invalid JSON: unexpected end of input; expected '[', '{', or a literal");
  EXPECT_EQ(error_text([] { parse_json("[1]", "a.json", {.max_bytes = 2}); }),
            "a.json: is 3 bytes long, more than the 2 that are read as JSON");
}

TEST(JsonReader, RefusesEveryTruncation) {
  constexpr std::string_view kText =
      R"({"a": [1, -2.5e3, true, null, "t\u00e9\ud83d\ude00", {"b": {}}], "c": "caf\u00e9"})";
  ASSERT_EQ(error_text([&] { parse_json(kText); }), "no error");
  for (std::size_t length = 0; length < kText.size(); ++length)
    EXPECT_THAT(parse(kText.substr(0, length)), testing::StartsWith("1:")) << length;
}

// A nested value is built and destroyed without recursion, whatever opens it.
TEST(JsonReader, RefusesNestingAHundredThousandDeep) {
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":[";
  EXPECT_THAT(parse(objects), testing::EndsWith(": nested more than 64 deep"));
  EXPECT_THAT(parse("{\"label\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}"),
              testing::EndsWith(": nested more than 64 deep"));
}

TEST(JsonReader, KeepsOrRefusesHugeNumbers) {
  EXPECT_EQ(parse("[18446744073709551616]"), "[1.8446744073709552e+19]");
  EXPECT_EQ(parse("[-9223372036854775808]"), "[-9223372036854775808]");
  EXPECT_EQ(parse("[1e-999]"), "[0.0]");
  EXPECT_THAT(parse("[-1e999]"), testing::EndsWith("number out of range"));
  EXPECT_THAT(parse("[" + std::string(100'000, '9') + "]"),
              testing::EndsWith("number out of range"));
}

// Any bytes at all give a value or one line.
TEST(JsonReader, SurvivesRandomDamage) {
  constexpr std::string_view kText =
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b\n": 1}}, "merges": [["a", "b"], 1.5e-3]})";
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged(kText);
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    EXPECT_THAT(parse(damaged), testing::Not(testing::HasSubstr("\n"))) << damaged;
  }
}

}  // namespace
}  // namespace lathe
