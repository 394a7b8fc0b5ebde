#include "lathe/report/html_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/error.h"
#include "lathe/report/plot.h"

namespace lathe::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

HtmlPage full_page() {
  HtmlPage page("A report");
  page.section("One").paragraph("Some words.").figures({{"accuracy", "0.87"}, {"size", "4.4 MB"}});
  page.table(Table({"a", "b"}).row({"x", "1"}), "a caption");
  page.section("Two").svg(
      line_chart({.title = "t", .x = {"x"}, .y = {"y"}}, {{"a", {1, 2}, {3, 4}}}));
  page.large_svg("<?xml version=\"1.0\"?>\n<!DOCTYPE svg>\n<svg width=\"8\"></svg>\n", "a graph");
  page.section("Three").preformatted("a\n  b").details("more", "c < d");
  page.details("rows", Table({"n"}).row({"7"}));
  return page;
}

// Every element that is opened is closed, in order. Elements that never close are known.
std::string first_unbalanced(std::string_view html) {
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != html.npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find('>', at);
    if (end == html.npos) return "an open tag";
    std::string_view tag = html.substr(at + 1, end - at - 1);
    const bool is_closed_at_once = tag.ends_with('/');
    const bool is_end = tag.starts_with('/');
    if (is_end) tag.remove_prefix(1);
    const std::string name(tag.substr(0, tag.find_first_of(" /\n")));
    if (name == "!DOCTYPE" || name == "meta" || name == "input" || is_closed_at_once) continue;
    if (!is_end) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return name;
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

TEST(HtmlPage, ClosesEveryElementItOpens) {
  EXPECT_EQ(first_unbalanced(full_page().str()), "");
}

TEST(HtmlPage, HoldsItsElementsInOrder) {
  const std::string html = full_page().str();
  EXPECT_THAT(html, StartsWith("<!DOCTYPE html>\n<html lang=\"en\">"));
  std::size_t at = 0;
  for (const char* text :
       {"<title>A report</title>", "<h1>A report</h1>", "href=\"#section-3\"",
        "<h2 id=\"section-1\">One", "<p>Some words.</p>", "<dt>accuracy</dt><dd>0.87</dd>",
        "<caption>a caption</caption>", "<h2 id=\"section-2\">Two", "<svg xmlns",
        "<svg width=\"8\">", "<figcaption>a graph", "<pre>a\n  b</pre>", "<summary>more</summary>",
        "c &lt; d", "<td class=\"number\">7</td>"}) {
    const std::size_t found = html.find(text, at);
    ASSERT_NE(found, html.npos) << text;
    at = found;
  }
}

TEST(HtmlPage, NeedsNoNetworkAndNoScript) {
  const std::string html = full_page().str();
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("src=")));
  EXPECT_THAT(html, Not(HasSubstr("url(")));
  EXPECT_THAT(html, Not(HasSubstr("@import")));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
}

TEST(HtmlPage, EscapesEveryText) {
  const std::string evil = "</title><script>alert(1)</script>";
  HtmlPage page(evil);
  page.section(evil).section(evil).section(evil).paragraph(evil).figures({{evil, evil}});
  page.table(Table({evil}).row({evil}), evil).preformatted(evil).details(evil, evil);
  page.svg("<svg/>", evil).large_svg("<svg/>", evil);
  EXPECT_THAT(page.str(), Not(HasSubstr("<script>")));
}

TEST(HtmlPage, EmbedsTheSvgElementAlone) {
  EXPECT_THAT(full_page().str(), Not(HasSubstr("<?xml")));
  EXPECT_THROW(HtmlPage("t").svg("no picture"), InternalError);
}

}  // namespace
}  // namespace lathe::report
