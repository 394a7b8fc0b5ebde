#pragma once

#include <string>
#include <string_view>

namespace lathe::report {

/// A drawn graph as one HTML file: it fills the window, is moved by dragging, zoomed by the wheel
/// or by keys, and searched by any text of its boxes. Its script is its own; nothing is loaded.
std::string graph_page(std::string_view title, std::string_view svg);

}  // namespace lathe::report
