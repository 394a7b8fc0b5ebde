#include "lathe/report/layered_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lathe/core/error.h"
#include "lathe/report/markup.h"
#include "lathe/report/plot_frame.h"
#include "lathe/report/plot_range.h"

namespace lathe::report {
namespace {

constexpr int kShades = 32;  // more cannot be told apart

bool is_line(Layer::Mark mark) {
  return mark == Layer::Mark::Line || mark == Layer::Mark::Steps;
}

std::string opacity_attribute(double opacity) {
  return opacity < 1 ? fmt::format(" opacity=\"{:.3g}\"", opacity) : "";
}

void add_line(PlotFrame& frame, const Chart& chart, const Layer& layer, std::string_view color) {
  std::string path;
  bool is_joined = false;
  for (std::size_t i = 0; i < layer.x.size(); ++i) {
    const bool can_draw = is_drawable(layer.x[i], chart.x) && is_drawable(layer.y[i], chart.y);
    if (can_draw) {
      const std::string x = pixel(frame.x(layer.x[i])), y = pixel(frame.y(layer.y[i]));
      if (is_joined && layer.mark == Layer::Mark::Steps)
        path += fmt::format("H{}V{}", x, y);
      else
        path += fmt::format("{}{} {}", is_joined ? "L" : "M", x, y);
    }
    is_joined = can_draw;
  }
  if (path.empty()) return;
  frame.add(fmt::format(
      "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
      "stroke-linejoin=\"round\"{}/>\n",
      path, color, layer.size < 4 ? pixel(layer.size / 2) : "2", opacity_attribute(layer.opacity)));
}

// A cross with a tooltip that its whole square answers to, not its thin lines alone.
std::string cross(double x, double y, double size, std::string_view color, std::string_view title) {
  return fmt::format(
      "<g>{0}<path d=\"M{1} {3}L{2} {4}M{1} {4}L{2} {3}\" fill=\"none\" stroke=\"{5}\" "
      "stroke-width=\"2\" pointer-events=\"bounding-box\"/></g>\n",
      title, pixel(x - size), pixel(x + size), pixel(y - size), pixel(y + size), color);
}

void add_points(PlotFrame& frame, const Chart& chart, const Layer& layer, std::string_view color,
                const std::optional<Shading>& shading) {
  const bool is_ring = layer.mark == Layer::Mark::Rings;
  // Round ends of lines without length: a point costs a dozen bytes instead of a hundred.
  std::map<int, std::string> paths;  // by shade, so that dark ones come last
  std::string elements;
  for (std::size_t i = 0; i < layer.x.size(); ++i) {
    if (!is_drawable(layer.x[i], chart.x) || !is_drawable(layer.y[i], chart.y)) continue;
    int shade = -1;
    std::string own_color(color);
    if (shading && i < layer.shade.size() && std::isfinite(layer.shade[i])) {
      const double position = std::clamp(shading->scale.position(layer.shade[i]), 0.0, 1.0);
      shade = static_cast<int>(
          std::lround((shading->is_reversed ? 1 - position : position) * (kShades - 1)));
      own_color = shade_color(shade / (kShades - 1.0));
    }
    const std::string x = pixel(frame.x(layer.x[i])), y = pixel(frame.y(layer.y[i]));
    if (layer.x.size() > kMostTooltips && layer.mark == Layer::Mark::Points) {
      paths[shade] += fmt::format("M{} {}h0", x, y);
      continue;
    }
    const std::string title =
        i < layer.tooltips.size()
            ? fmt::format("<title>{}</title>", escape_markup(layer.tooltips[i]))
            : "";
    if (layer.mark == Layer::Mark::Crosses) {
      elements += cross(frame.x(layer.x[i]), frame.y(layer.y[i]), layer.size, own_color, title);
      continue;
    }
    elements += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"{}>{}</circle>\n", x,
                            y, pixel(layer.size), is_ring ? "none" : own_color,
                            is_ring ? fmt::format(" stroke=\"{}\" stroke-width=\"2\"", own_color)
                                    : opacity_attribute(layer.opacity),
                            title);
  }
  for (const auto& [shade, path] : paths)
    frame.add(
        fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
                    "stroke-linecap=\"round\"{}/>\n",
                    path, shade < 0 ? std::string(color) : shade_color(shade / (kShades - 1.0)),
                    pixel(2 * layer.size), opacity_attribute(layer.opacity)));
  frame.add(elements);
}

struct LegendEntry {
  std::string name;
  Layer::Mark mark;
  std::string color;
};

// One line above the frame.
void add_legend(PlotFrame& frame, const std::vector<LegendEntry>& entries) {
  double x = frame.left() + 4;
  const double y = frame.top() - 14;
  for (const LegendEntry& entry : entries) {
    const std::string name = label_line(entry.name, 40);
    if (is_line(entry.mark))
      frame.add(fmt::format("<path d=\"M{} {}h18\" stroke=\"{}\" stroke-width=\"2\"/>\n", pixel(x),
                            pixel(y - 4), entry.color));
    else if (entry.mark == Layer::Mark::Crosses)
      frame.add(cross(x + 9, y - 4, 4, entry.color, ""));
    else
      frame.add(fmt::format(
          "<circle cx=\"{}\" cy=\"{}\" r=\"4.5\" fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"/>\n",
          pixel(x + 9), pixel(y - 4), entry.mark == Layer::Mark::Rings ? "none" : entry.color,
          entry.color, entry.mark == Layer::Mark::Rings ? 2 : 0));
    frame.add(svg_text(x + 24, y, "start", name, 12));
    x += 24 + label_width(name) + 20;
  }
}

}  // namespace

std::string layered_chart(const Chart& chart, const std::vector<Layer>& layers,
                          const std::optional<Shading>& shading) {
  check(!chart.title.empty() && !chart.x.label.empty() && !chart.y.label.empty(),
        "a chart to have a title and labels on its axes");
  PlotRange x_range, y_range;
  std::vector<std::string> colors;
  std::vector<LegendEntry> legend;
  for (const Layer& layer : layers) {
    check(layer.x.size() == layer.y.size(), "as many x as y values in a layer");
    colors.push_back(layer.color.empty() ? std::string(series_color(colors.size())) : layer.color);
    if (!layer.name.empty()) legend.push_back({layer.name, layer.mark, colors.back()});
    for (std::size_t i = 0; i < layer.x.size(); ++i) {
      if (!is_drawable(layer.x[i], chart.x) || !is_drawable(layer.y[i], chart.y)) continue;
      x_range.include(layer.x[i], chart.x);
      y_range.include(layer.y[i], chart.y);
    }
  }
  const int x_ticks = std::clamp(chart.width / 110, 3, 6);
  PlotFrame frame(
      chart, x_range.scale(chart.x, x_ticks),
      y_range.scale(chart.y, std::clamp(chart.height / 60, 3, 6)), {},
      {.top = legend.empty() ? 0.0 : 20.0, .right = shading ? color_bar_width(*shading) - 12 : 0});
  if (x_range.is_empty()) frame.add_notice("no data");
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (is_line(layers[i].mark))
      add_line(frame, chart, layers[i], colors[i]);
    else
      add_points(frame, chart, layers[i], colors[i], shading);
  add_legend(frame, legend);
  if (shading) frame.add(color_bar(*shading, frame.right(), frame.top(), frame.bottom()));
  return frame.str();
}

}  // namespace lathe::report
