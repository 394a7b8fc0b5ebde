#include "lathe/core/pattern.h"

#include "lathe/core/text_scanner.h"

namespace lathe {

struct Pattern::Term {
  std::string variable;  ///< the name of the value, if it has one
  std::string op;        ///< empty: any value
  bool is_none = false;
  std::vector<std::unique_ptr<Term>> operands;
};

namespace {

using Term = Pattern::Term;

std::unique_ptr<Term> parse_term(TextScanner& scanner) {
  auto term = std::make_unique<Term>();
  std::string word = scanner.name();
  if (word == "_") return term;
  if (word == "none") {
    term->is_none = true;
    return term;
  }
  if (scanner.take("=")) {
    term->variable = word;
    word = scanner.name();
    if (!scanner.next_is("(")) fail("pattern: expected an op after \"{} =\"", term->variable);
  }
  if (!scanner.take("(")) {
    term->variable = word;
    return term;
  }
  OpRegistry::instance().at(word, "op");
  term->op = word;
  while (!scanner.take(")")) {
    term->operands.push_back(parse_term(scanner));
    if (!scanner.next_is(")")) scanner.expect(",");
  }
  return term;
}

// A term and the value it has to match; the matcher keeps a list of those it still has to do.
struct Task {
  const Term* term;
  Value value;
};

bool match_tasks(const Graph& graph, std::vector<Task> tasks, Match& match);

// The operands come before everything that was waiting, so that nodes are found root first.
bool match_operands(const Graph& graph, const Term& term, const std::vector<Value>& values,
                    std::vector<Task> tasks, Match& match) {
  for (std::size_t i = term.operands.size(); i < values.size(); ++i)
    if (!values[i].is_none()) return false;
  for (std::size_t i = term.operands.size(); i-- > 0;)
    tasks.push_back({term.operands[i].get(), i < values.size() ? values[i] : kNone});
  return match_tasks(graph, std::move(tasks), match);
}

// Does the last task, then the rest. Where operands may swap, everything that is still to be
// matched is tried under either order, because a variable bound inside may only fit outside.
bool match_tasks(const Graph& graph, std::vector<Task> tasks, Match& match) {
  if (tasks.empty()) return true;
  const auto [term, value] = tasks.back();
  tasks.pop_back();
  if (term->is_none) return value.is_none() && match_tasks(graph, std::move(tasks), match);
  if (!term->op.empty() && (value.is_none() || value.index != 0 || !graph.is(value.node, term->op)))
    return false;
  if (!term->variable.empty()) {
    const auto [place, is_new] = match.values.emplace(term->variable, value);
    if (!is_new && place->second != value) return false;
  }
  if (term->op.empty()) return match_tasks(graph, std::move(tasks), match);
  match.nodes.push_back(value.node);
  const std::vector<Value>& inputs = graph.inputs(value.node);
  const Match before = match;
  if (match_operands(graph, *term, inputs, tasks, match)) return true;
  match = before;
  if (!graph.op(value.node).is_commutative || inputs.size() != 2) return false;
  return match_operands(graph, *term, {inputs[1], inputs[0]}, std::move(tasks), match);
}

}  // namespace

Value Match::operator[](std::string_view variable) const {
  const auto found = values.find(variable);
  check(found != values.end(), "a variable of the pattern");
  return found->second;
}

Pattern::Pattern(std::string_view text) {
  TextScanner scanner(text);
  root_ = parse_term(scanner);
  check(scanner.at_end() && !root_->op.empty(), "a pattern to be one op with operands");
}
Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

const std::string& Pattern::root_op() const {
  return root_->op;
}

std::optional<Match> Pattern::match(const Graph& graph, Value root) const {
  Match match;
  if (!match_tasks(graph, {{root_.get(), root}}, match)) return std::nullopt;
  return match;
}

int rewrite(Graph& graph, const Pattern& pattern,
            const std::function<std::optional<Value>(Graph&, const Match&)>& replace) {
  int count = 0;
  for (const NodeId id : graph.nodes_of(pattern.root_op())) {
    const Value root{id, 0};
    const std::optional<Match> match = pattern.match(graph, root);
    if (!match) continue;
    const std::optional<Value> replacement = replace(graph, *match);
    if (!replacement || *replacement == root) continue;
    graph.replace_all_uses(root, *replacement);
    ++count;
  }
  return count;
}

}  // namespace lathe
