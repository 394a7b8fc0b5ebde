#include "lathe/core/size.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "lathe/core/error.h"

namespace lathe {
namespace {

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) fail("size {} + {} does not fit in 64 bits", a, b);
  return result;
}

std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) fail("size {} * {} does not fit in 64 bits", a, b);
  return result;
}

bool is_symbol_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_symbol_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// One factor at the front of `text`, removed from it.
std::optional<Size> take_factor(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  if (is_symbol_start(text.front())) {
    std::size_t length = 1;
    while (length < text.size() && is_symbol_part(text[length])) ++length;
    Size size = Size::symbol(std::string(text.substr(0, length)));
    text.remove_prefix(length);
    return size;
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || text.front() == '-') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return Size(number);
}

}  // namespace

Size::Size(std::int64_t constant) {
  add_term({}, constant);
}

Size Size::symbol(std::string name) {
  Size size;
  size.add_term({std::move(name)}, 1);
  return size;
}

std::optional<Size> Size::parse(std::string_view text) {
  Size total;
  bool negative = false;
  if (!text.empty() && text.front() == '-') {
    negative = true;
    text.remove_prefix(1);
  }
  try {
    for (;;) {
      std::optional<Size> product = take_factor(text);
      if (!product) return std::nullopt;
      while (!text.empty() && text.front() == '*') {
        text.remove_prefix(1);
        const std::optional<Size> factor = take_factor(text);
        if (!factor) return std::nullopt;
        *product *= *factor;
      }
      if (negative)
        total -= *product;
      else
        total += *product;
      if (text.empty()) return total;
      if (text.front() != '+' && text.front() != '-') return std::nullopt;
      negative = text.front() == '-';
      text.remove_prefix(1);
    }
  } catch (const UserError&) {  // a coefficient beyond 64 bits is no size either
    return std::nullopt;
  }
}

bool Size::is_constant() const {
  return terms_.empty() || (terms_.size() == 1 && terms_.begin()->first.empty());
}

bool Size::is_monotone() const {
  for (const auto& [monomial, coefficient] : terms_)
    if (!monomial.empty() && coefficient < 0) return false;
  return true;
}

std::int64_t Size::constant() const {
  check(is_constant(), "a size that does not depend on symbols");
  return terms_.empty() ? 0 : terms_.begin()->second;
}

std::int64_t Size::evaluate(const SymbolValues& values) const {
  std::int64_t total = 0;
  for (const auto& [monomial, coefficient] : terms_) {
    std::int64_t product = coefficient;
    for (const std::string& name : monomial) {
      const auto found = values.find(name);
      if (found == values.end()) fail("size {}: symbol {} has no value", text(), name);
      product = checked_multiply(product, found->second);
    }
    total = checked_add(total, product);
  }
  return total;
}

std::vector<std::string> Size::symbols() const {
  std::set<std::string> names;
  for (const auto& [monomial, coefficient] : terms_) names.insert(monomial.begin(), monomial.end());
  return {names.begin(), names.end()};
}

bool Size::depends_on(std::string_view symbol) const {
  for (const auto& [monomial, coefficient] : terms_)
    if (std::find(monomial.begin(), monomial.end(), symbol) != monomial.end()) return true;
  return false;
}

Size Size::substitute(std::string_view symbol, const Size& replacement) const {
  Size result;
  for (const auto& [monomial, coefficient] : terms_) {
    Size product(coefficient);
    for (const std::string& name : monomial)
      product *= name == symbol ? replacement : Size::symbol(name);
    result += product;
  }
  return result;
}

std::string Size::text() const {
  if (terms_.empty()) return "0";
  std::string result;
  // Symbols first, the constant last: "2*T+1".
  for (auto term = terms_.rbegin(); term != terms_.rend(); ++term) {
    const auto& [monomial, coefficient] = *term;
    if (coefficient < 0)
      result += '-';
    else if (!result.empty())
      result += '+';
    const std::uint64_t magnitude = coefficient < 0 ? 0 - static_cast<std::uint64_t>(coefficient)
                                                    : static_cast<std::uint64_t>(coefficient);
    if (monomial.empty()) {
      result += fmt::format("{}", magnitude);
      continue;
    }
    if (magnitude != 1) result += fmt::format("{}*", magnitude);
    result += fmt::format("{}", fmt::join(monomial, "*"));
  }
  return result;
}

void Size::add_term(const Monomial& monomial, std::int64_t coefficient) {
  if (coefficient == 0) return;
  const auto [place, inserted] = terms_.emplace(monomial, coefficient);
  if (inserted) return;
  place->second = checked_add(place->second, coefficient);
  if (place->second == 0) terms_.erase(place);
}

Size& Size::operator+=(const Size& other) {
  if (this == &other) return *this *= Size(2);
  for (const auto& [monomial, coefficient] : other.terms_) add_term(monomial, coefficient);
  return *this;
}

Size& Size::operator-=(const Size& other) {
  return *this += other * Size(-1);
}

Size& Size::operator*=(const Size& other) {
  Size product;
  for (const auto& [left, a] : terms_) {
    for (const auto& [right, b] : other.terms_) {
      Monomial merged;
      std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(merged));
      product.add_term(merged, checked_multiply(a, b));
    }
  }
  return *this = std::move(product);
}

}  // namespace lathe
