#include "lathe/report/svg_elements.h"

#include <fmt/format.h>

#include <algorithm>

#include "lathe/report/markup.h"

namespace lathe::report {
namespace {

constexpr double kCharacterWidth = 6.6;  // of 12 px sans-serif

}  // namespace

std::string pixel(double value) {
  const std::string text = fmt::format("{:.2f}", value);
  return text == "-0.00" ? "0.00" : text;
}

std::string svg_text(double x, double y, std::string_view anchor, std::string_view text, int size,
                     std::string_view more) {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" font-size=\"{}\"{}>{}</text>\n",
                     pixel(x), pixel(y), anchor, size, more, escape_markup(text));
}

std::string svg_line(double x1, double y1, double x2, double y2, std::string_view color) {
  return fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\"/>\n", pixel(x1),
                     pixel(y1), pixel(x2), pixel(y2), color);
}

std::string svg_rectangle(double x, double y, double width, double height, std::string_view color,
                          std::string_view tooltip) {
  const std::string start =
      fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"", pixel(x),
                  pixel(y), pixel(width), pixel(height), color);
  return tooltip.empty()
             ? start + "/>\n"
             : fmt::format("{}><title>{}</title></rect>\n", start, escape_markup(tooltip));
}

// A picture that is opened by itself is no wider than its window; within a page :root is the page.
std::string svg_document(int width, int height, std::string_view title, std::string_view body) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"{2}\" "
      "font-family=\"Helvetica, Arial, sans-serif\" fill=\"{3}\">\n"
      "<style>:root {{ max-width: 100%; height: auto }}</style>"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n{4}</svg>\n",
      width, height, escape_markup(printable_line(title)), kInk, body);
}

std::string label_line(std::string_view text, std::size_t limit) {
  return shorten(printable_line(text), limit);
}

double label_width(std::string_view text) {
  return kCharacterWidth * static_cast<double>(num_characters(text));
}

std::size_t label_limit(double width) {
  return static_cast<std::size_t>(std::max(3.0, width / kCharacterWidth));
}

}  // namespace lathe::report
