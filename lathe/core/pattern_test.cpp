#include "lathe/core/pattern.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"

namespace lathe {
namespace {

// The variables of a match as "a=x b=y", or "no match".
std::string match_text(std::string_view pattern, const Graph& graph, std::string_view root) {
  const std::optional<Match> match = Pattern(pattern).match(graph, {graph.at(root), 0});
  if (!match) return "no match";
  std::string text;
  for (const auto& [variable, value] : match->values)
    text += (text.empty() ? "" : " ") + variable + '=' + graph.name(value);
  return text;
}

TEST(Pattern, BindsVariablesAndInnerNames) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[8,4]
    b = state() : f32[8]
    h = linear(x, w, b)
    r = relu(h)
  )");
  EXPECT_EQ(match_text("relu(y = linear(x, w, b))", graph, "r"), "b=b w=w x=x y=h");
  EXPECT_EQ(match_text("relu(linear(_, m, _))", graph, "r"), "m=w");
  EXPECT_EQ(match_text("relu(relu(x))", graph, "r"), "no match");
  EXPECT_EQ(match_text("linear(x, w, none)", graph, "h"), "no match");
  EXPECT_EQ(match_text("linear(x, w)", graph, "h"), "no match");
  const std::optional<Match> match =
      Pattern("relu(y = linear(x, w, b))").match(graph, {graph.at("r"), 0});
  EXPECT_EQ(match->nodes, (std::vector<NodeId>{graph.at("r"), graph.at("h")}));
  EXPECT_EQ(error_text([&] { (void)(*match)["z"]; }), "internal error");
}

TEST(Pattern, SeesAbsentOperandsHoweverTheyAreWritten) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[8,4]
    short = linear(x, w)
    written = linear(x, w, none)
  )");
  for (const char* node : {"short", "written"}) {
    EXPECT_EQ(match_text("linear(x, w)", graph, node), "w=w x=x");
    EXPECT_EQ(match_text("linear(x, w, none)", graph, node), "w=w x=x");
    EXPECT_EQ(match_text("linear(x, w, b)", graph, node), "b=none w=w x=x");
  }
}

TEST(Pattern, DemandsTheSameValueForARepeatedVariable) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[4]
    z = input() : f32[4]
    twice = add(x, x)
    other = add(x, z)
  )");
  EXPECT_EQ(match_text("add(a, a)", graph, "twice"), "a=x");
  EXPECT_EQ(match_text("add(a, a)", graph, "other"), "no match");
}

TEST(Pattern, TakesOperandsOfCommutativeOpsInEitherOrder) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[4]
    z = input() : f32[4]
    r = relu(x)
    first = add(r, z)
    second = add(z, r)
    difference = sub(z, r)
  )");
  EXPECT_EQ(match_text("add(relu(a), b)", graph, "first"), "a=x b=z");
  EXPECT_EQ(match_text("add(relu(a), b)", graph, "second"), "a=x b=z");
  EXPECT_EQ(match_text("sub(relu(a), b)", graph, "difference"), "no match");
}

TEST(Pattern, TriesEveryOrderOfNestedCommutativeOps) {
  const Graph graph = parse_graph(R"(
    p = input() : f32[4]
    q = input() : f32[4]
    sum = add(p, q)
    y = sub(sum, q)
    z = add(q, sum)
  )");
  EXPECT_EQ(match_text("sub(add(a, b), a)", graph, "y"), "a=q b=p");
  EXPECT_EQ(match_text("sub(add(a, b), b)", graph, "y"), "a=p b=q");
  EXPECT_EQ(match_text("add(add(a, b), a)", graph, "z"), "a=q b=p");
}

TEST(Pattern, MatchesFirstResultsOnly) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[4]
    s = halves(x)
    first = relu(s#0)
    second = relu(s#1)
  )");
  EXPECT_EQ(match_text("relu(halves(a))", graph, "first"), "a=x");
  EXPECT_EQ(match_text("relu(halves(a))", graph, "second"), "no match");
  EXPECT_EQ(match_text("relu(a)", graph, "second"), "a=s#1");
}

TEST(Pattern, ReadsVariablesThatBeginWithAnUnderscore) {
  const Graph graph = parse_graph("x = input() : f32[4]\ny = add(x, x)");
  EXPECT_EQ(match_text("add(_a, _)", graph, "y"), "_a=x");
}

TEST(Pattern, RefusesAnUnknownOp) {
  EXPECT_EQ(error_text([] { Pattern("rely(x)"); }).substr(0, 19), "unknown op \"rely\"; ");
  EXPECT_THROW(Pattern("x"), InternalError);
}

TEST(Rewrite, ReplacesEveryMatchAndCounts) {
  Graph graph = parse_graph(R"(
    x = input() : f32[4]
    a = relu(x)
    b = relu(a)
    c = relu(b)
    output y <- c
  )");
  const int count = rewrite(graph, Pattern("relu(y = relu(x))"),
                            [](Graph&, const Match& match) { return std::optional(match["y"]); });
  EXPECT_EQ(count, 2);
  EXPECT_EQ(print(graph), R"(lathe-ir 2
x = input() : f32[4]
a = relu(x) : f32[4]
b = relu(a) : f32[4]
c = relu(a) : f32[4]
output y <- a
)");
}

TEST(Rewrite, LeavesWhatTheCallerDeclines) {
  Graph graph = parse_graph("x = input() : f32[4]\na = relu(x)\noutput y <- a");
  const std::string text = print(graph);
  EXPECT_EQ(rewrite(graph, Pattern("relu(x)"),
                    [](Graph&, const Match&) -> std::optional<Value> { return std::nullopt; }),
            0);
  EXPECT_EQ(print(graph), text);
}

}  // namespace
}  // namespace lathe
