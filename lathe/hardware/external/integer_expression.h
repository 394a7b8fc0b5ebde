#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::hardware {

/// A line of integer arithmetic as C writes it, such as "x < 0 ? (x * 17) >> 6 : x".
///
/// Numbers (10, 0x1F), variables, + - * & | ^ ~ ! << >> < <= > >= == != && || ?:, brackets, and
/// min(a, b), max(a, b), abs(a), parity(a). >> of a negative number floors. Numbers have 64 bits
/// and wrap around. There is no division: hardware has none for free.
class IntegerExpression {
 public:
  /// Fails naming the column where the text is no such line, or uses another variable.
  IntegerExpression(std::string_view text, std::vector<std::string> variables);
  ~IntegerExpression();
  IntegerExpression(const IntegerExpression&) = delete;
  IntegerExpression& operator=(const IntegerExpression&) = delete;

  /// With values in the order of the variables.
  std::int64_t evaluate(const std::vector<std::int64_t>& values) const;

  struct Node;

 private:
  std::unique_ptr<const Node> root_;
};

}  // namespace lathe::hardware
