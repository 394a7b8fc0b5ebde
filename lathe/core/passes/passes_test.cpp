// The passes of this folder that need no real op, each on a graph small enough to check by eye.

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/core/passes/dropout.h"
#include "lathe/core/passes/profile.h"
#include "lathe/core/select_outputs.h"
#include "lathe/core/testing/error_text.h"

namespace lathe {
namespace {

TEST(InferTypes, FollowsANewInputTypeThroughTheGraph) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    a = relu(x)
    b = relu(a) : f32[B,4]
    c = add(b, b)
  )");
  graph.set_types(graph.at("x"), {parse_type("f32[T,5]")});
  EXPECT_EQ(run_pass("infer-types", graph), 3);
  EXPECT_EQ(print(graph, "b"), "b = relu(a) : f32[T,5]");
  EXPECT_EQ(run_pass("infer-types", graph), 0);
}

TEST(InferTypes, NamesTheNodeThatNoLongerFits) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[8,4]
    h = linear(x, w)
  )");
  graph.set_types(graph.at("x"), {parse_type("f32[B,5]")});
  EXPECT_EQ(error_text([&] { run_pass("infer-types", graph); }),
            "pass infer-types: node \"h\": cannot multiply f32[B,5] by f32[8,4]");
}

TEST(RemoveDeadNodes, KeepsInputsOutputsAndStateUpdates) {
  Graph graph = parse_graph(R"(
    unread = input() : f32[4]
    x = input() : f32[4]
    w = state() : f32[4]
    dead_state = state() : f32[4]
    dead = relu(x)
    dead_too = add(dead, dead_state)
    live = relu(x)
    update = relu(x)
    output y <- live
    state w <- update
  )");
  EXPECT_EQ(run_pass("remove-dead-nodes", graph), 3);
  EXPECT_EQ(print(graph), R"(lathe-ir 2
unread = input() : f32[4]
x = input() : f32[4]
w = state() : f32[4]
live = relu(x) : f32[4]
update = relu(x) : f32[4]
output y <- live
state w <- update
)");
}

