#include "lathe/core/graph_text.h"

#include <gtest/gtest.h>

#include "lathe/core/testing/error_text.h"

namespace lathe {
namespace {

std::string refusal(std::string_view text) {
  return error_text([&] { parse_graph(text); });
}

TEST(GraphText, PrintsWhatItReads) {
  const char* const text = R"(lathe-ir 2
symbols B, L
x = input() : f32[B,L,4]
w = state() : f32[8,4]
h = linear(x, w, none) : f32[B,L,8]
s = halves(h) : f32[B,L,8], f32[B,L,8]
y = add(s#0, s#1) : f32[B,L,8]
z = scale(y) {axes=[1,2], axis=-2, by=0.5, exact=true, factors=[1.0,2.5], mode="a \"b\""} : f32[B,L,8]
k = relu(z) : f32[B,L,8]
v = relu(w) : f32[8,4]
output logits <- k
output second <- s#1
state w <- v
)";
  EXPECT_EQ(print(parse_graph(text)), text);
}

TEST(GraphText, InfersTypesAndSymbolsThatAreLeftOut) {
  EXPECT_EQ(print(parse_graph("x = input() : f32[T,4]\ny = relu(x)")),
            "lathe-ir 2\nsymbols T\nx = input() : f32[T,4]\ny = relu(x) : f32[T,4]\n");
}

TEST(GraphText, SkipsCommentsAndBlankLines) {
  EXPECT_EQ(print(parse_graph("# a comment first\n\nlathe-ir 2  # the version\r\n"
                              "  x = input() : f32[4]   # an input\n\t# done\n")),
            "lathe-ir 2\nx = input() : f32[4]\n");
}

TEST(GraphText, QuotesNamesWithUnusualCharacters) {
  const char* const names[] = {"two words",   "a=b",       "none",   "x#1",    "say \"hi\"",
                               "back\\slash", "new\nline", "colon:", "-minus", " # no",
                               "()",          "ünïcode",   "output", "state",  "lathe-ir",
                               "a.b/c:d-e_f", "0"};
  Graph graph;
  const Type type = parse_type("f32[4]");
  for (const char* name : names) {
    const NodeId input = graph.add({.name = name, .op = "input", .inputs = {}, .types = {type}});
    const NodeId split =
        graph.add({.name = std::string(name) + " s", .op = "halves", .inputs = {{input, 0}}});
    graph.set_output(name, {split, 1});
  }
  const Graph read = parse_graph(print(graph));
  EXPECT_EQ(print(read), print(graph));
  for (const char* name : names) EXPECT_TRUE(read.find(name) && read.output(name)) << name;
}

TEST(GraphText, NamesTheLineOfAMistake) {
  EXPECT_EQ(refusal("x = input() : f32[4]\ny = rely(x)").substr(0, 37),
            "line 2: node \"y\": unknown op \"rely\"; ");
  EXPECT_EQ(refusal("x = input() : f32[4]\n\ny = relu(z)"),
            "line 3: no node is named \"z\"\nhint: did you mean \"x\"?");
  EXPECT_EQ(refusal("x = input() : f32[4]\nx = relu(x)"), "line 2: node \"x\" is defined twice");
  EXPECT_EQ(refusal("x input()"), "line 1: expected \"=\" after \"x\"");
  EXPECT_EQ(refusal("x = input( : f32[4]"), "line 1: expected a name before \": f32[4]\"");
  EXPECT_EQ(refusal("x = input() : f32[4] y"), "line 1: unexpected \"y\"");
  EXPECT_EQ(refusal("x = input()"), "line 1: node \"x\": the type must be written");
  EXPECT_EQ(refusal("= relu(x)"), "line 1: expected a name before \"= relu(x)\"");
  EXPECT_EQ(refusal("x = input() : f32[4]\ny = scale(x) {bye=2}"),
            "line 2: node \"y\": unknown attribute \"bye\"; known: axes, axis, by, exact, factors, "
            "mode\nhint: did you mean \"by\"?");
}

TEST(GraphText, SaysWhichResultANodeDoesNotHave) {
  const std::string graph = "x = input() : f32[4]\ns = halves(x)\n";
  EXPECT_EQ(refusal(graph + "y = relu(s#2)"), "line 3: node \"s\" has no result 2");
  EXPECT_EQ(refusal(graph + "y = relu(s#-1)"), "line 3: node \"s\" has no result -1");
  EXPECT_EQ(refusal(graph + "y = relu(x#1)"), "line 3: node \"x\" has no result 1");
  EXPECT_EQ(refusal(graph + "y = relu(s#4294967296)"),
            "line 3: node \"s\" has no result 4294967296");
}

TEST(GraphText, ChecksDeclaredSymbols) {
  EXPECT_EQ(refusal("symbols B\nx = input() : f32[B,L]"), "line 2: symbol L is not declared");
}

TEST(GraphText, RefusesOtherVersions) {
  EXPECT_EQ(refusal("lathe-ir 3"),
            "line 1: lathe-ir 3 cannot be read: this program reads versions 1 and 2");
  EXPECT_EQ(refusal("x = input() : f32[4]\nlathe-ir 2"), "line 2: lathe-ir must be the first line");
  EXPECT_EQ(refusal("lathe-ir one"), "line 1: expected an integer before \"one\"");
}

TEST(GraphText, RefusesOutputsAndUpdatesThatCannotBe) {
  const std::string graph = "w = state() : f32[4]\nx = input() : f32[5]\n";
  EXPECT_EQ(refusal(graph + "output y <- w\noutput y <- x"),
            "line 4: output \"y\" is defined twice");
  EXPECT_EQ(refusal(graph + "output y <- none"), "line 3: output \"y\" needs a value, not none");
  EXPECT_EQ(refusal(graph + "state w <- none"), "line 3: state \"w\" needs a value, not none");
  EXPECT_EQ(refusal(graph + "state w <- x"),
            "line 3: state \"w\" is f32[4] and cannot take x, which is f32[5]");
  EXPECT_EQ(refusal(graph + "state x <- w"), "line 3: node \"x\" is not a state");
}

TEST(GraphText, SurvivesEveryPrefixAndEveryFlippedByte) {
  const std::string text =
      "lathe-ir 2\nsymbols B\nx = input() : f32[2*B+1,4]\n"
      "\"o d\" = scale(x) {axes=[1,2], by=1e-3, mode=\"q\"} : f32[2*B+1,4]\noutput y <- \"o d\"\n";
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_NE(refusal(text.substr(0, length)), "internal error") << length;
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char c : {'#', '"', '(', '[', '9', '-', '\0', '\xff', 'x', ' '}) {
      std::string changed = text;
      changed[at] = c;
      EXPECT_NE(refusal(changed), "internal error") << changed;
    }
  }
}

