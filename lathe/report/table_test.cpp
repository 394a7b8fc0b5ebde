#include "lathe/report/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/error.h"

namespace lathe::report {
namespace {

using testing::HasSubstr;
using testing::Not;

Table sizes() {
  return Table({"model", "bits", "size"})
      .row({"full", "32", "17.6 MB"})
      .row({"int8", "8", "4.4 MB"})
      .row({"pruned", "-", "123.4 MB"});
}

TEST(Table, AlignsNumbersToTheRightAndTextToTheLeft) {
  EXPECT_EQ(sizes().to_text(),
            "model   bits      size\n"
            "------  ----  --------\n"
            "full      32   17.6 MB\n"
            "int8       8    4.4 MB\n"
            "pruned     -  123.4 MB\n");
}

TEST(Table, WritesMarkdown) {
  EXPECT_EQ(sizes().to_markdown(),
            "| model | bits | size |\n"
            "| --- | ---: | ---: |\n"
            "| full | 32 | 17.6 MB |\n"
            "| int8 | 8 | 4.4 MB |\n"
            "| pruned | - | 123.4 MB |\n");
}

TEST(Table, WritesHtml) {
  EXPECT_EQ(Table({"a", "b"}).row({"x", "1"}).to_html(),
            "<table>\n<thead>\n<tr><th>a</th><th class=\"number\">b</th></tr>\n</thead>\n<tbody>\n"
            "<tr><td>x</td><td class=\"number\">1</td></tr>\n</tbody>\n</table>\n");
}

TEST(Table, LeavesRoomForLongTextInHtml) {
  const std::string html =
      Table({"a", "b"}).row({std::string(80, 'x'), "1"}).row({std::string(81, 'x'), "2"}).to_html();
  EXPECT_NE(html.find("<td>" + std::string(80, 'x') + "</td>"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"long\">" + std::string(81, 'x') + "</td>"), std::string::npos);
}

TEST(Table, KnowsWhatANumberIs) {
  for (const char* number : {"0", "-1.5", "+3", "1,024", "2e-05", "1.5e+10", "87.1 %", "93%",
                             "12 ms", "2.3x", "inf", "nan", ".5", "0.87 ± 0.01", "4 µs"})
    EXPECT_TRUE(Table({"a"}).row({number}).is_numeric(0)) << number;
  for (const char* text :
       {"x", "-", "", "8x8", "layer 3", "1 of 2", "fixed:8,4", "12 pounds heavy", "v1"})
    EXPECT_FALSE(Table({"a"}).row({text}).is_numeric(0)) << text;
}

TEST(Table, CountsCharactersAndNotBytes) {
  EXPECT_EQ(Table({"a", "b"}).row({"é×é", "x"}).row({"abc", "y"}).to_text(),
            "a    b\n---  -\né×é  x\nabc  y\n");
}

TEST(Table, EscapesCellsInEveryForm) {
  const Table table = Table({"<h>"}).row({"a|b\n<script>\x1b[2J"});
  EXPECT_EQ(table.to_text(), "<h>\n----------------\na|b\uFFFD<script>\uFFFD[2J\n");
  EXPECT_THAT(table.to_markdown(), HasSubstr("a\\|b\uFFFD&lt;script>"));
  EXPECT_THAT(table.to_html(), Not(HasSubstr("<script>")));
  EXPECT_THAT(table.to_html(), HasSubstr("<th>&lt;h&gt;</th>"));
}

TEST(Table, InsistsOnOneCellForEachHeader) {
  EXPECT_THROW(Table({"a", "b"}).row({"1"}), InternalError);
}

TEST(Table, LetsABrowserBreakLongNamesAtTheirDots) {
  const std::string html =
      Table({"tensor", "bits"}).row({"bert.encoder.layer.0.weight", "1.25"}).to_html();
  EXPECT_THAT(html, HasSubstr("<td>bert.encoder.<wbr>layer.0.<wbr>weight</td>"));
  EXPECT_THAT(html, HasSubstr(">1.25<"));
}

}  // namespace
}  // namespace lathe::report
