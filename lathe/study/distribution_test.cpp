#include "lathe/study/distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lathe/core/testing/error_text.h"

namespace lathe::study {
namespace {

const Distribution kAct =
    CategoricalDistribution{{std::string("relu"), std::int64_t{8}, 2.5, true, std::monostate{}}};

TEST(Distribution, LowersHighToTheLastValueThatTheStepReaches) {
  const auto high = [](double low, double top, double step) {
    return std::get<FloatDistribution>(
               validated(FloatDistribution{.low = low, .high = top, .step = step}, "x"))
        .high;
  };
  EXPECT_EQ(high(0, 1, 0.3), 0.9);
  EXPECT_EQ(high(0, 0.3, 0.1), 0.3);  // in binary 0.3 / 0.1 is less than 3
  EXPECT_EQ(high(-1, 1.05, 0.1), 1.0);
  EXPECT_EQ(high(0.5, 0.6, 0.2), 0.5);
  EXPECT_EQ(high(1e-300, 1e300, 1e300), 1e300);  // no common digits: in binary
  EXPECT_EQ(validated(IntDistribution{.low = 2, .high = 15, .step = 4}, "n"),
            Distribution(IntDistribution{.low = 2, .high = 14, .step = 4}));
}

TEST(Distribution, RefusesContradictionsNamingTheParameter) {
  EXPECT_EQ(error_text([] { validated(FloatDistribution{.low = 2, .high = 1}, "x"); }),
            "parameter \"x\": low 2 is above high 1");
  EXPECT_EQ(error_text([] { validated(FloatDistribution{.low = 0, .high = NAN}, "x"); }),
            "parameter \"x\": the range from 0 to nan is not finite");
  EXPECT_EQ(error_text([] { validated(FloatDistribution{.low = 0, .high = 1, .log = true}, "x"); }),
            "parameter \"x\": the low end of a log range is 0, expected more than 0");
  EXPECT_EQ(error_text([] { validated(FloatDistribution{.step = 0}, "x"); }),
            "parameter \"x\": step is 0, expected more than 0");
  EXPECT_EQ(error_text([] { validated(IntDistribution{.low = 1, .log = true, .step = 2}, "n"); }),
            "parameter \"n\": a log range has no step");
  EXPECT_EQ(error_text([] { validated(CategoricalDistribution{}, "c"); }),
            "parameter \"c\": there are no choices");
}

TEST(Distribution, CountsItsValues) {
  EXPECT_EQ(num_values(FloatDistribution{.low = 0, .high = 1}), std::nullopt);
  EXPECT_EQ(num_values(FloatDistribution{.low = 0, .high = 0.3, .step = 0.1}), 4);
  EXPECT_EQ(num_values(IntDistribution{.low = -3, .high = 3, .step = 3}), 3);
  EXPECT_EQ(num_values(IntDistribution{.low = std::numeric_limits<std::int64_t>::min(),
                                       .high = std::numeric_limits<std::int64_t>::max()}),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(num_values(kAct), 5);
  EXPECT_TRUE(is_single(FloatDistribution{.low = 2, .high = 2}));
  EXPECT_FALSE(is_single(IntDistribution{.low = 0, .high = 1}));
}

TEST(Distribution, KnowsWhatItContains) {
  const Distribution steps = FloatDistribution{.low = 0, .high = 0.3, .step = 0.1};
  EXPECT_TRUE(contains(steps, 3 * 0.1 - 1e-12));
  EXPECT_FALSE(contains(steps, 0.15));
  EXPECT_FALSE(contains(steps, 0.4));
  EXPECT_FALSE(contains(steps, NAN));
  EXPECT_TRUE(contains(IntDistribution{.low = 2, .high = 8, .step = 3}, 5));
  EXPECT_FALSE(contains(IntDistribution{.low = 2, .high = 8, .step = 3}, 4));
  EXPECT_FALSE(contains(IntDistribution{.low = 2, .high = 8}, 2.5));
  EXPECT_TRUE(contains(kAct, 4));
  EXPECT_FALSE(contains(kAct, 5));
  EXPECT_FALSE(contains(kAct, -1));
  EXPECT_FALSE(contains(kAct, 0.5));
  EXPECT_FALSE(contains(kAct, NAN));
}

TEST(Distribution, TurnsInternalValuesIntoWhatTheUserSeesAndBack) {
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(to_internal(kAct, to_external(kAct, i), "act"), i) << to_json(to_external(kAct, i));
  EXPECT_EQ(to_json(to_external(IntDistribution{.high = 9}, 7)), "7");
  EXPECT_EQ(to_json(to_external(FloatDistribution{}, 1)), "1.0");
  EXPECT_EQ(to_internal(FloatDistribution{}, std::int64_t{1}, "x"), 1.0);
  EXPECT_EQ(to_internal(kAct, 8.0, "act"), 1) << "8.0 and 8 are equal in Python";
  EXPECT_EQ(to_internal(kAct, std::int64_t{1}, "act"), 3) << "and so are 1 and true";
}

TEST(Distribution, RefusesValuesOfAnotherKindOrOutsideTheRange) {
  EXPECT_EQ(error_text([] { to_internal(kAct, std::string("gelu"), "act"); }),
            "parameter \"act\": \"gelu\" is not a value of one of \"relu\", 8, 2.5, true, null");
  EXPECT_EQ(error_text([] { to_internal(IntDistribution{.high = 9}, 2.5, "n"); }),
            "parameter \"n\": 2.5 is not a value of int from 0 to 9");
  EXPECT_EQ(error_text([] {
              to_internal(FloatDistribution{.low = 0.1, .high = 1, .log = true}, 0.0, "lr");
            }),
            "parameter \"lr\": 0.0 is not a value of log float from 0.1 to 1");
  EXPECT_EQ(error_text([] { to_external(kAct, 9); }), "there is no choice 9 among 5");
}

TEST(Distribution, AllowsOtherRangesButNoOtherKindLogOrChoicesInOneStudy) {
  const Distribution narrow = FloatDistribution{.low = 0.5, .high = 1};
  const Distribution wide = FloatDistribution{.low = 0.5, .high = 2};
  EXPECT_EQ(error_text([&] { require_compatible(narrow, wide, "x"); }), "no error");
  EXPECT_EQ(error_text([&] {
              require_compatible(narrow, FloatDistribution{.low = 0.5, .high = 1, .log = true},
                                 "x");
            }),
            "parameter \"x\": the study knows it as float from 0.5 to 1, asked for log float from "
            "0.5 to 1");
  EXPECT_EQ(
      error_text([&] { require_compatible(narrow, IntDistribution{}, "x"); }),
      "parameter \"x\": the study knows it as float from 0.5 to 1, asked for int from 0 to 1");
  const Distribution one = CategoricalDistribution{{std::int64_t{1}, std::nan("")}};
  const Distribution same = CategoricalDistribution{{1.0, std::nan("")}};
  const Distribution other = CategoricalDistribution{{std::int64_t{1}}};
  EXPECT_EQ(error_text([&] { require_compatible(one, same, "c"); }), "no error");
  EXPECT_EQ(error_text([&] { require_compatible(one, other, "c"); }),
            "parameter \"c\": the study knows it as one of 1, NaN, asked for one of 1");
}

TEST(Distribution, WritesOptunasJson) {
  EXPECT_EQ(
      to_json(FloatDistribution{.low = 1e-5, .high = 0.1, .log = true}),
      R"({"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}})");
  EXPECT_EQ(
      to_json(IntDistribution{.low = 2, .high = 16, .step = 2}),
      R"({"name": "IntDistribution", "attributes": {"log": false, "step": 2, "low": 2, "high": 16}})");
  EXPECT_EQ(
      to_json(kAct),
      R"({"name": "CategoricalDistribution", "attributes": {"choices": ["relu", 8, 2.5, true, null]}})");
}

TEST(Distribution, ReadsBackWhatItWrites) {
  const Distribution all[] = {
      FloatDistribution{.low = 1e-5, .high = 0.1, .log = true},
      FloatDistribution{.low = -1, .high = 1, .step = 0.25},
      IntDistribution{.low = 1, .high = 9007199254740993, .log = true},
      IntDistribution{.low = -8, .high = 16, .step = 2},
      CategoricalDistribution{{INFINITY, -INFINITY, std::string("\"caf\xc3\xa9\"\n")}},
      kAct,
  };
  for (const Distribution& each : all)
    EXPECT_EQ(parse_distribution(to_json(each)), each) << to_json(each);
}

TEST(Distribution, ReadsTheNamesOfOldVersions) {
  const auto read = [](std::string_view json) { return describe(parse_distribution(json)); };
  EXPECT_EQ(read(R"({"name": "UniformDistribution", "attributes": {"low": 0.0, "high": 1.0}})"),
            "float from 0 to 1");
  EXPECT_EQ(read(R"({"name": "LogUniformDistribution", "attributes": {"low": 0.1, "high": 1.0}})"),
            "log float from 0.1 to 1");
  EXPECT_EQ(read(R"({"name": "DiscreteUniformDistribution",
                     "attributes": {"low": 0.0, "high": 1.0, "q": 0.5}})"),
            "float from 0 to 1 in steps of 0.5");
  EXPECT_EQ(read(R"({"name": "IntUniformDistribution",
                     "attributes": {"low": 1, "high": 7, "step": 2}})"),
            "int from 1 to 7 in steps of 2");
  EXPECT_EQ(read(R"({"name": "IntLogUniformDistribution",
                     "attributes": {"low": 1, "high": 7, "step": 2}})"),
            "log int from 1 to 7");
  EXPECT_EQ(read(R"({"type": "categorical", "choices": ["a"]})"), "one of \"a\"");
}

