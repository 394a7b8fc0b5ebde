#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/ops/test_tensors.h"

// The ops that take elements by index, choose between arrays, or count.
namespace lathe::ops {
namespace {

using testing::ElementsAre;

Tensor one_to_six() {
  return f32({2, 3}, {1, 2, 3, 4, 5, 6});
}

TEST(Gather, TakesSlicesInTheShapeOfTheIndices) {
  EXPECT_THAT(result_of("gather(f32[2,3], i64[2]) {axis=1}", {one_to_six(), i64({2}, {-1, 0})}),
              ElementsAre(3, 1, 6, 4));
  EXPECT_EQ(type_of("gather(f32[4,2], i64[B,L])"), "f32[B,L,2]");
}

TEST(GatherElements, TakesEachElementAlongTheAxis) {
  EXPECT_THAT(result_of("gather_elements(f32[2,3], i64[2,2]) {axis=1}",
                        {one_to_six(), i64({2, 2}, {2, 0, 1, -1})}),
              ElementsAre(3, 1, 5, 6));
}

TEST(GatherParts, TakesWhatTuplesName) {
  EXPECT_THAT(
      result_of("gather_parts(f32[2,3], i64[2,2])", {one_to_six(), i64({2, 2}, {1, 0, 0, 2})}),
      ElementsAre(4, 3));
  EXPECT_THAT(result_of("gather_parts(f32[2,3], i64[2,1]) {batch_axes=1}",
                        {one_to_six(), i64({2, 1}, {2, 1})}),
              ElementsAre(3, 5));
}

TEST(ScatterElements, PutsUpdatesWhereIndicesSay) {
  EXPECT_THAT(result_of("scatter_elements(f32[2,3], i64[2,1], f32[2,1]) {axis=1}",
                        {one_to_six(), i64({2, 1}, {2, 0}), f32({2, 1}, {30, 40})}),
              ElementsAre(1, 2, 30, 40, 5, 6));
  EXPECT_THAT(result_of("scatter_parts(f32[2,3], i64[1,1], f32[1,3]) {reduction=\"add\"}",
                        {one_to_six(), i64({1, 1}, {1}), f32({1, 3}, {1, 1, 1})}),
              ElementsAre(1, 2, 3, 5, 6, 7));
}

TEST(Crop, TakesABoxWithSteps) {
  EXPECT_THAT(result_of("crop(f32[2,3]) {begins=[0,-1], steps=[1,-2]} : f32[2,2]", {one_to_six()}),
              ElementsAre(3, 1, 6, 4));
  EXPECT_EQ(type_of("crop(f32[1,9]) {begins=[0,0]} : f32[1,L]"), "f32[1,L]");
}

TEST(Pad, SurroundsAnArray) {
  EXPECT_THAT(result_of("pad(f32[2,3]) {pads=[0,1,0,-2], value=9.0}", {one_to_six()}),
              ElementsAre(9, 1, 9, 4));
  EXPECT_THAT(result_of("pad(f32[3]) {pads=[2,1], mode=\"reflect\"}", {f32({3}, {1, 2, 3})}),
              ElementsAre(3, 2, 1, 2, 3, 2));
  EXPECT_THAT(result_of("pad(f32[3]) {pads=[1,2], mode=\"edge\"}", {f32({3}, {1, 2, 3})}),
              ElementsAre(1, 1, 2, 3, 3, 3));
}

TEST(Where, ChoosesAndBroadcasts) {
  EXPECT_THAT(result_of("where(bool[3], f32[2,3], f32[])",
                        {Tensor::from<bool>({3}, {true, false, true}), one_to_six(), f32({}, {0})}),
              ElementsAre(1, 0, 3, 4, 0, 6));
}

TEST(Comparisons, AreFalseWithNaN) {
  const Tensor a = f32({3}, {1, 2, std::nanf("")});
  const Tensor b = f32({3}, {1, 3, 3});
  EXPECT_THAT(result_of("equal(f32[3], f32[3])", {a, b}), ElementsAre(1, 0, 0));
  EXPECT_THAT(result_of("less(f32[3], f32[3])", {a, b}), ElementsAre(0, 1, 0));
  EXPECT_THAT(result_of("greater_equal(f32[3], f32[3])", {a, b}), ElementsAre(1, 0, 0));
}

TEST(CumulativeSum, CountsFromEitherEnd) {
  EXPECT_THAT(result_of("cumulative_sum(f32[2,3]) {axis=1}", {one_to_six()}),
              ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(
      result_of("cumulative_sum(f32[2,3]) {axis=1, exclusive=true, reverse=true}", {one_to_six()}),
      ElementsAre(5, 3, 0, 11, 6, 0));
}

TEST(TopK, PutsTheFirstOfEqualElementsFirst) {
  const Tensor x = f32({4}, {2, 7, 2, 7});
  EXPECT_THAT(result_of("top_k(f32[4]) {k=3}", {x}), ElementsAre(7, 7, 2));
  EXPECT_THAT(result_of("top_k(f32[4]) {k=2, largest=false}", {x}), ElementsAre(2, 2));
}

TEST(Product, MultipliesOverAxes) {
  EXPECT_THAT(result_of("product(f32[2,3]) {axes=[0]}", {one_to_six()}), ElementsAre(4, 10, 18));
}

TEST(Range, CountsAsFarAsItsType) {
  EXPECT_THAT(result_of("range() {first=3, step=-2} : f32[3]", {}), ElementsAre(3, 1, -1));
}

TEST(Remainders, HaveTheSignOfOneOperand) {
  const Tensor a = f32({2}, {-7, 7}), b = f32({2}, {3, -3});
  EXPECT_THAT(result_of("mod(f32[2], f32[2])", {a, b}), ElementsAre(2, -2));
  EXPECT_THAT(result_of("fmod(f32[2], f32[2])", {a, b}), ElementsAre(-1, 1));
}

TEST(Elements, OfWholeNumbersKeepAllTheirBits) {
  constexpr std::int64_t kLarge = (std::int64_t{1} << 53) + 1;
  const Tensor x = i64({2}, {kLarge, kLarge - 1});
  const auto integers = [](const std::string& call, const std::vector<Tensor>& inputs) {
    return read_integers(evaluate(call, inputs)[0]);
  };
  EXPECT_THAT(integers("pad(i64[2]) {pads=[1,0]}", {x}), ElementsAre(0, kLarge, kLarge - 1));
  EXPECT_THAT(integers("top_k(i64[2]) {k=1}", {x}), ElementsAre(kLarge));
  EXPECT_THAT(integers("cumulative_sum(i64[2])", {x}), ElementsAre(kLarge, 2 * kLarge - 1));
  EXPECT_THAT(integers("sum(i64[2])", {x}), ElementsAre(2 * kLarge - 1));
  EXPECT_THAT(integers("max(i64[2])", {x}), ElementsAre(kLarge));
  EXPECT_THAT(integers("product(i64[2])", {i64({2}, {kLarge, 3})}), ElementsAre(3 * kLarge));
  EXPECT_THAT(integers("scatter_elements(i64[2], i64[1], i64[1])",
                       {x, i64({1}, {1}), i64({1}, {kLarge + 1})}),
              ElementsAre(kLarge, kLarge + 1));
  EXPECT_THAT(integers("cast(i64[2]) : i32[2]", {x}), ElementsAre(1, 0));
  EXPECT_THAT(integers("neg(i64[2])", {x}), ElementsAre(-kLarge, 1 - kLarge));
}

}  // namespace
}  // namespace lathe::ops
