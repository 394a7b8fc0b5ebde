#pragma once

#include <string>
#include <string_view>

#include "lathe/core/graph.h"
#include "lathe/report/module_groups.h"

namespace lathe::report {

inline constexpr std::size_t kLongestLabel = 48;  ///< wider boxes push everything else apart

/// Text for a Graphviz label, from any source: on one line, shortened and escaped.
std::string label_text(std::string_view text, std::size_t limit = kLongestLabel);

/// "B × L × 128", with the storage or number format in front when it is not plain f32.
std::string shape_text(const Type& type);

/// A box's content: a bold first line and a smaller one below. Both are label text already.
std::string two_line_label(std::string_view heading, std::string_view line);

/// An edge's label, kept off the line to its left, with the cells of badges behind it.
std::string edge_label(std::string_view text, std::string_view badges = {});

/// A cell with a frame and colours of its own: the format that a quantizer rounds to.
inline constexpr std::string_view kBadgeOutline = "#b8860b";
std::string badge_cell(std::string_view format);

/// Whether a node is a state that its readers can list among their parameters.
bool is_listed_in_readers(const Graph& graph, NodeId id);

/// The content of a node's box: the op, the name within `group`, the attributes, and, if
/// `list_states`, the parameters it reads and the states it updates.
std::string node_label(const Graph& graph, NodeId id, const ModuleGroup& group, bool list_states);

}  // namespace lathe::report