TEST(Distribution, RefusesDamagedJsonInOneLine) {
  const auto refusal = [](std::string_view json) {
    return error_text([&] { parse_distribution(json); });
  };
  EXPECT_EQ(refusal("{"),
            "distribution: 1:2: invalid JSON: unexpected end of input; expected string literal");
  EXPECT_EQ(refusal("[]"), "distribution: expected an object, not []");
  EXPECT_EQ(refusal("{}"), "distribution: \"name\" is not a text");
  EXPECT_EQ(refusal(R"({"name": "FloatDistribution"})"),
            "distribution: \"attributes\" is not an object");
  EXPECT_EQ(refusal(R"({"name": "FloatDistribution", "attributes": {"low": "a"}})"),
            "distribution: \"low\" is not a number");
  EXPECT_EQ(refusal(R"({"name": "IntDistribution", "attributes": {"low": 0.5, "high": 2}})"),
            "distribution: \"low\" is 0.5, expected a whole number");
  EXPECT_EQ(refusal(R"({"name": "IntDistribution", "attributes": {"low": 3, "high": 2}})"),
            "distribution: low 3 is above high 2");
  EXPECT_EQ(refusal(R"({"name": "CategoricalDistribution", "attributes": {"choices": [[1]]}})"),
            "distribution: a choice is null, true, false, a number or a text, not [1]");
  EXPECT_EQ(refusal(R"({"name": "NormalDistribution", "attributes": {}})"),
            "distribution: unknown distribution \"NormalDistribution\"; known: "
            "CategoricalDistribution, FloatDistribution, IntDistribution\nhint: did you mean "
            "\"FloatDistribution\"?");
}

}  // namespace
}  // namespace lathe::study
