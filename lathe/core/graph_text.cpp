#include "lathe/core/graph_text.h"

#include "lathe/core/role.h"
#include "lathe/core/text_scanner.h"

namespace lathe {
namespace {

constexpr int kVersion = 2;
constexpr int kVersionWithoutRoles = 1;

std::string value_text(const Graph& graph, Value value) {
  if (value.is_none()) return "none";
  std::string text = name_text(graph.name(value.node));
  if (graph.types(value.node).size() != 1) text += fmt::format("#{}", value.index);
  return text;
}

/// Builds a graph line by line.
class GraphParser {
 public:
  void line(std::string_view text) {
    TextScanner scanner(text);
    if (scanner.at_end()) return;
    const std::string word = scanner.name();
    // "output = relu(x)" is a node named output: what follows the word decides.
    const bool is_node = scanner.next_is("=");
    if (is_node)
      node(word, scanner);
    else if (word == "lathe-ir")
      version(scanner);
    else if (word == "symbols")
      symbols(scanner);
    else if (word == "output")
      output(scanner);
    else if (word == "state")
      state_update(scanner);
    else
      fail("expected \"=\" after \"{}\"", word);
    if (!scanner.at_end()) fail("unexpected \"{}\"", scanner.rest());
    is_first_ = false;
  }

  Graph take() {
    if (!has_roles_) complete_roles(graph_);
    return std::move(graph_);
  }

 private:
  void version(TextScanner& scanner) {
    const std::int64_t version = scanner.integer();
    if (!is_first_) fail("lathe-ir must be the first line");
    if (version != kVersion && version != kVersionWithoutRoles)
      fail("lathe-ir {} cannot be read: this program reads versions {} and {}", version,
           kVersionWithoutRoles, kVersion);
    has_roles_ = version == kVersion;
  }

  void symbols(TextScanner& scanner) {
    do {
      graph_.declare_symbol(scanner.name());
    } while (scanner.take(","));
    symbols_are_declared_ = true;
  }

  Value value(TextScanner& scanner) {
    const bool is_quoted = scanner.next_is("\"");
    const std::string name = scanner.name();
    if (!is_quoted && name == "none") return kNone;
    Value value{graph_.at(name), 0};
    const std::int64_t index = scanner.take("#") ? scanner.integer() : 0;
    if (index < 0 || index >= static_cast<std::int64_t>(graph_.types(value.node).size()))
      fail("node \"{}\" has no result {}", name, index);
    value.index = static_cast<std::int32_t>(index);
    return value;
  }

  void node(const std::string& name, TextScanner& scanner) {
    scanner.expect("=");
    NodeSpec spec{.name = name, .op = scanner.name(), .inputs = {}};
    if (graph_.find(name)) fail("node \"{}\" is defined twice", name);
    scanner.expect("(");
    while (!scanner.take(")")) {
      spec.inputs.push_back(value(scanner));
      if (!scanner.next_is(")")) scanner.expect(",");
    }
    spec.attributes = scanner.attributes();
    if (scanner.take(":")) {
      do {
        spec.types.push_back(scanner.type());
        check_symbols(spec.types.back());
      } while (scanner.take(","));
    }
    graph_.add(std::move(spec));
  }

  void check_symbols(const Type& type) {
    if (!symbols_are_declared_) return;
    for (const Size& size : type.shape)
      for (const std::string& symbol : size.symbols())
        if (!graph_.symbols().contains(symbol)) fail("symbol {} is not declared", symbol);
  }

  void output(TextScanner& scanner) {
    const std::string name = scanner.name();
    scanner.expect("<-");
    if (graph_.output(name)) fail("output \"{}\" is defined twice", name);
    const Value result = value(scanner);
    if (result.is_none()) fail("output \"{}\" needs a value, not none", name);
    graph_.set_output(name, result);
  }

  void state_update(TextScanner& scanner) {
    const NodeId state = graph_.at(scanner.name());
    scanner.expect("<-");
    const Value result = value(scanner);
    if (result.is_none()) fail("state \"{}\" needs a value, not none", graph_.name(state));
    graph_.bind_state(state, result);
  }

  Graph graph_;
  bool is_first_ = true;
  bool symbols_are_declared_ = false;
  bool has_roles_ = false;
};

}  // namespace

std::string print(const Graph& graph, NodeId id) {
  std::string line = name_text(graph.name(id)) + " = " + graph.op(id).name + '(';
  const std::vector<Value>& inputs = graph.inputs(id);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    line += (i == 0 ? "" : ", ") + value_text(graph, inputs[i]);
  line += ')';
  if (!graph.attributes(id).empty()) line += ' ' + to_text(graph.attributes(id));
  const std::vector<Type>& types = graph.types(id);
  for (std::size_t i = 0; i < types.size(); ++i)
    line += (i == 0 ? " : " : ", ") + to_text(types[i]);
  return line;
}

std::string print(const Graph& graph, std::string_view node_name) {
  return print(graph, graph.at(node_name));
}

std::string print(const Graph& graph) {
  std::string text = fmt::format("lathe-ir {}\n", kVersion);
  if (!graph.symbols().empty())
    text += fmt::format("symbols {}\n", fmt::join(graph.symbols(), ", "));
  for (const NodeId id : graph.topological_order()) text += print(graph, id) + '\n';
  for (const auto& [name, value] : graph.outputs())
    text += fmt::format("output {} <- {}\n", name_text(name), value_text(graph, value));
  for (const auto& [state, value] : graph.state_updates())
    text += fmt::format("state {} <- {}\n", name_text(graph.name(state)), value_text(graph, value));
  return text;
}

Graph parse_graph(std::string_view text) {
  GraphParser parser;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    ++number;
    with_place(fmt::format("line {}", number), [&] { parser.line(text.substr(0, end)); });
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parser.take();
}

Type parse_type(std::string_view text) {
  TextScanner scanner(text);
  Type type = scanner.type();
  if (!scanner.at_end()) fail("unexpected \"{}\" after a type", scanner.rest());
  return type;
}

Attributes parse_attributes(std::string_view text) {
  TextScanner scanner(text);
  Attributes attributes = scanner.next_is("{") ? scanner.attributes() : scanner.assignments();
  if (!scanner.at_end()) fail("unexpected \"{}\" after attributes", scanner.rest());
  return attributes;
}

}  // namespace lathe
