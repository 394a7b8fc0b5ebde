#include "lathe/report/graph_drawing.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "lathe/report/folded_quantizers.h"
#include "lathe/report/module_groups.h"
#include "lathe/report/node_label.h"
#include "lathe/report/op_category.h"

namespace lathe::report {
namespace {

constexpr std::string_view kHighlight = "#d1495b";
// An input that many nodes read (a mask read by every layer) is drawn again at each of them:
// edges across the whole picture hide what they cross.
constexpr std::size_t kMostEdgesOfAnInput = 3;

// A name as a quoted DOT identifier, which is also what a browser shows when the mouse rests on the
// node. Only the colon makes an identifier ours, so no node's name can collide with one.
std::string identifier(std::string_view node_name, NodeId id) {
  std::string safe;
  for (const char c : node_name.substr(0, 200)) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/' || c == '-';
    safe += is_plain ? c : '_';
  }
  return safe == node_name ? safe : fmt::format("{}:{}", id.index, safe);
}

class Drawing {
 public:
  Drawing(const Graph& graph, const DrawOptions& options) : graph_(graph), options_(options) {
    for (const std::string& highlight : options.highlights)
      with_place("highlight", [&] { return graph.at(highlight); });
    choose_nodes();
    groups_ = group_by_module(names_, options.cluster_depth);
    make_labels(groups_);
  }

  std::string text() {
    out_ =
        "digraph model {\n"
        "  graph [rankdir=TB, ranksep=0.3, nodesep=0.25, pad=0.2, "
        "fontname=\"Helvetica,Arial,sans-serif\", "
        "charset=\"UTF-8\"]\n"
        "  node [fontname=\"Helvetica,Arial,sans-serif\", fontsize=12, shape=box, "
        "style=\"rounded,filled\", "
        "margin=\"0.08,0.05\", height=0.3, width=0.6]\n"
        "  edge [fontname=\"Helvetica,Arial,sans-serif\", fontsize=9, fontcolor=\"#707070\", "
        "color=\"#8a8a8a\", "
        "arrowsize=0.6]\n";
    if (!options_.title.empty())
      out_ += fmt::format("  labelloc=t\n  fontsize=16\n  label=<<b>{}</b>>\n",
                          label_text(options_.title, 120));
    write_group(groups_, 1);
    for (const auto& [output_name, value] : graph_.outputs())
      out_ += fmt::format(
          "  \"{}\" [label=<<b>{}</b>>, shape=oval, style=filled, "
          "fillcolor=\"#ffffff\", color=\"#7a7a7a\"]\n",
          output_identifier(output_name), label_text(output_name));
    write_edges();
    return out_ + "}\n";
  }

 private:
  // A drawn node: `box` is the identifier of what stands for it in the picture.
  struct Drawn {
    NodeId id;
    std::string label;
    std::string box;
    bool is_repeated = false;  ///< drawn at each reader instead
  };

  void choose_nodes() {
    for (const NodeId id : graph_.topological_order()) {
      if (!options_.show_states && is_listed_in_readers(graph_, id)) continue;
      if (is_folded(id)) continue;
      index_of_[id] = drawn_.size();
      names_.push_back(graph_.name(id));
      drawn_.push_back(
          {.id = id,
           .label = {},
           .box = identifier(graph_.name(id), id),
           .is_repeated = graph_.is(id, "input") && graph_.users(id).size() > kMostEdgesOfAnInput});
    }
  }

  // Whoever asks for states wants to see all there is.
  bool is_folded(NodeId id) const {
    return !options_.show_states && !options_.highlights.contains(graph_.name(id)) &&
           is_folded_quantizer(graph_, id);
  }

  void make_labels(const ModuleGroup& group) {
    for (const std::size_t index : group.members) {
      Drawn& drawn = drawn_[index];
      drawn.label = label(drawn.id, group);
    }
    for (const ModuleGroup& inner : group.groups) make_labels(inner);
  }

