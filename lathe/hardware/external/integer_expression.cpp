#include "lathe/hardware/external/integer_expression.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "lathe/core/error.h"

namespace lathe::hardware {

struct IntegerExpression::Node {
  enum class Kind { Number, Variable, Operator };
  Kind kind = Kind::Number;
  std::int64_t number = 0;     // or the variable's place
  std::string operation = {};  // as written
  std::vector<std::unique_ptr<const Node>> operands = {};
};

namespace {

using Node = IntegerExpression::Node;
using NodePointer = std::unique_ptr<const Node>;

// Operators of two operands, those that bind least first.
constexpr std::array<std::array<std::string_view, 4>, 9> kLevels = {{{"||"},
                                                                     {"&&"},
                                                                     {"|"},
                                                                     {"^"},
                                                                     {"&"},
                                                                     {"==", "!="},
                                                                     {"<=", ">=", "<", ">"},
                                                                     {"<<", ">>"},
                                                                     {"+", "-", "*"}}};
constexpr std::size_t kSums = 8;

class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, const std::vector<std::string>& variables)
      : text_(text), variables_(variables) {}

  NodePointer run() {
    NodePointer result = choice();
    skip_blanks();
    if (at_ != text_.size()) problem("an operator");
    return result;
  }

 private:
  [[noreturn]] void problem(std::string_view expected) const {
    fail("\"{}\": column {}: expected {}", text_, at_ + 1, expected);
  }
  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view word) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void require(std::string_view word) {
    if (!take(word)) problem("\"" + std::string(word) + "\"");
  }
  static NodePointer make(std::string_view operation, std::vector<NodePointer> operands) {
    auto node = std::make_unique<Node>();
    node->kind = Node::Kind::Operator;
    node->operation = operation;
    node->operands = std::move(operands);
    return node;
  }
  template <typename... Operands>
  static NodePointer combine(std::string_view operation, Operands... operands) {
    std::vector<NodePointer> list;
    (list.push_back(std::move(operands)), ...);
    return make(operation, std::move(list));
  }

  NodePointer choice() {
    if (++depth_ > 200) fail("\"{}\": too many brackets", text_);
    NodePointer condition = binary(0);
    if (take("?")) {
      NodePointer yes = choice();
      require(":");
      NodePointer no = choice();
      condition = combine("?", std::move(condition), std::move(yes), std::move(no));
    }
    --depth_;
    return condition;
  }

  // The operator of a level that stands here: "<" is none where "<<" or "<=" begins.
  std::string_view operator_of(std::size_t level) {
    skip_blanks();
    const std::string_view rest = text_.substr(at_);
    std::string_view longest;
    std::size_t found = kLevels.size();
    for (std::size_t l = 0; l < kLevels.size(); ++l)
      for (const std::string_view word : kLevels[l])
        if (!word.empty() && rest.starts_with(word) && word.size() > longest.size()) {
          longest = word;
          found = l;
        }
    return found == level ? longest : std::string_view();
  }

  NodePointer binary(std::size_t level) {
    if (level == kSums) return sum();
    NodePointer left = binary(level + 1);
    for (std::string_view word = operator_of(level); !word.empty(); word = operator_of(level)) {
      at_ += word.size();
      left = combine(word, std::move(left), binary(level + 1));
    }
    return left;
  }
  NodePointer sum() {
    NodePointer left = product();
    for (;;) {
      if (take("+"))
        left = combine("+", std::move(left), product());
      else if (take("-"))
        left = combine("-", std::move(left), product());
      else
        return left;
    }
  }
  NodePointer product() {
    NodePointer left = unary();
    while (take("*")) left = combine("*", std::move(left), unary());
    return left;
  }
  NodePointer unary() {
    if (++depth_ > 200) fail("\"{}\": too many operators", text_);
    NodePointer result;
    if (take("-"))
      result = combine("negate", unary());
    else if (take("~"))
      result = combine("~", unary());
    else if (take("!"))
      result = combine("!", unary());
    else
      result = primary();
    --depth_;
    return result;
  }
  NodePointer primary() {
    if (take("(")) {
      NodePointer inside = choice();
      require(")");
      return inside;
    }
    skip_blanks();
    std::size_t end = at_;
    const auto is_word = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    while (end < text_.size() && is_word(text_[end])) ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    if (word.empty()) problem("a number, a variable or a bracket");
    if (word[0] >= '0' && word[0] <= '9') return number(word);
    for (const auto& [name, count] : kFunctions)
      if (word == name) return call(name, count);
    const auto found = std::ranges::find(variables_, word);
    if (found == variables_.end()) throw unknown_name("variable", word, variables_);
    at_ = end;
    auto node = std::make_unique<Node>();
    node->kind = Node::Kind::Variable;
    node->number = found - variables_.begin();
    return node;
  }
  NodePointer number(std::string_view word) {
    const bool is_hex = word.starts_with("0x");
    const char* const begin = word.data() + (is_hex ? 2 : 0);
    auto node = std::make_unique<Node>();
    const auto [end, error] =
        std::from_chars(begin, word.data() + word.size(), node->number, is_hex ? 16 : 10);
    if (error != std::errc{} || end != word.data() + word.size()) problem("a number of 63 bits");
    at_ += word.size();
    return node;
  }
  NodePointer call(std::string_view name, int count) {
    at_ += name.size();
    require("(");
    std::vector<NodePointer> operands;
    for (int i = 0; i < count; ++i) {
      if (i > 0) require(",");
      operands.push_back(choice());
    }
    require(")");
    return make(name, std::move(operands));
  }

  static constexpr std::array<std::pair<std::string_view, int>, 4> kFunctions = {
      {{"min", 2}, {"max", 2}, {"abs", 1}, {"parity", 1}}};
  std::string_view text_;
  const std::vector<std::string>& variables_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