TEST(Verify, AcceptsWhatTheShapeRulesGive) {
  EXPECT_NO_THROW(verify(parse_graph("x = input() : f32[B,4]\ny = relu(x) : f32[B,4]")));
}

TEST(Verify, ComparesWrittenTypesWithTheShapeRule) {
  EXPECT_EQ(error_text([] { verify(parse_graph("x = input() : f32[4]\ny = relu(x) : f32[5]")); }),
            "node \"y\": relu gives f32[4], but f32[5] is written");
  EXPECT_EQ(
      error_text([] { verify(parse_graph("x = input() : f32[4]\ny = relu(x) : f32[4], f32[4]")); }),
      "node \"y\": relu has 1 results, not 2");
}

TEST(Verify, LooksAtOperandsThatChanged) {
  Graph graph = parse_graph(R"(
    x = input() : f32[4]
    z = input() : f32[5]
    y = add(x, x)
  )");
  graph.set_input(graph.at("y"), 1, {graph.at("z"), 0});
  EXPECT_EQ(error_text([&] { verify(graph); }), "node \"y\": cannot add f32[4] and f32[5]");
  graph.set_input(graph.at("y"), 1, kNone);
  EXPECT_EQ(error_text([&] { verify(graph); }),
            "node \"y\": add needs its operand 1 (b), not none");
}

TEST(Verify, LooksAtAttributesSymbolsAndCycles) {
  Graph padded = parse_graph("x = input() : f32[B,4]\ny = pad(x) {width=2}");
  Graph undeclared = padded, cyclic = padded;
  padded.remove_attribute(padded.at("y"), "width");
  EXPECT_EQ(error_text([&] { verify(padded); }),
            "node \"y\": attribute width is missing: expected an integer");
  undeclared.forget_symbol("B");
  EXPECT_EQ(error_text([&] { verify(undeclared); }), "node \"x\": symbol B is not declared");
  cyclic.set_input(cyclic.at("y"), 0, {cyclic.at("y"), 0});
  EXPECT_EQ(error_text([&] { verify(cyclic); }), "node \"y\" depends on itself");
}

TEST(Verify, LooksAtStateUpdates) {
  Graph graph =
      parse_graph("w = state() : f32[4]\nv = state() : f32[4]\nh = relu(v)\nstate w <- h");
  EXPECT_NO_THROW(verify(graph));
  graph.set_types(graph.at("w"), {parse_type("i32[4]")});
  EXPECT_EQ(error_text([&] { verify(graph); }), "state \"w\" is i32[4] and cannot take f32[4]");
}

}  // namespace
}  // namespace lathe
