#include "lathe/core/type.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"

namespace lathe {
namespace {

TEST(DType, IsReadByTheNameItIsPrintedWith) {
  const std::pair<const char*, std::int64_t> bytes[] = {
      {"f64", 8}, {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"i64", 8},
      {"i32", 4}, {"i16", 2}, {"i8", 1},  {"u8", 1},   {"bool", 1}};
  for (const auto& [text, size] : bytes) {
    const std::optional<DType> dtype = parse_dtype(text);
    ASSERT_TRUE(dtype) << text;
    EXPECT_EQ(name(*dtype), text);
    EXPECT_EQ(size_of(*dtype), size);
    EXPECT_EQ(is_floating(*dtype), std::string_view(text).find('f') != std::string_view::npos);
  }
  EXPECT_FALSE(parse_dtype("f8"));
}

TEST(Type, ReadsBackWhatItPrints) {
  for (const char* text : {"f32[]", "f32[4]", "i64[B,L]", "bf16[2*T+1,128]", "bool[B,1]", "u8[0]"})
    EXPECT_EQ(to_text(parse_type(text)), text);
  EXPECT_EQ(to_text(parse_type(" f32 [ B , 4 ] ")), "f32[B,4]");
}

TEST(Type, SaysWhatIsWrongWithATextThatIsNoType) {
  const auto refusal = [](const char* text) { return error_text([&] { parse_type(text); }); };
  EXPECT_EQ(refusal("float[4]"), "expected a type such as f32[B,128], not \"float[4]\"");
  EXPECT_EQ(refusal("f32"), "expected \"[\" before \"end of line\"");
  EXPECT_EQ(refusal("f32[4,]"), "a shape ends in a comma");
  EXPECT_EQ(refusal("f32[x y]"), "\"x y\" is not a size");
  EXPECT_EQ(refusal("f32[-1]"), "size -1 is negative");
  EXPECT_EQ(refusal("f32<int:8>[4]"), "expected \"[\" before \"<int:8>[4]\"");
  EXPECT_EQ(refusal("f32[4] f32"), "unexpected \"f32\" after a type");
}

TEST(Type, CountsElementsAndBytesAsPolynomials) {
  const Type type = parse_type("f16[B,L+1,4]");
  EXPECT_EQ(type.num_elements().text(), "4*B*L+4*B");
  EXPECT_EQ(type.num_bytes().text(), "8*B*L+8*B");
  EXPECT_EQ(parse_type("f64[]").num_bytes(), Size(8));
}

TEST(Type, CountsNegativeAxesFromTheEnd) {
  const Type type = parse_type("f32[B,4]");
  EXPECT_EQ(type.axis(-1), Size(4));
  EXPECT_EQ(type.axis(0).text(), "B");
  EXPECT_EQ(error_text([&] { type.axis(2); }), "f32[B,4] has no axis 2");
  EXPECT_EQ(error_text([&] { type.axis(-3); }), "f32[B,4] has no axis -3");
}

TEST(Type, RefusesASizeThatIsNegativeForTheValuesGiven) {
  const Type type = parse_type("f32[L-2,4]");
  EXPECT_EQ(type.dims({{"L", 5}}), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(error_text([&] { type.dims({{"L", 1}}); }), "f32[L-2,4]: size L-2 is negative: -1");
  EXPECT_EQ(error_text([&] { type.dims({}); }), "size L-2: symbol L has no value");
}

}  // namespace
}  // namespace lathe
