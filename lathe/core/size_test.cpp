#include "lathe/core/size.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "lathe/core/testing/error_text.h"

namespace lathe {
namespace {

Size parsed(std::string_view text) {
  return Size::parse(text).value();
}

TEST(Size, JoinsLikeTermsAndDropsZeroTerms) {
  EXPECT_EQ(parsed("T+T+1+2").text(), "2*T+3");
  EXPECT_EQ(parsed("B*L-L*B").text(), "0");
  EXPECT_EQ(parsed("L*B+B*L").text(), "2*B*L");
  EXPECT_EQ(parsed("0*B+7").text(), "7");
  EXPECT_EQ(parsed("-B+3").text(), "-B+3");
}

TEST(Size, IsEqualExactlyWhenItIsTheSamePolynomial) {
  EXPECT_EQ(parsed("B") * (parsed("L") + 1), parsed("B*L+B"));
  EXPECT_EQ(parsed("T") - parsed("T"), Size(0));
  EXPECT_EQ(Size(), Size(0));
  EXPECT_NE(parsed("B"), parsed("L"));
}

TEST(Size, AddsAndMultipliesWithItself) {
  Size size = parsed("B+1");
  size += size;
  EXPECT_EQ(size.text(), "2*B+2");
  size *= size;
  EXPECT_EQ(size.text(), "4*B*B+8*B+4");
  const Size& same = size;  // a compiler takes `size -= size` for a slip
  size -= same;
  EXPECT_EQ(size.text(), "0");
}

TEST(Size, ReadsNothingThatIsNoSize) {
  for (const char* text : {"", "+", "B+", "B**L", "2B", "B L", "-", "--B", "1.5", "B*-1", "$",
                           "9223372036854775808", "9223372036854775807*2"})
    EXPECT_FALSE(Size::parse(text)) << text;
}

TEST(Size, KnowsItsSymbols) {
  const Size size = parsed("2*T*S+L+1");
  EXPECT_EQ(size.symbols(), (std::vector<std::string>{"L", "S", "T"}));
  EXPECT_TRUE(size.depends_on("S"));
  EXPECT_FALSE(size.depends_on("B"));
  EXPECT_FALSE(size.is_constant());
  EXPECT_TRUE((size - size).is_constant());
  EXPECT_EQ(error_text([&] { (void)size.constant(); }), "internal error");
}

TEST(Size, SubstitutesPolynomialsForSymbols) {
  EXPECT_EQ(parsed("B*L+B").substitute("B", parsed("S+1")), parsed("L*S+L+S+1"));
  EXPECT_EQ(parsed("B*B").substitute("B", parsed("L-1")).text(), "L*L-2*L+1");
  EXPECT_EQ(parsed("T").substitute("B", Size(3)).text(), "T");
}

TEST(Size, NamesTheSymbolThatHasNoValue) {
  EXPECT_EQ(parsed("2*B+L").evaluate({{"B", 3}, {"L", 5}}), 11);
  EXPECT_EQ(error_text([] {
              parsed("2*B+L").evaluate({{"B", 3}});
            }),
            "size L+2*B: symbol L has no value");
}

TEST(Size, RefusesNumbersBeyond64Bits) {
  constexpr std::int64_t kHalf = std::int64_t{1} << 62;
  EXPECT_EQ(error_text([&] {
              parsed("B*B").evaluate({{"B", kHalf}});
            }),
            "size 4611686018427387904 * 4611686018427387904 does not fit in 64 bits");
  EXPECT_EQ(error_text([&] { (void)(Size(kHalf) + Size(kHalf)); }),
            "size 4611686018427387904 + 4611686018427387904 does not fit in 64 bits");
}

Size random_size(std::mt19937& random) {
  Size total;
  for (unsigned term = random() % 5; term > 0; --term) {
    Size product(static_cast<std::int64_t>(random() % 19) - 9);
    for (unsigned factor = random() % 4; factor > 0; --factor)
      product *= Size::symbol(std::string(1, "BLST"[random() % 4]));
    total += product;
  }
  return total;
}

TEST(Size, ReadsBackWhatItPrints) {
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    const Size size = random_size(random);
    EXPECT_EQ(Size::parse(size.text()), size) << size.text();
  }
}

TEST(Size, EvaluatesSumsProductsAndSubstitutionsAsNumbersDo) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const Size a = random_size(random), b = random_size(random);
    SymbolValues values;
    for (const char* symbol : {"B", "L", "S", "T"}) values[symbol] = random() % 7;
    const std::int64_t x = a.evaluate(values), y = b.evaluate(values);
    EXPECT_EQ((a + b).evaluate(values), x + y);
    EXPECT_EQ((a - b).evaluate(values), x - y);
    EXPECT_EQ((a * b).evaluate(values), x * y);
    const std::int64_t replaced = a.substitute("B", b).evaluate(values);
    values["B"] = y;
    EXPECT_EQ(a.evaluate(values), replaced);
  }
}

}  // namespace
}  // namespace lathe
