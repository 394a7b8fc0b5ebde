#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/ops/test_tensors.h"

// The ops that move elements without computing, the sources of constants, and reductions.
namespace lathe::ops {
namespace {

using testing::ElementsAre;

Tensor one_to_six() {
  return f32({2, 3}, {1, 2, 3, 4, 5, 6});
}

TEST(Reshape, KeepsTheNumberOfElementsForEveryValueOfTheSymbols) {
  EXPECT_THAT(result_of("reshape(f32[2,3]) : f32[3,2]", {one_to_six()}),
              ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(refusal_of("reshape(f32[B,L,8]) : f32[B,8,4]"),
            "node \"y\": cannot reshape f32[B,L,8] to f32[B,8,4]: 8*B*L and 32*B elements differ");
}

TEST(Transpose, PutsAxesInTheOrderGiven) {
  EXPECT_THAT(result_of("transpose(f32[2,3]) {axes=[1,0]}", {one_to_six()}),
              ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_EQ(type_of("transpose(f32[B,L,2,4]) {axes=[0,2,1,3]}"), "f32[B,2,L,4]");
  EXPECT_EQ(refusal_of("transpose(f32[2,3]) {axes=[0,0]}"),
            "node \"y\": transpose: axis 0 of f32[2,3] is used twice");
  EXPECT_EQ(refusal_of("transpose(f32[2,3]) {axes=[0]}"),
            "node \"y\": transpose of f32[2,3] needs 2 axes, not 1");
}

TEST(Slice, CountsNegativeIndicesFromTheEnd) {
  EXPECT_THAT(result_of("slice(f32[2,3]) {axis=1, begin=1}", {one_to_six()}),
              ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(result_of("slice(f32[2,3]) {axis=-1, begin=-2, end=-1}", {one_to_six()}),
              ElementsAre(2, 5));
  EXPECT_EQ(type_of("slice(f32[B,L,4]) {axis=1, begin=1, end=-1}"), "f32[B,L-2,4]");
  EXPECT_EQ(refusal_of("slice(f32[2,3]) {axis=1, end=4}"),
            "node \"y\": slice from 0 to 4 is outside axis 1 of f32[2,3]");
}

TEST(Slice, RefusesALengthThatTurnsOutTooShort) {
  EXPECT_EQ(message_of([] {
              evaluate("slice(f32[L]) {axis=0, end=4}", {f32({3}, {1, 2, 3})});
            }),
            "node \"y\": slice from 0 to 4 is outside axis 0, which has size 3");
  EXPECT_EQ(message_of([] {
              evaluate("slice_gradient(f32[B,4]) {axis=1, end=4} : f32[B,B]",
                       {f32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})});
            }),
            "node \"y\": slice_gradient from 0 to 4 is outside axis 1, which has size 2");
}

TEST(Concat, JoinsAlongAnAxis) {
  EXPECT_THAT(result_of("concat(f32[2,3], f32[2,1]) {axis=1}", {one_to_six(), f32({2, 1}, {7, 8})}),
              ElementsAre(1, 2, 3, 7, 4, 5, 6, 8));
  EXPECT_EQ(refusal_of("concat(f32[2,3], f32[3,3]) {axis=1}"),
            "node \"y\": cannot concatenate f32[2,3] and f32[3,3] along axis 1: sizes 2 and 3 "
            "differ");
}

TEST(Split, GivesAResultForEachSize) {
  const std::vector<Tensor> parts =
      evaluate("split(f32[2,3]) {axis=1, sizes=[1,2]}", {one_to_six()});
  EXPECT_THAT(read_elements(parts[0]), ElementsAre(1, 4));
  EXPECT_THAT(read_elements(parts[1]), ElementsAre(2, 3, 5, 6));
  EXPECT_EQ(refusal_of("split(f32[2,3]) {axis=1, sizes=[1,1]}"),
            "node \"y\": split: sizes [1,1] add up to 2, but axis 1 of f32[2,3] is 3");
}

TEST(Select, DropsTheAxis) {
  EXPECT_THAT(result_of("select(f32[2,3]) {axis=1, index=-1}", {one_to_six()}), ElementsAre(3, 6));
  EXPECT_EQ(refusal_of("select(f32[2,3]) {axis=1, index=3}"),
            "node \"y\": select: axis 1 of f32[2,3] has no index 3");
}

TEST(SelectInSequence, CountsNegativeIndicesFromTheEndOfEachSequence) {
  const std::vector<Tensor> inputs = {f32({5}, {1, 2, 3, 4, 5}), i32({3}, {0, 2, 5})};
  EXPECT_THAT(result_of("select_in_sequence(f32[T], i32[S+1])", inputs), ElementsAre(1, 3));
  EXPECT_THAT(result_of("select_in_sequence(f32[T], i32[S+1]) {index=-1}", inputs),
              ElementsAre(2, 5));
  EXPECT_EQ(message_of([&] { evaluate("select_in_sequence(f32[T], i32[S+1]) {index=2}", inputs); }),
            "node \"y\": sequence 0 has 2 tokens and no index 2");
}

TEST(SelectInSequence, RefusesOffsetsThatAreNone) {
  const auto with_offsets = [](std::initializer_list<std::int32_t> offsets) {
    return message_of([&] {
      evaluate("select_in_sequence(f32[T], i32[S+1])",
               {f32({5}, {1, 2, 3, 4, 5}), i32({3}, offsets)});
    });
  };
  EXPECT_EQ(with_offsets({1, 2, 5}), "node \"y\": offsets must begin with 0");
  EXPECT_EQ(with_offsets({0, 6, 5}), "node \"y\": offsets must not fall: offset 2 is 5 after 6");
  EXPECT_EQ(with_offsets({0, 2, 4}),
            "node \"y\": offsets must end at the number of tokens: 4 is not 5");
}

TEST(BroadcastTo, StretchesSizesOfOne) {
  EXPECT_THAT(result_of("broadcast_to(f32[2,1]) : f32[2,2]", {f32({2, 1}, {1, 2})}),
              ElementsAre(1, 1, 2, 2));
  EXPECT_EQ(refusal_of("broadcast_to(f32[T,4]) : f32[T,1]"),
            "node \"y\": cannot broadcast f32[T,4] to [T,1]");
}

TEST(Positions, CountInEveryRowOrSequence) {
  EXPECT_THAT(result_of("positions(i64[2,3])", {i64({2, 3}, {9, 9, 9, 9, 9, 9})}),
              ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(result_of("packed_positions(i32[S+1]) : i32[T]", {i32({3}, {0, 2, 5})}),
              ElementsAre(0, 1, 0, 1, 2));
}

TEST(PackedShares, AddUpToOneInEverySequence) {
  EXPECT_THAT(result_of("packed_shares(i32[S+1]) : f32[T]", {i32({3}, {0, 1, 5})}),
              ElementsAre(1, 0.25, 0.25, 0.25, 0.25));
}

TEST(Constant, FillsOrListsItsElements) {
  EXPECT_THAT(result_of("constant() {values=[7]} : i64[2]", {}), ElementsAre(7, 7));
  EXPECT_THAT(result_of("constant() {values=[1,2.5]} : f32[2]", {}), ElementsAre(1, 2.5));
  EXPECT_EQ(refusal_of("constant() {values=[1,2]} : f32[3]"),
            "node \"y\": constant has 2 values for f32[3]: expected 1 or 3");
}

TEST(Reductions, JoinTheAxesGivenOrAll) {
  EXPECT_THAT(result_of("sum(f32[2,3]) {axes=[0]}", {one_to_six()}), ElementsAre(5, 7, 9));
  EXPECT_THAT(result_of("mean(f32[2,3]) {axes=[-1]}", {one_to_six()}), ElementsAre(2, 5));
  EXPECT_THAT(result_of("max(f32[2,3])", {one_to_six()}), ElementsAre(6));
  EXPECT_THAT(result_of("max(f32[2])", {f32({2}, {-5, -3})}), ElementsAre(-3));
  EXPECT_EQ(type_of("mean(f32[B,8,7,7]) {axes=[2,3]}"), "f32[B,8]");
  EXPECT_EQ(type_of("mean(f32[B,8,7,7]) {axes=[2,3], keep=true}"), "f32[B,8,1,1]");
  EXPECT_EQ(type_of("sum(f32[B,L])"), "f32[]");
  EXPECT_EQ(refusal_of("sum(f32[B,L]) {axes=[2]}"), "node \"y\": sum: f32[B,L] has no axis 2");
}

}  // namespace
}  // namespace lathe::ops
