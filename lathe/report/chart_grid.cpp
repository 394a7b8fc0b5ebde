#include "lathe/report/chart_grid.h"

#include <fmt/format.h>

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/report/svg_elements.h"

namespace lathe::report {

std::string chart_grid(const ChartGrid& grid, const std::vector<std::string>& charts) {
  check(grid.columns >= 1, "a grid of charts to have columns");
  const int count = static_cast<int>(charts.size());
  const int columns = std::clamp(count, 1, grid.columns);
  const int rows = (count + columns - 1) / columns;
  const int head = grid.subtitle.empty() ? 38 : 56;
  const int width = std::max(320, columns * grid.cell_width);
  std::string body =
      svg_text(width / 2.0, 24, "middle", label_line(grid.title, label_limit(width / 1.4)), 16,
               " font-weight=\"bold\"");
  if (!grid.subtitle.empty())
    body +=
        svg_text(width / 2.0, 44, "middle", label_line(grid.subtitle, label_limit(width - 20)), 12);
  for (int i = 0; i < count; ++i) {
    // A document inside a document keeps its own coordinates and is moved as a whole.
    const std::string& chart = charts[static_cast<std::size_t>(i)];
    check(chart.starts_with("<svg "), "a chart to be an SVG document");
    body += fmt::format("<svg x=\"{}\" y=\"{}\" {}", i % columns * grid.cell_width,
                        head + i / columns * grid.cell_height, std::string_view(chart).substr(5));
  }
  if (count == 0) body += svg_text(width / 2.0, head + 40, "middle", "no data", 14);
  return svg_document(width, head + std::max(1, rows) * grid.cell_height, grid.title, body);
}

}  // namespace lathe::report
