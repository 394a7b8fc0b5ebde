#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lathe/report/table.h"

namespace lathe::report {

/// A report as one HTML file: no scripts, nothing from a network, light and dark.
///
///     HtmlPage page("Quantizing a classifier");
///     page.section("Result");
///     page.figures({{"accuracy", "0.871"}, {"size", "4.4 MB"}});
///     page.svg(line_chart(...));
///     write_file("report.html", page.str());
///
/// Elements follow each other in the order they are added. Text is escaped; SVG is taken as it is
/// and must be our own.
class HtmlPage {
 public:
  explicit HtmlPage(std::string_view title);

  /// Starts a section; it is listed at the top of a page that has several.
  HtmlPage& section(std::string_view heading);
  HtmlPage& paragraph(std::string_view text);
  /// Numbers to see first, each large above its name: {{"accuracy", "0.871"}, ...}.
  HtmlPage& figures(const std::vector<std::pair<std::string, std::string>>& figures);
  HtmlPage& table(const Table& table, std::string_view caption = {});
  /// A chart, as wide as the text at most.
  HtmlPage& svg(std::string_view svg, std::string_view caption = {});
  /// A large picture such as a graph: it scrolls in a frame of its own, fitted to the width or at
  /// full size as the reader chooses.
  HtmlPage& large_svg(std::string_view svg, std::string_view caption = {});
  HtmlPage& preformatted(std::string_view text);
  /// Preformatted text behind a line to click on.
  HtmlPage& details(std::string_view summary, std::string_view text);
  /// A table behind a line to click on.
  HtmlPage& details(std::string_view summary, const Table& table);

  std::string str() const;

 private:
  std::string title_;
  std::vector<std::string> sections_;
  int num_large_ = 0;
  std::string body_;
};

}  // namespace lathe::report
