#include "lathe/core/attribute.h"

#include <gtest/gtest.h>

#include <limits>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"

namespace lathe {
namespace {

const std::vector<AttributeSpec> kSpecs{{"rate", 0.5, "a number"},
                                        {"heads", std::int64_t{4}, "an integer", true},
                                        {"exact", false, "a flag"},
                                        {"mode", std::string("up"), "a text"},
                                        {"axes", std::vector<std::int64_t>{1, 2}, "integers"},
                                        {"values", std::vector<double>{0.5}, "numbers"}};

std::string refusal(std::string_view attributes) {
  return error_text([&] { check_attributes(parse_attributes(attributes), kSpecs); });
}

TEST(Attributes, ReadBackAsTheyArePrinted) {
  for (const char* text :
       {"{a=true, b=false}", "{a=3, b=-4}", "{a=0.1, b=1e-12, c=2.0, d=-0.0}", "{a=inf, b=-inf}",
        "{a=\"relu\", b=\"say \\\"hi\\\" \\\\ \\n\"}", "{a=[1,-2,3]}", "{a=[0.5,2.0]}", "{a=[]}",
        "{a=9223372036854775807}", "{a=nan}"})
    EXPECT_EQ(to_text(parse_attributes(text)), text);
  EXPECT_EQ(to_text(Attributes{}), "");
}

TEST(Attributes, KeepEveryBitOfANumber) {
  for (const double value : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 123456789.125}) {
    const Attributes read = parse_attributes(to_text(Attributes{{"v", value}}));
    EXPECT_EQ(std::get<double>(read.at("v")), value);
  }
}

TEST(Attributes, AreReadWithOrWithoutBraces) {
  EXPECT_EQ(parse_attributes("a=1, b=\"x\""), parse_attributes("{a=1, b=\"x\"}"));
}

TEST(Attributes, SayWhatIsWrongWithTheirText) {
  const auto refused = [](std::string_view text) {
    return error_text([&] { parse_attributes(text); });
  };
  EXPECT_EQ(refused("{a=}"), "expected a value before \"}\"");
  EXPECT_EQ(refused("{a=1, a=2}"), "a is given twice");
  EXPECT_EQ(refused("{a=\"x}"), "a quote is not closed");
  EXPECT_EQ(refused("{a=[1,\"x\"]}"), "a list holds numbers only, not \"x\"");
  EXPECT_EQ(refused("{a=1"), "expected \"}\" before \"end of line\"");
  EXPECT_EQ(refused("{a=1} b"), "unexpected \"b\" after attributes");
}

TEST(Attributes, RefuseListsInsideListsHoweverDeep) {
  // Each level used to be a call inside a call, so that a long line of brackets ended the program.
  const std::string deep = "a=" + std::string(1000000, '[');
  EXPECT_EQ(error_text([&] { parse_attributes(deep); }), "a list holds numbers only, not lists");
}

TEST(CheckAttributes, AcceptsEveryKindAndIntegersForNumbers) {
  EXPECT_EQ(refusal("heads=2, rate=1, exact=true, mode=\"down\", axes=[3], values=[1,2]"),
            "no error");
}

TEST(CheckAttributes, SuggestsTheNearestName) {
  EXPECT_EQ(refusal("heads=2, rat=0.1"),
            "unknown attribute \"rat\"; known: axes, exact, heads, mode, rate, values\n"
            "hint: did you mean \"rate\"?");
}

TEST(CheckAttributes, NamesTheKindItExpected) {
  EXPECT_EQ(refusal("heads=2.5"), "attribute heads=2.5: expected an integer");
  EXPECT_EQ(refusal("heads=2, rate=\"x\""), "attribute rate=\"x\": expected a number");
  EXPECT_EQ(refusal("heads=2, exact=1"), "attribute exact=1: expected true or false");
  EXPECT_EQ(refusal("heads=2, mode=3"), "attribute mode=3: expected a text");
  EXPECT_EQ(refusal("heads=2, axes=[0.5]"), "attribute axes=[0.5]: expected a list of integers");
  EXPECT_EQ(refusal("heads=2, values=1.0"), "attribute values=1.0: expected a list of numbers");
}

TEST(CheckAttributes, NamesTheOneThatIsMissing) {
  EXPECT_EQ(refusal("rate=0.1"), "attribute heads is missing: expected an integer");
}

TEST(AttributeReader, GivesWhatIsWrittenOrElseTheDefault) {
  const Attributes attributes = parse_attributes("heads=2, rate=1, values=[3,4]");
  const AttributeReader reader(attributes, kSpecs);
  EXPECT_EQ(reader.integer("heads"), 2);
  EXPECT_EQ(reader.real("rate"), 1.0);
  EXPECT_EQ(reader.reals("values"), (std::vector<double>{3, 4}));
  EXPECT_EQ(reader.text("mode"), "up");
  EXPECT_EQ(reader.integers("axes"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_FALSE(reader.flag("exact"));
  EXPECT_TRUE(reader.is_given("rate"));
  EXPECT_FALSE(reader.is_given("mode"));
  EXPECT_EQ(error_text([&] { (void)reader.integer("head"); }), "internal error");
}

}  // namespace
}  // namespace lathe
