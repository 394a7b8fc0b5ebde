#include <algorithm>
#include <map>
#include <optional>

#include "lathe/core/quote_text.h"
#include "lathe/io/onnx/onnx_op.h"

// Einsum: axes are multiplied where their letters meet, and summed where the result has them not.
// Operands are joined from the left, each pair by one product of matrices: letters of both that
// stay are batches, and letters of both that go are what is summed.
namespace lathe::io::onnx::einsum {
namespace {

// An array and the letter of each of its axes.
struct Lettered {
  Value value;
  std::string letters = {};
};

bool has(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

// Axes that dots stand for are counted from the last: '0' and up.
std::string without_dots(OnnxCall& call, std::string term, std::size_t rank) {
  const std::size_t dots = term.find("...");
  if (dots == std::string::npos) return term;
  std::string digits;
  for (std::size_t i = rank - std::min(rank, term.size() - 3); i-- > 0;)
    digits += static_cast<char>('0' + i);
  if (digits.size() > 10) call.refuse("{} axes where dots stand", digits.size());
  return term.replace(dots, 3, digits);
}

void check_term(OnnxCall& call, const std::string& term) {
  for (std::size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_letter && !(c >= '0' && c <= '9'))
      call.refuse("{} in the equation", quote_text(term.substr(i, 1)));
    if (has(std::string_view(term).substr(i + 1), c))
      call.refuse("{} twice in one term: diagonals are not supported",
                  quote_text(term.substr(i, 1)));
  }
}

// Terms before the arrow, and the one behind it.
struct Equation {
  std::vector<std::string> terms = {};
  std::optional<std::string> result = {};
};

Equation split_equation(OnnxCall& call) {
  std::string text = call.text("equation", "");
  std::erase(text, ' ');
  if (std::ranges::any_of(text, [](char c) { return c >= '0' && c <= '9'; }))
    call.refuse("digits in the equation {}", quote_text(text));
  Equation equation;
  if (const std::size_t arrow = text.find("->"); arrow != std::string::npos) {
    equation.result = text.substr(arrow + 2);
    text.resize(arrow);
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    equation.terms.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (equation.terms.size() != call.num_inputs())
    call.refuse("{} operands, and the equation has {}", call.num_inputs(), equation.terms.size());
  return equation;
}

Lettered summed(OnnxCall& call, Lettered x, std::string_view kept) {
  std::vector<std::int64_t> axes;
  std::string letters;
  for (std::size_t i = 0; i < x.letters.size(); ++i) {
    if (has(kept, x.letters[i]))
      letters += x.letters[i];
    else
      axes.push_back(static_cast<std::int64_t>(i));
  }
  if (axes.empty()) return x;
  return {call.add("sum", {x.value}, {{"axes", axes}, {"keep", false}}, {}, "sum"), letters};
}

Value ordered(OnnxCall& call, const Lettered& x, const std::string& letters) {
  std::vector<std::int64_t> axes;
  for (const char letter : letters)
    axes.push_back(static_cast<std::int64_t>(x.letters.find(letter)));
  return call.transpose(x.value, axes, "order");
}

class Join {
 public:
  Join(OnnxCall& call, const std::map<char, Size>& sizes) : call_(call), sizes_(sizes) {}

  Lettered operator()(Lettered a, Lettered b, const std::string& kept) {
    a = summed(call_, a, kept + b.letters);
    b = summed(call_, b, kept + a.letters);
    std::string batches, rows, inner, columns;
    for (const char letter : a.letters) {
      if (!has(b.letters, letter))
        rows += letter;
      else
        (has(kept, letter) ? batches : inner) += letter;
    }
    for (const char letter : b.letters)
      if (!has(a.letters, letter)) columns += letter;
    const Value left = matrices(ordered(call_, a, batches + rows + inner), batches, rows, inner);
    const Value right =
        matrices(ordered(call_, b, batches + inner + columns), batches, inner, columns);
    const Value product = call_.add("matmul", {left, right}, {}, {}, "product");
    Lettered result{.value = product, .letters = batches + rows + columns};
    result.value = call_.reshape(product, shape_of(result.letters), "spread");
    return result;
  }

 private:
  Shape shape_of(const std::string& letters) const {
    Shape shape;
    for (const char letter : letters) shape.push_back(sizes_.at(letter));
    return shape;
  }
  Size count(const std::string& letters) const {
    Size result = 1;
    for (const char letter : letters) result *= sizes_.at(letter);
    return result;
  }
  Value matrices(Value x, const std::string& batches, const std::string& rows,
                 const std::string& columns) {
    Shape shape = shape_of(batches);
    shape.push_back(count(rows));
    shape.push_back(count(columns));
    return call_.reshape(x, shape, "matrices");
  }

  OnnxCall& call_;
  const std::map<char, Size>& sizes_;
};

[[noreturn]] void refuse_sizes(OnnxCall& call, char letter, const Size& a, const Size& b) {
  const bool is_broadcast = a == Size(1) || b == Size(1);
  call.refuse("sizes {} and {} of {} differ{}", a.text(), b.text(),
              quote_text(letter <= '9' ? "..." : std::string(1, letter)),
              is_broadcast ? ": broadcasting a size of 1 is not supported" : "");
}

void map_einsum(OnnxCall& call) {
  const Equation equation = split_equation(call);
  std::vector<Lettered> operands;
  std::map<char, Size> sizes;
  std::map<char, int> counts;
  std::size_t most_dots = 0;
  for (std::size_t i = 0; i < equation.terms.size(); ++i) {
    const Type type = call.type(i);
    const std::string letters = without_dots(call, equation.terms[i], type.rank());
    check_term(call, letters);
    if (letters.size() != type.rank())
      call.refuse("term {} for {}", quote_text(equation.terms[i]), to_text(type));
    std::size_t dots = 0;
    for (std::size_t axis = 0; axis < letters.size(); ++axis) {
      const char letter = letters[axis];
      if (letter <= '9') ++dots;
      ++counts[letter];
      const auto [found, is_new] = sizes.emplace(letter, type.shape[axis]);
      if (!is_new && found->second != type.shape[axis])
        refuse_sizes(call, letter, found->second, type.shape[axis]);
    }
    most_dots = std::max(most_dots, dots);
    operands.push_back({call.value(i), letters});
  }
  // Without an arrow: what dots stand for, then letters that are there once, by the alphabet.
  std::string result = equation.result.value_or("...");
  if (!equation.result)
    for (const auto& [letter, number] : counts)
      if (number == 1 && letter > '9') result += letter;
  if (most_dots > 0 && result.find("...") == std::string::npos)
    call.refuse("the result has no \"...\", which stands for {} {} of the terms", most_dots,
                most_dots == 1 ? "axis" : "axes");
  result = without_dots(
      call, result, most_dots + result.size() - (result.find("...") == std::string::npos ? 0 : 3));
  check_term(call, result);
  for (const char letter : result)
    if (!sizes.contains(letter))
      call.refuse("{} of the result is in no term", quote_text(std::string(1, letter)));
  Join join(call, sizes);
  Lettered joined = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) {
    std::string kept = result;
    for (std::size_t later = i + 1; later < operands.size(); ++later)
      kept += operands[later].letters;
    joined = join(joined, operands[i], kept);
  }
  call.give(ordered(call, summed(call, joined, result), result));
}

const Register registration{OnnxOp{.name = "Einsum", .map = map_einsum}};

}  // namespace
}  // namespace lathe::io::onnx::einsum
