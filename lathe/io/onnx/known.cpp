#include "lathe/io/onnx/known.h"

#include <charconv>

#include "lathe/ops/elements.h"

namespace lathe::io::onnx {

// As the text of a size names them.
std::vector<SizeTerm> terms_of(const Size& size) {
  const std::string text = size.text();
  std::vector<SizeTerm> terms;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = text.find_first_of("+-", begin + 1);
    if (end == std::string::npos) end = text.size();
    std::string_view term = std::string_view(text).substr(begin, end - begin);
    begin = end;
    SizeTerm result;
    if (term.front() == '-') result.coefficient = -1;
    if (term.front() == '-' || term.front() == '+') term.remove_prefix(1);
    while (!term.empty()) {
      const std::size_t star = term.find('*');
      const std::string_view factor = term.substr(0, star);
      term.remove_prefix(star == std::string_view::npos ? term.size() : star + 1);
      const std::optional<Size> parsed = Size::parse(factor);
      // The least number of 64 bits has no opposite.
      if (!parsed) fail("a size of {} is too large", text);
      if (parsed->is_constant())
        result.coefficient *= parsed->constant();
      else
        result.symbols *= *parsed;
    }
    terms.push_back(result);
  }
  return terms;
}

bool is_anonymous(const std::string& name) {
  return name.starts_with("onnx::") || name.starts_with("val_") || name.starts_with("/") ||
         name.find("Constant") != std::string::npos;
}

std::optional<Size> exact_quotient(const Size& a, const Size& b) {
  if (a == b && b != Size(0)) return Size(1);
  if (a == Size(0) && b != Size(0)) return a;
  const std::vector<SizeTerm> divisor = terms_of(b);
  if (b == Size(0) || divisor.size() != 1) return std::nullopt;
  Size rest;
  for (const SizeTerm& term : terms_of(a)) {
    if (term.coefficient % divisor[0].coefficient != 0) return std::nullopt;
    rest += Size(term.coefficient / divisor[0].coefficient) * term.symbols;
  }
  // One symbol after the other: what has it in every term once is it times the rest at 1.
  for (const std::string& symbol : divisor[0].symbols.symbols()) {
    const Size without = rest.substitute(symbol, Size(1));
    if (without * Size::symbol(symbol) != rest) return std::nullopt;
    rest = without;
  }
  if (rest * b != a) return std::nullopt;
  return rest;
}

bool is_at_least(const Size& size, std::int64_t least) {
  if (size.is_constant()) return size.constant() >= least;
  // Where nothing is taken away, the smallest is with every symbol 1.
  if (!size.is_monotone()) return false;
  SymbolValues ones;
  for (const std::string& symbol : size.symbols()) ones[symbol] = 1;
  return size.evaluate(ones) >= least;
}

std::optional<SizeArray> size_array(const Tensor& tensor) {
  constexpr std::int64_t kMost = 1024;
  if (is_floating(tensor.dtype()) || tensor.num_elements() > kMost) return std::nullopt;
  SizeArray result{.dtype = tensor.dtype(), .dims = tensor.dims()};
  for (const std::int64_t element : ops::read_integers(tensor))
    result.elements.emplace_back(element);
  return result;
}

std::optional<Tensor> constant_of(const SizeArray& array) {
  for (const Size& element : array.elements)
    if (!element.is_constant()) return std::nullopt;
  Tensor tensor(DType::I64, array.dims);
  const std::span<std::int64_t> elements = tensor.mutable_data<std::int64_t>();
  for (std::size_t i = 0; i < array.elements.size(); ++i)
    elements[i] = array.elements[i].constant();
  return array.dtype == DType::I64 ? tensor : tensor.converted(array.dtype);
}

AffineArray affine_of(const SizeArray& number) {
  check(number.elements.size() == 1, "a single number");
  AffineArray result{.dtype = number.dtype, .offset = number.elements[0]};
  for (std::size_t axis = 0; axis < number.dims.size(); ++axis) {
    result.shape.emplace_back(1);
    result.slopes.emplace_back(0);
  }
  return result;
}

}  // namespace lathe::io::onnx
