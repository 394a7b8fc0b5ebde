#include "lathe/compress/format_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/error.h"

namespace lathe::compress {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> formats(const std::string& text) {
  std::vector<std::string> result;
  for (const FormatSweep::Point& point : parse_format_sweep(text).points)
    result.push_back(point.format);
  return result;
}

std::string problem(const std::string& text) {
  try {
    parse_format_sweep(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(FormatSweep, PutsValuesInTheBraces) {
  EXPECT_THAT(formats("fixed:{w},{w/2} w=4,8"), ElementsAre("fixed:4,2", "fixed:8,4"));
  EXPECT_THAT(formats("int:{b},channel b=2..4"),
              ElementsAre("int:2,channel", "int:3,channel", "int:4,channel"));
  EXPECT_THAT(formats("fixed:{f+5},{f} f=1,3"), ElementsAre("fixed:6,1", "fixed:8,3"));
}

TEST(FormatSweep, KnowsTheSweepsOfTheLabs) {
  EXPECT_EQ(parse_format_sweep("widths").points.size(), 9u);
  EXPECT_EQ(formats("integer-bits").front(), "fixed:5,4");
  EXPECT_EQ(formats("integer-bits").back(), "fixed:14,4");
  EXPECT_EQ(formats("fraction-bits").front(), "fixed:6,1");
  EXPECT_EQ(formats("fraction-bits").back(), "fixed:32,27");
  EXPECT_EQ(parse_format_sweep("widths").variable, "width");
}

TEST(FormatSweep, SaysWhatItCannotRead) {
  EXPECT_THAT(problem("fixed:8,4"), HasSubstr("expected widths, integer-bits"));
  EXPECT_THAT(problem("fixed:{w},2 w=4..x"), HasSubstr("\"4..x\""));
  EXPECT_THAT(problem("fixed:{v},2 w=4"), HasSubstr("{v}"));
  EXPECT_THAT(problem("fixed:{w,2 w=4"), HasSubstr("not closed"));
  EXPECT_THAT(problem("fixde:{w},2 w=4"), HasSubstr("fixde"));
  EXPECT_THAT(problem("fixed:{w},2 w=9..4"), HasSubstr("9..4"));
}

}  // namespace
}  // namespace lathe::compress
