#include "lathe/ops/packing.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/ops/test_tensors.h"

namespace lathe::ops {
namespace {

// Applies the pack rule of node y, whose operands are written packed and whose type is still
// padded.
std::string packed(std::string_view text) {
  Graph graph = parse_graph(text);
  const NodeId offsets = graph.add({.name = "offsets",
                                    .op = "input",
                                    .inputs = {},
                                    .attributes = {},
                                    .types = {parse_type("i32[S+1]")}});
  const NodeId y = graph.at("y");
  return message_of([&] {
    const Value value = graph.op(y).pack(graph, y, {.offsets = {offsets, 0}});
    throw UserError(print(graph, value.node));
  });
}

TEST(Packing, RemovesTheMaskOfAttention) {
  EXPECT_EQ(packed(R"(
    x = input() : f32[T,8]
    mask = input() : i64[T]
    y = attention(x, x, x, mask) {heads=2} : f32[B,L,8]
  )"),
            "y/packed = attention(x, x, x, none, offsets) {heads=2} : f32[T,8]");
}

TEST(Packing, KeepsTheRandomNumbersOfDropout) {
  EXPECT_EQ(packed(R"(
    x = input() : f32[T,8]
    mask = input() : i64[T]
    random = input() : i32[3]
    examples = input() : i32[S]
    y = attention(x, x, x, mask, none, random, examples) {heads=2, dropout=0.1} : f32[B,L,8]
  )"),
            "y/packed = attention(x, x, x, none, offsets, random, examples) {dropout=0.1, heads=2} "
            ": f32[T,8]");
}

TEST(Packing, LeavesAttentionOverRowsOfFixedLengthPadded) {
  EXPECT_EQ(packed("x = input() : f32[S,9,8]\n y = attention(x, x, x) {heads=2} : f32[B,9,8]"),
            "y/packed = attention(x, x, x) {heads=2} : f32[S,9,8]");
}

TEST(Packing, TurnsPositionsIntoThoseOfSequences) {
  EXPECT_EQ(packed(R"(
    ids = input() : i64[T]
    y = positions(ids) : i64[B,L]
  )"),
            "y/packed = packed_positions(offsets) : i32[T]");
}

TEST(Packing, TurnsTheSelectionOfAPositionIntoOneOfEachSequence) {
  EXPECT_EQ(packed(R"(
    x = input() : f32[T,8]
    y = select(x) {axis=1, index=0} : f32[B,8]
  )"),
            "y/packed = select_in_sequence(x, offsets) {index=0} : f32[S,8]");
}

TEST(Packing, KeepsReshapesInsideTokens) {
  EXPECT_EQ(packed("x = input() : f32[T,8]\n y = reshape(x) : f32[B,L,2,4]"),
            "y/packed = reshape(x) : f32[T,2,4]");
  EXPECT_EQ(packed("x = input() : f32[T,2,4]\n y = reshape(x) : f32[B*L,8]"),
            "y/packed = reshape(x) : f32[T,8]");
  EXPECT_EQ(packed("x = input() : f32[S,8]\n y = reshape(x) : f32[B,2,4]"),
            "y/packed = reshape(x) : f32[S,2,4]");
}

TEST(Packing, RefusesReshapesThatMixTokens) {
  EXPECT_EQ(packed("x = input() : f32[T,8]\n y = reshape(x) : f32[B,8*L]"),
            "reshape cannot be packed: f32[B,8*L] mixes tokens of different positions");
}

TEST(Packing, ShiftsAxesInsideTokens) {
  EXPECT_EQ(packed("x = input() : f32[T,8]\n y = softmax(x) : f32[B,L,8]"),
            "y/packed = softmax(x) {axis=1} : f32[T,8]");
  EXPECT_EQ(packed("x = input() : f32[T,8]\n y = slice(x) {axis=2, end=4} : f32[B,L,4]"),
            "y/packed = slice(x) {axis=1, end=4} : f32[T,4]");
  EXPECT_EQ(packed("x = input() : f32[T,4,2]\n y = mean(x) {axes=[-1]} : f32[B,L,4]"),
            "y/packed = mean(x) {axes=[2]} : f32[T,4]");
  EXPECT_EQ(packed("x = input() : f32[T,8]\n y = split(x) {axis=-1, sizes=[4,4]} : f32[B,L,4], "
                   "f32[B,L,4]"),
            "y/packed = split(x) {axis=1, sizes=[4,4]} : f32[T,4], f32[T,4]");
  EXPECT_EQ(packed("x = input() : f32[T,2,4]\n y = transpose(x) {axes=[0,1,3,2]} : f32[B,L,4,2]"),
            "y/packed = transpose(x) {axes=[0,2,1]} : f32[T,4,2]");
}

TEST(Packing, LeavesAxesOfWholeSequencesAlone) {
  EXPECT_EQ(packed("x = input() : f32[S,8]\n y = softmax(x) {axis=1} : f32[B,8]"),
            "y/packed = softmax(x) {axis=1} : f32[S,8]");
}

TEST(Packing, ReturnsTheNodeItselfWhenNothingChanges) {
  EXPECT_EQ(packed("w = input() : f32[8]\n y = mul(w, w)"), "y = mul(w, w) : f32[8]");
  EXPECT_EQ(packed("w = input() : f32[4,8]\n y = softmax(w)"), "y = softmax(w) : f32[4,8]");
  EXPECT_EQ(packed("w = input() : f32[4,8]\n y = reshape(w) : f32[32]"),
            "y = reshape(w) : f32[32]");
}

TEST(Packing, RefusesAxesOfRowsAndPositionsByName) {
  EXPECT_EQ(packed("x = input() : f32[T,8]\n y = softmax(x) {axis=1} : f32[B,L,8]"),
            "softmax cannot be packed: axis 1 is over positions");
  EXPECT_EQ(packed("x = input() : f32[T,8]\n y = concat(x, x) {axis=0} : f32[2*B,L,8]"),
            "concat cannot be packed: axis 0 is over sequences");
  EXPECT_EQ(packed("x = input() : f32[T,8]\n y = mean(x) {axes=[1]} : f32[B,8]"),
            "mean cannot be packed: axis 1 is over positions");
  EXPECT_EQ(packed("x = input() : f32[T,2,4]\n y = transpose(x) {axes=[0,2,1,3]} : f32[B,2,L,4]"),
            "transpose cannot be packed: it moves the axes of rows or positions");
}

TEST(Packing, BroadcastsOnlyWhatIsTheSameForAllTokens) {
  EXPECT_EQ(packed("x = input() : f32[T,8]\n b = input() : f32[8]\n y = add(x, b) : f32[B,L,8]"),
            "y/packed = add(x, b) : f32[T,8]");
  EXPECT_EQ(
      packed("x = input() : f32[T,8]\n b = input() : f32[1,1,8]\n y = add(x, b) : f32[B,L,8]"),
      "y/packed = add(x, y/flat) : f32[T,8]");
  EXPECT_EQ(
      packed("x = input() : f32[T,8]\n b = input() : f32[1,L,8]\n y = add(x, b) : f32[B,L,8]"),
      "add cannot be packed: f32[1,L,8] is broadcast over rows or positions");
  EXPECT_EQ(packed("x = input() : f32[T,8]\n b = input() : f32[L,8]\n y = add(x, b) : f32[B,L,8]"),
            "cannot add f32[T,8] and f32[L,8]: sizes T and L differ");
}

TEST(Packing, MultipliesTokensByOneMatrixOnly) {
  EXPECT_EQ(packed("x = input() : f32[T,8]\n w = input() : f32[8,4]\n y = matmul(x, w) : "
                   "f32[B,L,4]"),
            "y/packed = matmul(x, w) : f32[T,4]");
  EXPECT_EQ(packed("x = input() : f32[T,8]\n y = matmul(x, x) {transpose_b=true} : f32[B,L,L]"),
            "matmul cannot be packed: f32[T,8] by f32[T,8] mixes tokens of different "
            "positions");
}

TEST(Packing, FillsConstantsOfAnyShape) {
  EXPECT_EQ(packed("y = constant() {values=[1.0]} : f32[B,L,8]"),
            "y/packed = constant() {values=[1.0]} : f32[T,8]");
}

}  // namespace
}  // namespace lathe::ops
