#include "lathe/study/json_text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/error.h"

namespace lathe::study {
namespace {

std::string error_of(std::string_view text) {
  try {
    parse_json(text);
  } catch (const UserError& error) {
    return error.message();
  }
  return "no error";
}

TEST(JsonText, ReadsTheWordsThatPythonWritesForNumbersThatAreNotFinite) {
  const nlohmann::json value = parse_json(R"({"a": [NaN, Infinity, -Infinity, -1.5]})");
  EXPECT_TRUE(std::isnan(value["a"][0].get<double>()));
  EXPECT_EQ(value["a"][1].get<double>(), INFINITY);
  EXPECT_EQ(value["a"][2].get<double>(), -INFINITY);
  EXPECT_EQ(value["a"][3].get<double>(), -1.5);
}

TEST(JsonText, LeavesTheSameWordsInStringsAlone) {
  EXPECT_EQ(parse_json(R"(["NaN", "say \"NaN\" twice", "number NaN", NaN])")[1],
            "say \"NaN\" twice");
  EXPECT_EQ(parse_json(R"(["number NaN", NaN])")[0], "number NaN");
}

TEST(JsonText, WritesWhatPythonWrites) {
  EXPECT_EQ(
      to_json_text(parse_json(R"({"b":[1,2.0,1e-05,NaN,-Infinity],"a":{"x":null,"y":true}})")),
      R"({"a": {"x": null, "y": true}, "b": [1, 2.0, 1e-05, NaN, -Infinity]})");
  EXPECT_EQ(to_json_text("caf\xc3\xa9 \"q\"\n"), R"("caf\u00e9 \"q\"\n")");
}

TEST(JsonText, WritesBytesThatAreNotTextAsReplacementCharacters) {
  EXPECT_EQ(to_json_text("a\xff"), R"("a\ufffd")");
}

TEST(JsonText, SaysWhereTextIsNotJson) {
  EXPECT_EQ(error_of("[1, 2"), "1:6: invalid JSON: unexpected end of input; expected ']'");
  EXPECT_EQ(error_of(""),
            "1:1: invalid JSON: unexpected end of input; expected '[', '{', or a literal");
  EXPECT_EQ(error_of("[1e999]"), "1:6: invalid JSON: number out of range");
  EXPECT_EQ(error_of(std::string(100000, '[')), "1:201: nested more than 200 deep");
}

}  // namespace
}  // namespace lathe::study