TEST(EliminateCommonSubexpressions, MergesChainsAndSeveralResults) {
  Graph graph = parse_graph(R"(
    x = input() : f32[4]
    a = relu(x)
    b = relu(x)
    s = halves(a)
    t = halves(b)
    y = add(s#1, t#1)
    output y <- y
    output b <- b
  )");
  EXPECT_EQ(run_pass("eliminate-common-subexpressions", graph), 2);
  EXPECT_EQ(print(graph), R"(lathe-ir 2
x = input() : f32[4]
a = relu(x) : f32[4]
s = halves(a) : f32[4], f32[4]
y = add(s#1, s#1) : f32[4]
output y <- y
output b <- a
)");
}

TEST(EliminateCommonSubexpressions, LeavesWhatDiffersInAttributesTypesOrSource) {
  Graph graph = parse_graph(R"(
    x = input() : f32[4]
    z = input() : f32[4]
    a = scale(x) {by=2.0}
    b = scale(x) {by=3.0}
    c = relu(x)
    e = join(a, b, c, z)
    output y <- e
  )");
  EXPECT_EQ(run_pass("eliminate-common-subexpressions", graph), 0);
}

const char* const kDropout = R"(
  x = input() : f32[4]
  a = dropout(x) {rate=0.1}
  b = attend(a) {dropout=0.2}
  c = attend(b)
  d = dropout(c)
  output y <- d
)";

TEST(CountDropout, CountsNodesAndRatesInsideOtherNodes) {
  Graph graph = parse_graph(kDropout);
  EXPECT_EQ(count_dropout(graph).nodes, 2);
  EXPECT_EQ(count_dropout(graph).attributes, 1);
  PassContext context;
  const PassResult result = run_pass("count-dropout", graph, context);
  EXPECT_EQ(result.changed, 0);
  EXPECT_EQ(result.report, "2 dropout nodes, 1 attention attribute");
}

TEST(RemoveDropout, LeavesNothingThatDrops) {
  Graph graph = parse_graph(kDropout);
  EXPECT_EQ(run_pass("remove-dropout", graph), 3);
  EXPECT_EQ(print(graph), R"(lathe-ir 2
x = input() : f32[4]
b = attend(x) : f32[4]
c = attend(b) : f32[4]
output y <- c
)");
  EXPECT_EQ(run_pass("remove-dropout", graph), 0);
}

TEST(EraseNode, ErasesOneNodeOrNamesItsUsers) {
  Graph graph = parse_graph("x = input() : f32[4]\na = relu(x)\nb = relu(a)");
  const auto erase = [&](const char* name) {
    PassContext context{.options = {{"name", std::string(name)}}};
    return error_text([&] { run_pass("erase-node", graph, context); });
  };
  EXPECT_EQ(erase("a"),
            "pass erase-node: cannot erase node \"a\": it is used by \"b\"\n"
            "hint: replace its uses first");
  EXPECT_EQ(erase("c"), "pass erase-node: no node is named \"c\"\nhint: did you mean \"a\"?");
  EXPECT_EQ(erase("b"), "no error");
  EXPECT_FALSE(graph.find("b"));
}

// h reads x (4B) and w (32), writes 8B; r reads and writes 8B each; y reads r (8B) and v (16),
// writes 2B: (12B + 32) + 16B + (10B + 16) elements of four bytes. A product and a sum for each
// weight and row, and one operation for each element of the relu: 64B + 8B + 32B.
TEST(Profile, CountsASmallNetworkAsOneDoesByHand) {
  Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[8,4]
    v = state() : f32[2,8]
    h = linear(x, w)
    r = relu(h)
    y = linear(r, v)
    output y <- y
  )");
  const Profile total = profile(graph);
  EXPECT_EQ(total.flops.text(), "104*B");
  EXPECT_EQ(total.bytes.text(), "152*B+192");
  EXPECT_EQ(total.parameters, 48);
  EXPECT_EQ(to_text(*graph.find_annotation<Profile>(graph.at("h"))),
            "flops 64*B bytes 48*B+128 parameters 32");
  PassContext context{.options = {{"B", std::int64_t{10}}}};
  EXPECT_EQ(run_pass("profile", graph, context).report, "flops 1040\nbytes 1712\nparameters 48");
}

TEST(Profile, CountsATiedWeightOnceInTheSum) {
  Graph graph = parse_graph(R"(
    x = input() : f32[4]
    w = state() : f32[4]
    a = add(x, w)
    b = add(a, w)
  )");
  EXPECT_EQ(profile(graph).parameters, 4);
  EXPECT_EQ(graph.find_annotation<Profile>(graph.at("b"))->parameters, 4);
}

TEST(SelectOutputs, KeepsOnlyWhatTheChosenOutputsNeed) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[4]
    labels = input() : f32[4]
    w = state() : f32[4]
    h = add(x, w)
    loss = add(h, labels)
    output logits <- h
    output loss <- loss
    state w <- loss
  )");
  EXPECT_EQ(print(select_outputs(graph, {"logits"})), R"(lathe-ir 2
x = input() : f32[4]
w = state() : f32[4]
h = add(x, w) : f32[4]
output logits <- h
)");
  EXPECT_EQ(error_text([&] { select_outputs(graph, {"logit"}); }),
            "unknown output \"logit\"; known: logits, loss\nhint: did you mean \"logits\"?");
}

TEST(PackSequences, LeavesAGraphWithoutPaddingAlone) {
  Graph graph = parse_graph("x = input() : f32[T,4]\noutput y <- x");
  EXPECT_EQ(run_pass("pack-sequences", graph), 0);
  Graph empty = parse_graph("symbols B, L");
  EXPECT_EQ(run_pass("pack-sequences", empty), 0);
}

}  // namespace
}  // namespace lathe