  std::string label(NodeId id, const ModuleGroup& group) const {
    if (graph_.is(id, "input"))
      return fmt::format("<b>{}</b>", label_text(group.short_name(graph_.name(id))));
    return node_label(graph_, id, group, !options_.show_states);
  }

  // What a reader sees of a group, to tell whether two look the same.
  std::string appearance(const ModuleGroup& group) const {
    std::string text;
    for (const std::size_t index : group.members) {
      text += drawn_[index].label;
      for (const Type& type : graph_.types(drawn_[index].id)) text += "|" + shape_text(type);
      text += options_.highlights.contains(graph_.name(drawn_[index].id)) ? "!\n" : "\n";
    }
    for (const ModuleGroup& inner : group.groups)
      text += fmt::format("{{{}:{}}}", inner.title, appearance(inner));
    return text;
  }

  void write_group(const ModuleGroup& group, int depth) {
    for (const std::size_t index : group.members) write_node(drawn_[index], depth);
    for (std::size_t i = 0; i < group.groups.size();) {
      const std::size_t end = end_of_repeats(group, i);
      write_cluster(group.groups[i], depth);
      if (end - i > 1) write_folded(group, i + 1, end, depth);
      i = end;
    }
  }

  // One past the last group that looks like group `first`; first + 1 where nothing is to be folded.
  std::size_t end_of_repeats(const ModuleGroup& group, std::size_t first) const {
    const auto stem = [](const ModuleGroup& numbered) {
      const std::size_t before = numbered.path.find_last_of("./", numbered.path.size() - 2);
      return numbered.path.substr(0, before == std::string::npos ? 0 : before);
    };
    const ModuleGroup& model = group.groups[first];
    const char last = model.path[model.path.size() - 2];
    if (options_.fold_repeats_above <= 0 || last < '0' || last > '9') return first + 1;
    const std::string look = appearance(model);
    std::size_t end = first + 1;
    while (end < group.groups.size() && stem(group.groups[end]) == stem(model) &&
           appearance(group.groups[end]) == look)
      ++end;
    return end - first > static_cast<std::size_t>(options_.fold_repeats_above) ? end : first + 1;
  }

  void write_cluster(const ModuleGroup& group, int depth) {
    const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
    out_ += fmt::format(
        "{0}subgraph cluster_{1} {{\n"
        "{0}  label=<<b>{2}</b>>; labeljust=l; fontsize=11; fontcolor=\"#555555\"; margin=10; "
        "style=\"rounded,filled\"; fillcolor=\"{3}\"; color=\"#c9ced6\"\n",
        indent, num_clusters_++, label_text(group.title), depth % 2 == 1 ? "#f7f8fa" : "#eef0f4");
    write_group(group, depth + 1);
    out_ += indent + "}\n";
  }

  void write_folded(const ModuleGroup& group, std::size_t begin, std::size_t end, int depth) {
    const std::string box = fmt::format("folded:{}", num_clusters_++);
    for (std::size_t i = begin; i < end; ++i) redirect(group.groups[i], box);
    const std::string titles = end - begin == 1 ? group.groups[begin].title
                                                : fmt::format("{} to {}", group.groups[begin].title,
                                                              group.groups[end - 1].title);
    out_ += fmt::format(
        "{}\"{}\" [label=<{}>, style=\"rounded,filled,dashed\", fillcolor=\"#eef0f4\", "
        "color=\"#8a93a3\", margin=\"0.3,0.2\", peripheries=2]\n",
        std::string(static_cast<std::size_t>(2 * depth), ' '), box,
        two_line_label(label_text(titles, 80),
                       fmt::format("{} more like {}", end - begin,
                                   label_text(group.groups[begin - 1].title))));
  }

  void redirect(const ModuleGroup& group, const std::string& box) {
    for (const std::size_t index : group.members) drawn_[index].box = box;
    for (const ModuleGroup& inner : group.groups) redirect(inner, box);
  }

