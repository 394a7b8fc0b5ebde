#include "lathe/report/named_bars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/report/svg_count_test.h"

namespace lathe::report {
namespace {

using testing::HasSubstr;

TEST(NamedBars, WritesNamesBarsAndValues) {
  const std::string svg = named_bars("Importance", "share", {{"rate", 0.75}, {"a<b", 0.25}});
  for (const char* text : {">rate<", ">a&lt;b<", ">0.75<", ">0.25<", ">share<"})
    EXPECT_THAT(svg, HasSubstr(text));
  EXPECT_EQ(count_in(svg, "<rect"), 3u);  // and the background
}

TEST(NamedBars, SaysThatAValueIsUnknown) {
  const std::string svg = named_bars("Importance", "share", {{"rate", NAN}});
  EXPECT_THAT(svg, HasSubstr(">unknown<"));
}

TEST(NamedBars, SaysWhenThereIsNothingToDraw) {
  EXPECT_THAT(named_bars("Importance", "share", {}), HasSubstr("no data"));
}

}  // namespace
}  // namespace lathe::report
