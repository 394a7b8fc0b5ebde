#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

/// The values of symbols in one run: B = 8, L = 512.
using SymbolValues = std::map<std::string, std::int64_t, std::less<>>;

/// The size of one axis: a polynomial with integer coefficients in declared symbols.
///
/// Kept canonical (like terms joined, zero terms dropped), so two sizes are equal exactly when they
/// are equal for every value of the symbols. `B` counts rows, `L` a padded length, `T` tokens and
/// `S` sequences.
class Size {
 public:
  Size() = default;
  Size(std::int64_t constant);  // NOLINT(google-explicit-constructor): a number is a size
  static Size symbol(std::string name);
  /// Reads "128", "B", "2*T+1"; nullopt when the text is no size.
  static std::optional<Size> parse(std::string_view text);

  bool is_constant() const;
  /// Whether it can only grow when symbols do, so that the largest symbols give the largest size.
  bool is_monotone() const;
  /// The value of a constant size; anything else is an error of the caller.
  std::int64_t constant() const;
  /// The value under `values`; fails naming a symbol that has none, or on overflow.
  std::int64_t evaluate(const SymbolValues& values) const;
  /// The names of the symbols it depends on, sorted.
  std::vector<std::string> symbols() const;
  bool depends_on(std::string_view symbol) const;
  /// The size with every `symbol` replaced.
  Size substitute(std::string_view symbol, const Size& replacement) const;
  std::string text() const;

  Size& operator+=(const Size& other);
  Size& operator-=(const Size& other);
  Size& operator*=(const Size& other);
  friend Size operator+(Size a, const Size& b) { return a += b; }
  friend Size operator-(Size a, const Size& b) { return a -= b; }
  friend Size operator*(Size a, const Size& b) { return a *= b; }
  bool operator==(const Size&) const = default;

 private:
  // A monomial is the sorted list of its symbols, repeated for powers; the empty one is the
  // constant.
  using Monomial = std::vector<std::string>;
  void add_term(const Monomial& monomial, std::int64_t coefficient);
  std::map<Monomial, std::int64_t> terms_;
};

}  // namespace lathe
