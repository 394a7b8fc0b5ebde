#pragma once

#include <string>
#include <string_view>

namespace lathe::report {

// The elements that all charts are drawn with. Text is escaped here; coordinates are pixels.

inline constexpr std::string_view kInk = "#333333";
inline constexpr std::string_view kGrid = "#e6e6e6";

/// A coordinate with two decimals and no "-0": the same text on every machine.
std::string pixel(double value);

/// A line of text; `anchor` is start, middle or end, `more` further attributes.
std::string svg_text(double x, double y, std::string_view anchor, std::string_view text, int size,
                     std::string_view more = {});
std::string svg_line(double x1, double y1, double x2, double y2, std::string_view color);
/// A rectangle, with a tooltip unless it is empty.
std::string svg_rectangle(double x, double y, double width, double height, std::string_view color,
                          std::string_view tooltip = {});
/// The whole picture around `body`; `title` is for those who cannot see it.
std::string svg_document(int width, int height, std::string_view title, std::string_view body);

/// The text on one line, its middle left out when it has more than `limit` characters.
std::string label_line(std::string_view text, std::size_t limit);
/// About how wide a label of 12 pixels' height is, on the generous side.
double label_width(std::string_view text);
/// How many characters of such a label fit.
std::size_t label_limit(double width);

}  // namespace lathe::report
