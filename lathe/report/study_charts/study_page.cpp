#include "lathe/report/study_charts/study_page.h"

#include <fmt/format.h>

#include "lathe/report/html_page.h"
#include "lathe/report/study_charts/study_charts.h"

namespace lathe::report {

std::string study_page(const StudyPage& page) {
  HtmlPage html(fmt::format("Study {}", page.data.name));
  html.section("Result").figures(page.figures);
  if (page.best) html.table(*page.best, "The best trials");
  for (const StudyChart& chart : study_charts())
    if (chart.missing(page.data).empty()) html.section(chart.title).svg(chart.draw(page.data));
  html.section("Settings").table(page.settings);
  if (page.parameters)
    html.details(fmt::format("{} parameters", page.parameters->rows().size()), *page.parameters);
  return html.str();
}

}  // namespace lathe::report
