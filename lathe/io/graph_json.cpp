#include "lathe/io/graph_json.h"

#include <algorithm>
#include <cmath>

#include "lathe/core/graph_text.h"
#include "lathe/core/json_reader.h"
#include "lathe/core/role.h"
#include "lathe/core/text_scanner.h"

namespace lathe::io {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kGraphVersion = 2;
constexpr int kVersionWithoutRoles = 1;

// JSON has no infinities, so reals that are not all finite stand as their text in a one-key object.
ordered_json attribute_json(const Attribute& attribute) {
  const auto is_finite = [](double value) { return std::isfinite(value); };
  if (const auto* real = std::get_if<double>(&attribute); real != nullptr && !is_finite(*real))
    return {{"real", to_text(attribute)}};
  if (const auto* reals = std::get_if<std::vector<double>>(&attribute);
      reals != nullptr && !std::ranges::all_of(*reals, is_finite))
    return {{"real", to_text(attribute)}};
  return std::visit([](const auto& value) { return ordered_json(value); }, attribute);
}

ordered_json value_json(const Graph& graph, Value value) {
  if (value.is_none()) return nullptr;
  return {{"node", graph.name(value.node)}, {"result", value.index}};
}

const json& at(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) fail("\"{}\" is missing", key);
  return *found;
}

std::string text_at(const json& object, const char* key) {
  const json& value = at(object, key);
  if (!value.is_string()) fail("\"{}\": expected a text", key);
  return value.get<std::string>();
}

const json& list_at(const json& object, const char* key) {
  const json& value = at(object, key);
  if (!value.is_array()) fail("\"{}\": expected a list", key);
  return value;
}

Attribute parse_attribute(const std::string& name, const json& value) {
  if (value.is_string()) return value.get<std::string>();
  // The text form's own reader decides the kind of the rest, so both forms agree on every corner.
  return with_place(fmt::format("attribute {}", name), [&] {
    const std::string text = value.is_object() ? text_at(value, "real") : value.dump();
    TextScanner scanner(text);
    Attribute attribute = scanner.attribute();
    if (!scanner.at_end()) fail("unexpected \"{}\"", scanner.rest());
    return attribute;
  });
}

Value parse_value(const Graph& graph, const json& value) {
  if (value.is_null()) return kNone;
  const NodeId node = graph.at(text_at(value, "node"));
  const json& result = at(value, "result");
  if (!result.is_number_integer() || result.get<std::int64_t>() < 0 ||
      result.get<std::int64_t>() >= static_cast<std::int64_t>(graph.types(node).size()))
    fail("node \"{}\" has no result {}", graph.name(node), result.dump());
  return {node, result.get<std::int32_t>()};
}

// A value that must be there: an operand may be missing, an output may not.
Value parse_result(const Graph& graph, const json& value) {
  if (value.is_null()) fail("\"value\" is null: expected a node's result");
  return parse_value(graph, value);
}

NodeSpec parse_node(const Graph& graph, const json& node) {
  NodeSpec spec{.name = text_at(node, "name"), .op = text_at(node, "op"), .inputs = {}};
  if (graph.find(spec.name)) fail("node \"{}\" is defined twice", spec.name);
  return with_place(fmt::format("node \"{}\"", spec.name), [&] {
    for (const json& input : list_at(node, "inputs"))
      spec.inputs.push_back(parse_value(graph, input));
    for (const json& type : list_at(node, "types")) {
      if (!type.is_string()) fail("\"types\": expected texts such as f32[B,4]");
      spec.types.push_back(parse_type(type.get<std::string>()));
    }
    const json& attributes = at(node, "attributes");
    if (!attributes.is_object()) fail("\"attributes\": expected an object");
    for (const auto& [key, value] : attributes.items())
      spec.attributes[key] = parse_attribute(key, value);
    return std::move(spec);
  });
}

}  // namespace

std::string to_json(const Graph& graph) {
  ordered_json result{{"format", "lathe-ir"}, {"version", kGraphVersion}};
  result["symbols"] = graph.symbols();
  result["nodes"] = ordered_json::array();
  for (const NodeId id : graph.topological_order()) {
    ordered_json node{{"name", graph.name(id)}, {"op", graph.op(id).name}};
    node["inputs"] = ordered_json::array();
    for (const Value& value : graph.inputs(id)) node["inputs"].push_back(value_json(graph, value));
    node["attributes"] = ordered_json::object();
    for (const auto& [name, attribute] : graph.attributes(id))
      node["attributes"][name] = attribute_json(attribute);
    node["types"] = ordered_json::array();
    for (const Type& type : graph.types(id)) node["types"].push_back(to_text(type));
    const auto annotations = graph.annotations().describe(id.index);
    for (const auto& [kind, text] : annotations) node["annotations"][kind] = text;
    result["nodes"].push_back(std::move(node));
  }
  result["outputs"] = ordered_json::array();
  for (const auto& [name, value] : graph.outputs())
    result["outputs"].push_back({{"name", name}, {"value", value_json(graph, value)}});
  result["state_updates"] = ordered_json::array();
  for (const auto& [state, value] : graph.state_updates())
    result["state_updates"].push_back(
        {{"state", graph.name(state)}, {"value", value_json(graph, value)}});
  try {
    return result.dump();
  } catch (const json::exception&) {
    fail("a name or text in the graph is not UTF-8, which JSON cannot hold");
  }
}

Graph parse_graph_json(std::string_view text, std::string_view name) {
  const json document = parse_json(text, name);
  return with_place(name, [&] {
    if (text_at(document, "format") != "lathe-ir") fail("\"format\" is not \"lathe-ir\"");
    const bool has_roles = at(document, "version") == kGraphVersion;
    if (!has_roles && at(document, "version") != kVersionWithoutRoles)
      fail("version {} cannot be read: this program reads versions {} and {}",
           at(document, "version").dump(), kVersionWithoutRoles, kGraphVersion);
    Graph graph;
    for (const json& symbol : list_at(document, "symbols")) {
      if (!symbol.is_string()) fail("\"symbols\": expected texts");
      graph.declare_symbol(symbol.get<std::string>());
    }
    for (const json& node : list_at(document, "nodes")) graph.add(parse_node(graph, node));
    for (const json& output : list_at(document, "outputs")) {
      const std::string output_name = text_at(output, "name");
      with_place(fmt::format("output \"{}\"", output_name),
                 [&] { graph.set_output(output_name, parse_result(graph, at(output, "value"))); });
    }
    for (const json& update : list_at(document, "state_updates"))
      graph.bind_state(graph.at(text_at(update, "state")),
                       parse_result(graph, at(update, "value")));
    if (!has_roles) complete_roles(graph);
    verify(graph);
    return graph;
  });
}

}  // namespace lathe::io
