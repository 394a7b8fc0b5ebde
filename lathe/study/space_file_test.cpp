#include "lathe/study/space_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lathe/core/error.h"
#include "lathe/study/space.h"

namespace lathe::study {
namespace {

std::string error_of(std::string_view toml) {
  try {
    parse_space_toml(toml, "space.toml");
  } catch (const UserError& error) {
    return error.hint().empty() ? error.message() : error.message() + " | " + error.hint();
  }
  return "no error";
}

std::string text_of(const Space& space) {
  std::string text;
  for (const SpaceParameter& each : space) {
    text += each.name + ": " + describe(*each.distribution);
    if (!each.parent.empty()) text += ", " + each.parent + " in";
    for (const double value : each.parent_values) text += fmt::format(" {}", value);
    text += "\n";
  }
  return text;
}

constexpr std::string_view kSpace = R"(
[parameters]
x = {type = "float", low = -5, high = 5}
layer = {type = "categorical", choices = ["int", "fixed", 8, 2.5, true]}
width = {type = "int", low = 2, high = 9, step = 2, when = {layer = "int"}}
fraction = {type = "int", low = 1, high = 64, log = true, when = {layer = ["int", "fixed"]}}
"encoder.0.rate" = {type = "float", low = 0.0, high = 0.3, step = 0.1, when = {width = 4}}

[parameters.lr]
type = "float"
low = 1e-5
high = 0.1
log = true
)";

TEST(SpaceFile, ReadsEveryKindOfParameterInTheOrderOfTheFile) {
  EXPECT_EQ(text_of(parse_space_toml(kSpace, "space.toml")),
            "x: float from -5 to 5\n"
            "layer: one of \"int\", \"fixed\", 8, 2.5, true\n"
            "width: int from 2 to 8 in steps of 2, layer in 0\n"
            "fraction: log int from 1 to 64, layer in 0 1\n"
            "encoder.0.rate: float from 0 to 0.3 in steps of 0.1, width in 4\n"
            "lr: log float from 1e-05 to 0.1\n");
}

TEST(SpaceFile, PutsAParentBeforeItsChildren) {
  EXPECT_EQ(text_of(parse_space_toml(R"([parameters]
    c = {type = "int", low = 0, high = 1, when = {b = 1}}
    b = {type = "int", low = 0, high = 1, when = {a = 1}}
    a = {type = "int", low = 0, high = 1}
  )",
                                     "space.toml")),
            "a: int from 0 to 1\nb: int from 0 to 1, a in 1\nc: int from 0 to 1, b in 1\n");
}

TEST(SpaceFile, ReadsBackTheJsonThatAStudyKeeps) {
  const Space space = parse_space_toml(kSpace, "space.toml");
  EXPECT_EQ(text_of(parse_space(to_json(space))), text_of(space));
  EXPECT_NO_THROW(require_same(space, parse_space(to_json(space))));
}

