#include "lathe/core/error.h"

#include <gtest/gtest.h>

#include "lathe/core/registry.h"
#include "lathe/core/testing/error_text.h"

namespace lathe {
namespace {

const std::vector<std::string> kNames{"bfp", "fixed", "int", "minifloat"};

TEST(NearestName, FindsAMistypedName) {
  EXPECT_EQ(nearest_name("fixd", kNames), "fixed");
  EXPECT_EQ(nearest_name("fxied", kNames), "fixed");  // neighbours swapped: one edit
  EXPECT_EQ(nearest_name("minifloot", kNames), "minifloat");
  EXPECT_EQ(nearest_name("bpf", kNames), "bfp");
}

TEST(NearestName, SuggestsNothingThatIsFarAway) {
  EXPECT_EQ(nearest_name("ternary", kNames), "");
  EXPECT_EQ(nearest_name("x", {}), "");
}

TEST(UnknownName, ListsWhatIsKnownAndSuggestsTheNearest) {
  EXPECT_EQ(error_text([] { throw unknown_name("format family", "fixd", kNames); }),
            "unknown format family \"fixd\"; known: bfp, fixed, int, minifloat\n"
            "hint: did you mean \"fixed\"?");
  EXPECT_EQ(error_text([] { throw unknown_name("format family", "logarithmic", kNames); }),
            "unknown format family \"logarithmic\"; known: bfp, fixed, int, minifloat");
}

TEST(WithPlace, PutsPlacesInFrontAsTheErrorPasses) {
  EXPECT_EQ(error_text([] {
              with_place("model.txt", [] {
                with_place("line 3", [] { throw UserError("no good", "do better"); });
              });
            }),
            "model.txt: line 3: no good\nhint: do better");
}

TEST(WithPlace, LeavesOtherErrorsAndResultsAlone) {
  EXPECT_EQ(with_place("here", [] { return 7; }), 7);
  EXPECT_THROW(with_place("here", [] { check(false, "something"); }), InternalError);
}

TEST(Check, SaysWhereAndWhatShouldHold) {
  try {
    check(1 + 1 == 3, "arithmetic to hold");
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("error_test.cpp:"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("expected arithmetic to hold"), std::string::npos);
  }
}

struct Fruit {
  std::string name;
  int seeds = 0;
};

TEST(Registry, ListsRecordsSortedByName) {
  Registry<Fruit> fruits;
  fruits.add({"pear", 8});
  fruits.add({"apple", 5});
  EXPECT_EQ(fruits.names(), (std::vector<std::string>{"apple", "pear"}));
  EXPECT_EQ(fruits.at("pear", "fruit").seeds, 8);
  EXPECT_EQ(fruits.find("plum"), nullptr);
}

TEST(Registry, NamesTheNearestOfWhatItLacks) {
  Registry<Fruit> fruits;
  fruits.add({"apple", 5});
  EXPECT_EQ(error_text([&] { (void)fruits.at("aple", "fruit"); }),
            "unknown fruit \"aple\"; known: apple\nhint: did you mean \"apple\"?");
}

TEST(Registry, TakesANameOnlyOnce) {
  Registry<Fruit> fruits;
  fruits.add({"apple", 5});
  EXPECT_THROW(fruits.add({"apple", 6}), InternalError);
  EXPECT_EQ(fruits.at("apple", "fruit").seeds, 5);
}

}  // namespace
}  // namespace lathe
