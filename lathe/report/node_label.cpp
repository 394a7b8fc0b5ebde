#include "lathe/report/node_label.h"

#include <fmt/format.h>

#include "lathe/report/folded_quantizers.h"
#include "lathe/report/markup.h"

namespace lathe::report {
namespace {

constexpr std::string_view kNameColor = "#303030";
constexpr std::string_view kAttributeColor = "#707070";
constexpr std::string_view kStateColor = "#44566c";
constexpr std::string_view kRoundedColor = "#7a5900";  // as on badges
constexpr std::size_t kLongestStateName = 32;

// Rows of a table, because plain line breaks leave no room for underscores.
std::string row(std::string_view text, int points, std::string_view color) {
  return fmt::format("<tr><td><font point-size=\"{}\" color=\"{}\">{}</font></td></tr>", points,
                     color, text);
}

std::string table(std::string_view heading, std::string_view rows) {
  return fmt::format(
      "<table border=\"0\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"1\">"
      "<tr><td><b>{}</b></td></tr>{}</table>",
      heading, rows);
}

// What is written on the node. `site` numbers the random streams of a graph: it differs in every
// node, says nothing about any of them, and would make all layers look different.
std::string attribute_line(const Graph& graph, NodeId id) {
  if (graph.is(id, "state")) return label_text(shape_text(graph.types(id)[0]));
  std::string line;
  for (const auto& [attribute_name, value] : graph.attributes(id))
    if (attribute_name != "site")
      line += fmt::format("{}{} {}", line.empty() ? "" : ", ", attribute_name, to_text(value));
  return label_text(line);
}

// "int:4,channel, masked", or nothing for a plain parameter.
std::string rounding_text(const FoldedParameter& parameter) {
  return parameter.format + (!parameter.is_masked       ? ""
                             : parameter.format.empty() ? "masked"
                                                        : ", masked");
}

// "weight int:4,channel" for each parameter that is rounded or masked: a line each, as they are
// what such a picture is looked at for.
std::string rounded_rows(const Graph& graph, NodeId id, const ModuleGroup& group) {
  const std::string own = graph.name(id) + ".";
  std::string rows;
  for (const Value& input : graph.inputs(id)) {
    const std::optional<FoldedParameter> parameter = folded_parameter(graph, input);
    if (!parameter) continue;
    std::string_view name = parameter->name;
    if (name.starts_with(own))
      name.remove_prefix(own.size());
    else if (name.starts_with(group.path))
      name.remove_prefix(group.path.size());
    rows +=
        row(label_text(fmt::format("{} {}, {}", shorten(printable_line(name), kLongestStateName),
                                   shape_text(graph.type(input)), rounding_text(*parameter)),
                       2 * kLongestLabel),
            9, kRoundedColor);
  }
  return rows;
}

// "weight 128 × 128, bias 128", and the states this node's result is kept in.
std::string state_line(const Graph& graph, NodeId id, const ModuleGroup& group) {
  const std::string own = graph.name(id) + ".";
  const auto short_name = [&](NodeId state) {
    const std::string& full = graph.name(state);
    std::size_t known = 0;
    if (full.starts_with(group.path)) known = group.path.size();
    if (full.starts_with(own)) known = own.size();
    return shorten(printable_line(std::string_view(full).substr(known)), kLongestStateName);
  };
  std::string line;
  for (const Value& input : graph.inputs(id)) {
    if (input.is_none() || !is_listed_in_readers(graph, input.node)) continue;
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", short_name(input.node),
                        shape_text(graph.type(input)));
  }
  for (const Use& use : graph.uses(id))
    if (use.kind == Use::Kind::StateUpdate)
      line += fmt::format("{}updates {}", line.empty() ? "" : ", ", short_name(use.user));
  return label_text(line, 2 * kLongestLabel);
}

}  // namespace

std::string label_text(std::string_view text, std::size_t limit) {
  return escape_markup(shorten(printable_line(text), limit));
}

std::string shape_text(const Type& type) {
  std::string text = type.shape.empty() ? "scalar" : "";
  for (const Size& size : type.shape) text += (text.empty() ? "" : " × ") + size.text();
  return type.dtype == DType::F32 ? text : fmt::format("{} {}", name(type.dtype), text);
}

std::string two_line_label(std::string_view heading, std::string_view line) {
  return table(heading, row(line, 10, kAttributeColor));
}

// Padding by an empty cell: librsvg drops blanks at the start of a text, even hard ones.
std::string edge_label(std::string_view text, std::string_view badges) {
  return fmt::format(
      "<table border=\"0\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"0\">"
      "<tr><td width=\"5\"></td>{}{}</tr></table>",
      text.empty() ? "" : fmt::format("<td>{}</td>", text),
      badges.empty() || text.empty() ? std::string(badges)
                                     : fmt::format("<td width=\"4\"></td>{}", badges));
}

std::string badge_cell(std::string_view format) {
  return fmt::format(
      "<td bgcolor=\"#fff3c9\" border=\"1\" color=\"{0}\" style=\"rounded\" cellpadding=\"2\">"
      "<font color=\"#7a5900\">{1}</font></td>",
      kBadgeOutline, format);
}

bool is_listed_in_readers(const Graph& graph, NodeId id) {
  if (!graph.is(id, "state")) return false;
  for (const Use& use : graph.uses(id))
    if (use.kind != Use::Kind::Operand) return false;  // an output that is a state
  return true;
}

std::string node_label(const Graph& graph, NodeId id, const ModuleGroup& group, bool list_states) {
  std::string rows = row(label_text(group.short_name(graph.name(id))), 10, kNameColor);
  if (const std::string line = attribute_line(graph, id); !line.empty())
    rows += row(line, 9, kAttributeColor);
  if (list_states) {
    rows += rounded_rows(graph, id, group);
    if (const std::string line = state_line(graph, id, group); !line.empty())
      rows += row(line, 9, kStateColor);
  }
  return table(label_text(graph.op(id).name), rows);
}

}  // namespace lathe::report
