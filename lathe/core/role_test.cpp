#include "lathe/core/role.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"

namespace lathe {
namespace {

TEST(StateRole, IsParameterUnlessWritten) {
  const Graph graph = parse_graph(R"(
    w = state() : f32[4]
    m = state() {role="mask"} : f32[4]
  )");
  EXPECT_EQ(state_role(graph, graph.at("w")), StateRole::Parameter);
  EXPECT_EQ(state_role(graph, graph.at("m")), StateRole::Mask);
  EXPECT_EQ(states_of(graph, StateRole::Mask), std::vector<NodeId>{graph.at("m")});
}

TEST(StateRole, ReadsBackEveryName) {
  for (int i = 0; i < 9; ++i) {
    const auto role = static_cast<StateRole>(i);
    EXPECT_EQ(parse_state_role(name(role)), role);
  }
  EXPECT_EQ(error_text([] { parse_state_role("mas"); }),
            "unknown role of a state \"mas\"; known: parameter, buffer, mask, scale, zero, codes, "
            "moment, counter, cache\nhint: did you mean \"mask\"?");
}

TEST(StateRole, FollowsFromReadersWhereNoneIsWritten) {
  const Graph graph = parse_graph(R"(
    w = state() : f32[4]
    s = state() : f32[4]
    q = rounded(w, s)
  )");
  EXPECT_EQ(state_role(graph, graph.at("w")), StateRole::Parameter);
  EXPECT_EQ(print(graph, "s"), "s = state() {role=\"scale\"} : f32[4]");
}

TEST(StateRole, MustBeWhatReadersRequire) {
  EXPECT_EQ(error_text([] {
              verify(
                  parse_graph("lathe-ir 2\nw = state() : f32[4]\ns = state() : f32[4]\n"
                              "q = rounded(w, s) : f32[4]"));
            }),
            "node \"s\": its role is parameter, but node \"q\" reads it as one of role scale");
}

TEST(StateRole, IsCheckedByName) {
  EXPECT_EQ(error_text([] {
              verify(parse_graph("w = state() {role=\"weight\"} : f32[4]"));
            }).substr(0, 44),
            "node \"w\": unknown role of a state \"weight\"; ");
}

TEST(OperandRole, IsTheRecords) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[B,4]
    w = state() : f32[8,4]
    h = linear(x, w, none)
  )");
  EXPECT_EQ(operand_role(graph, graph.at("h"), 1), OperandRole::Weight);
  EXPECT_EQ(find_operand(graph, graph.at("h"), OperandRole::Weight), 1U);
  EXPECT_EQ(find_operand(graph, graph.at("h"), OperandRole::Bias), std::nullopt);
  EXPECT_EQ(operand_index(graph, graph.at("h"), OperandRole::Weight), 1U);
  EXPECT_THROW(operand_index(graph, graph.at("h"), OperandRole::Bias), InternalError);
}

}  // namespace
}  // namespace lathe
