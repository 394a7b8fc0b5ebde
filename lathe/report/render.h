#pragma once

#include <string>
#include <string_view>

namespace lathe::report {

/// Lays out DOT text with Graphviz and returns the picture as SVG.
/// Fails when Graphviz is not installed or refuses the text.
std::string render_svg(std::string_view dot_text);

/// Turns an SVG document into a PNG file's bytes with librsvg's rsvg-convert, `zoom` times its own
/// size. Fails when it is not installed or refuses the document.
std::string svg_to_png(std::string_view svg, double zoom = 2.0);

}  // namespace lathe::report