TEST(SpaceFile, NamesFileLineAndParameter) {
  EXPECT_EQ(error_of("[parameters]\nx = {type = \"float\", low = 1}"),
            "space.toml:2: parameter \"x\": \"high\" is missing");
  EXPECT_EQ(error_of("[parameters]\nx = {type = \"float\", low = 3, high = 1}"),
            "space.toml:2: parameter \"x\": low 3 is above high 1");
  EXPECT_EQ(error_of("[parameters]\nx = {type = \"int\", low = 0.5, high = 1}"),
            "space.toml:2: parameter \"x\": \"low\" is not a whole number");
  EXPECT_EQ(error_of("[parameters]\nx = {type = \"real\", low = 0, high = 1}"),
            "space.toml:2: parameter \"x\": unknown type \"real\"; known: categorical, float, int");
  EXPECT_EQ(error_of("[parameters]\nx = {type = \"int\", low = 0, hihg = 1}"),
            "space.toml:2: parameter \"x\": unknown key \"hihg\"; known: type, low, high, step, "
            "log, when | did you mean \"high\"?");
  EXPECT_EQ(error_of("[parameters]\n\nx = 3"),
            "space.toml:3: parameter \"x\": expected a table such as {type = \"float\", ...}");
  EXPECT_EQ(error_of("[parameters]\na.b = {type = \"int\", low = 0, high = 1}"),
            "space.toml:2: parameter \"a\": it holds other tables: a name with dots needs quotes");
  EXPECT_EQ(error_of("[parameters]\nx = {type = \"categorical\", choices = []}"),
            "space.toml:2: parameter \"x\": there are no choices");
  EXPECT_EQ(error_of("[parameters]\nx = {type = \"categorical\", choices = [[1]]}"),
            "space.toml:2: parameter \"x\": a choice is true, false, a number or a text");
  EXPECT_EQ(error_of("[parameters]\nx = {type = \"float\", low = nan, high = 1}"),
            "space.toml:2: parameter \"x\": the range from nan to 1 is not finite");
}

TEST(SpaceFile, RefusesConditionsThatCannotHold) {
  constexpr std::string_view kLayer =
      "[parameters]\nlayer = {type = \"categorical\", choices = [\"int\"]}\n";
  const auto refusal = [&](std::string_view when) {
    return error_of(
        fmt::format("{}x = {{type = \"int\", low = 0, high = 1, when = {}}}", kLayer, when));
  };
  EXPECT_EQ(
      refusal("{layer = \"fixed\"}"),
      "space.toml:3: parameter \"x\": parameter \"layer\": \"fixed\" is not a value of one of "
      "\"int\"");
  EXPECT_EQ(
      refusal("{layr = \"int\"}"),
      "space.toml:3: parameter \"x\": \"when\": unknown parameter \"layr\"; known: layer, x | "
      "did you mean \"layer\"?");
  EXPECT_EQ(refusal("{x = 1}"), "space.toml:3: parameter \"x\": its conditions go in a circle");
  EXPECT_EQ(refusal("{layer = []}"), "space.toml:3: parameter \"x\": \"when\" lists no values");
  EXPECT_EQ(
      refusal("3"),
      "space.toml:3: parameter \"x\": \"when\" names one other parameter and its values, such "
      "as {layer = \"int\"}");
}

TEST(SpaceFile, RefusesWhatIsNoSpaceAtAll) {
  EXPECT_EQ(error_of(""), "space.toml: there is no table [parameters]");
  EXPECT_EQ(error_of("[parameters]"), "space.toml: [parameters] is empty");
  EXPECT_EQ(error_of("[parameters]\nx = {").substr(0, 13), "space.toml:2:");
  EXPECT_THROW(read_space_file("/nonexistent/space.toml"), UserError);
}

TEST(SpaceFile, RefusesDamagedJson) {
  const auto refusal = [](std::string_view json) {
    try {
      parse_space(json);
    } catch (const UserError& error) {
      return error.message();
    }
    return std::string("no error");
  };
  EXPECT_EQ(refusal("{}"), "space: expected a list of parameters");
  EXPECT_EQ(refusal(R"([{"name": 3}])"), "space: \"name\" is not a text");
  EXPECT_EQ(refusal(R"([{"name": "x"}])"),
            "space: parameter \"x\": distribution: expected an object, not null");
  EXPECT_EQ(refusal(R"([{"name": "x", "distribution": {"type": "int", "low": 0, "high": 1},
                         "when": {"y": [1]}}])"),
            "space: parameter \"x\": its condition names \"y\", which is not before");
  EXPECT_EQ(refusal(R"([{"name": "x", "distribution": {"type": "int", "low": 0, "high": 1}},
                        {"name": "x", "distribution": {"type": "int", "low": 0, "high": 1}}])"),
            "space: parameter \"x\": it is declared twice");
}

}  // namespace
}  // namespace lathe::study