std::int64_t shift_by(std::int64_t value, std::int64_t places, bool is_left) {
  if (places < 0) return shift_by(value, -std::max<std::int64_t>(places, -64), !is_left);
  if (is_left)
    return places > 63 ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << places);
  return value >> std::min<std::int64_t>(places, 63);
}

std::int64_t evaluate_node(const Node& node, const std::vector<std::int64_t>& values) {
  if (node.kind == Node::Kind::Number) return node.number;
  if (node.kind == Node::Kind::Variable) return values.at(static_cast<std::size_t>(node.number));
  const std::string& op = node.operation;
  const auto operand = [&](std::size_t i) { return evaluate_node(*node.operands[i], values); };
  const std::int64_t a = operand(0);
  if (op == "?") return operand(a != 0 ? 1 : 2);
  if (op == "&&") return a != 0 && operand(1) != 0 ? 1 : 0;
  if (op == "||") return a != 0 || operand(1) != 0 ? 1 : 0;
  // Unsigned: what is too large wraps around.
  const auto ua = static_cast<std::uint64_t>(a);
  if (op == "negate") return static_cast<std::int64_t>(-ua);
  if (op == "~") return ~a;
  if (op == "!") return a == 0 ? 1 : 0;
  if (op == "abs") return a < 0 ? static_cast<std::int64_t>(-ua) : a;
  if (op == "parity") return std::popcount(ua) & 1;
  const std::int64_t b = operand(1);
  const auto ub = static_cast<std::uint64_t>(b);
  if (op == "+") return static_cast<std::int64_t>(ua + ub);
  if (op == "-") return static_cast<std::int64_t>(ua - ub);
  if (op == "*") return static_cast<std::int64_t>(ua * ub);
  if (op == "&") return a & b;
  if (op == "|") return a | b;
  if (op == "^") return a ^ b;
  if (op == "<<") return shift_by(a, b, true);
  if (op == ">>") return shift_by(a, b, false);
  if (op == "<") return a < b ? 1 : 0;
  if (op == "<=") return a <= b ? 1 : 0;
  if (op == ">") return a > b ? 1 : 0;
  if (op == ">=") return a >= b ? 1 : 0;
  if (op == "==") return a == b ? 1 : 0;
  if (op == "!=") return a != b ? 1 : 0;
  if (op == "min") return std::min(a, b);
  check(op == "max", "an operator that the parser makes");
  return std::max(a, b);
}

}  // namespace

IntegerExpression::IntegerExpression(std::string_view text, std::vector<std::string> variables)
    : root_(ExpressionParser(text, variables).run()) {}
IntegerExpression::~IntegerExpression() = default;

std::int64_t IntegerExpression::evaluate(const std::vector<std::int64_t>& values) const {
  return evaluate_node(*root_, values);
}

}  // namespace lathe::hardware
