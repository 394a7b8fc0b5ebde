#include "lathe/hardware/external/integer_expression.h"

#include <gtest/gtest.h>

#include "lathe/core/error.h"

namespace lathe::hardware {
namespace {

std::int64_t at(const std::string& text, std::int64_t x) {
  return IntegerExpression(text, {"x"}).evaluate({x});
}

TEST(IntegerExpression, ComputesTheLabsLeakyRelu) {
  const std::string text = "x < 0 ? (x * 17) >> 6 : x";
  EXPECT_EQ(at(text, 5), 5);
  EXPECT_EQ(at(text, -1), -1);  // the shift floors
  EXPECT_EQ(at(text, -8), -3);
}

TEST(IntegerExpression, BindsAsInC) {
  EXPECT_EQ(at("2 + 3 * x", 4), 14);
  EXPECT_EQ(at("10 - 3 - x", 2), 5);
  EXPECT_EQ(at("1 << 2 + x", 1), 8);
  EXPECT_EQ(at("x & 3 == 3", 2), 0);
  EXPECT_EQ(at("x | 1 ^ 3 & 2", 4), 4 | (1 ^ (3 & 2)));
  EXPECT_EQ(at("x > 1 && x < 4 || x == 9", 9), 1);
  EXPECT_EQ(at("x ? 1 : x ? 2 : 3", 0), 3);
  EXPECT_EQ(at("-x * ~x + !x", 5), -5 * ~5);
}

TEST(IntegerExpression, HasFunctionsAndHexadecimalNumbers) {
  EXPECT_EQ(at("min(max(x, -8), 7)", 100), 7);
  EXPECT_EQ(at("abs(x) + parity(x & 0xA8)", -8), 8 + 1);
}

std::string problem(const std::string& text) {
  try {
    IntegerExpression(text, {"x"});
  } catch (const UserError& error) {
    return error.message();
  }
  return "none";
}

TEST(IntegerExpression, NamesTheColumnOfAProblem) {
  EXPECT_EQ(problem("x +"), "\"x +\": column 4: expected a number, a variable or a bracket");
  EXPECT_EQ(problem("(x"), "\"(x\": column 3: expected \")\"");
  EXPECT_EQ(problem("x y"), "\"x y\": column 3: expected an operator");
  EXPECT_EQ(problem("x / 2"), "\"x / 2\": column 3: expected an operator");
  EXPECT_EQ(problem("y"), "unknown variable \"y\"; known: x");
}

}  // namespace
}  // namespace lathe::hardware