  void write_node(const Drawn& drawn, int depth) {
    if (drawn.is_repeated) return;
    out_ += fmt::format("{}\"{}\" [label=<{}>, {}]\n",
                        std::string(static_cast<std::size_t>(2 * depth), ' '), drawn.box,
                        drawn.label, look(drawn.id));
  }

  std::string look(NodeId id) const {
    const BoxColors box = colors(category(graph_.op(id)));
    std::string text;
    if (graph_.is(id, "input")) text = "shape=oval, style=filled, ";
    if (graph_.is(id, "state")) text = "shape=cylinder, style=filled, ";
    if (options_.highlights.contains(graph_.name(id)))
      return text + fmt::format("fillcolor=\"{}\", color=\"{}\", penwidth=3", box.fill, kHighlight);
    return text + fmt::format("fillcolor=\"{}\", color=\"{}\"", box.fill, box.outline);
  }

  std::string output_identifier(std::string_view output_name) const {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i)
      if (graph_.outputs()[i].first == output_name) return fmt::format("output:{}", i);
    return "output:";
  }

  void write_edges() {
    for (const Drawn& reader : drawn_)
      for (const Value& value : graph_.inputs(reader.id))
        if (!value.is_none()) write_edge(value, reader.box);
    for (const auto& [output_name, value] : graph_.outputs())
      write_edge(value, output_identifier(output_name));
    if (!options_.show_states) return;
    for (const auto& [state, value] : graph_.state_updates())
      write_edge(value, drawn_[index_of_.at(state)].box, ", style=dashed, constraint=false");
  }

  void write_edge(const Value& read, const std::string& to, std::string_view style = {}) {
    // Quantizers are badges on the edge, unless they are drawn.
    const UnroundedValue unrounded =
        is_folded(read.node) ? before_rounding(graph_, read) : UnroundedValue{.value = read};
    const Value& value = unrounded.value;
    const auto found = index_of_.find(value.node);
    if (found == index_of_.end()) return;  // listed in its reader
    const Drawn& source = drawn_[found->second];
    if (source.box == to) return;  // inside one folded box
    std::string from = source.box;
    if (source.is_repeated) {
      from = fmt::format("{}:{}", num_repeated_, source.box);
      if (!edges_.insert({source.box, to, shape_text(graph_.type(value))}).second) return;
      ++num_repeated_;
      out_ += fmt::format(
          "  \"{}\" [label=<<font point-size=\"10\">{}</font>>, shape=oval, "
          "style=\"filled,dashed\", fillcolor=\"#ffffff\", color=\"#a0a0a0\", "
          "height=0.25, margin=\"0.04,0.02\"]\n",
          from, source.label);
    }
    const std::string shape =
        options_.show_shapes ? label_text(shape_text(graph_.type(value))) : "";
    std::string badges;
    for (const std::string& format : unrounded.formats) badges += badge_cell(label_text(format));
    // Folding makes one edge of many; two results read by one node stay two.
    if (!edges_.insert({from, to, fmt::format("{}#{}{}{}", value.index, shape, badges, style)})
             .second)
      return;
    const bool has_label = !shape.empty() || !badges.empty();
    out_ += fmt::format("  \"{}\" -> \"{}\" [{}{}{}]\n", from, to,
                        has_label ? "label=<" + edge_label(shape, badges) + ">" : "weight=1",
                        badges.empty() ? "" : fmt::format(", color=\"{}\"", kBadgeOutline), style);
  }

  const Graph& graph_;
  const DrawOptions& options_;
  std::vector<Drawn> drawn_;
  std::vector<std::string> names_;
  std::map<NodeId, std::size_t> index_of_;
  ModuleGroup groups_;
  std::set<std::vector<std::string>> edges_;
  int num_clusters_ = 0;
  int num_repeated_ = 0;
  std::string out_;
};

}  // namespace

std::string to_dot(const Graph& graph, const DrawOptions& options) {
  return Drawing(graph, options).text();
}

}  // namespace lathe::report
