#include "lathe/report/graph_drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/child_process.h"
#include "lathe/core/graph_text.h"
#include "lathe/report/render.h"

namespace lathe::report {
namespace {

using testing::HasSubstr;
using testing::Not;

// This module knows no ops, so the test brings the few it draws.
std::vector<Type> declared(const OpCall& call) {
  return {call.declared().begin(), call.declared().end()};
}
std::vector<Type> like_first(const OpCall& call) {
  return {call.input(0)};
}
const Register input{Op{.name = "input", .summary = "", .infer = declared, .is_source = true}};
const Register state{Op{.name = "state",
                        .summary = "",
                        .attributes = {{"role", std::string("parameter"), ""}},
                        .infer = declared,
                        .is_source = true}};
const Register quantize{Op{.name = "quantize",
                           .summary = "",
                           .operands = {{"x"}, {.name = "scale", .optional = true}},
                           .attributes = {{"format", std::string(), ""}},
                           .infer = like_first}};
const Register decode{Op{.name = "decode",
                         .summary = "",
                         .operands = {{"codes"},
                                      {.name = "local", .optional = true},
                                      {.name = "scale", .optional = true}},
                         .attributes = {{"format", std::string(), ""},
                                        {"columns", std::int64_t{0}, ""},
                                        {"of", std::string(), ""}},
                         .infer = declared}};
const Register mul{
    Op{.name = "mul", .summary = "", .operands = {{"a"}, {"b"}}, .infer = like_first}};
const Register linear{Op{.name = "linear",
                         .summary = "",
                         .operands = {{"x"}, {"weight"}, {.name = "bias", .optional = true}},
                         .infer = [](const OpCall& call) {
                           Type type = call.input(0);
                           type.shape.back() = call.input(1).shape.front();
                           return std::vector<Type>{type};
                         }}};
const Register relu{Op{.name = "relu",
                       .summary = "",
                       .operands = {{"x"}},
                       .attributes = {{"slope", 0.0, ""}, {"note", std::string(), ""}},
                       .infer = like_first}};
const Register add{
    Op{.name = "add", .summary = "", .operands = {{"a"}, {"b"}}, .infer = like_first}};

const char kSmall[] = R"(
  x = input() : f32[B,4]
  fc.weight = state() : f32[8,4]
  fc.bias = state() : f32[8]
  fc = linear(x, fc.weight, fc.bias) : f32[B,8]
  y = relu(fc) {slope=0.1} : f32[B,8]
  output scores <- y
)";

// A line with `start` that also has `rest` behind it.
testing::Matcher<std::string> has_line_with(const std::string& start, const std::string& rest) {
  return testing::Truly([=](const std::string& text) {
    const std::size_t at = text.find(start);
    return at != text.npos && text.substr(at, text.find('\n', at) - at).find(rest) != text.npos;
  });
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// `n` layers of a linear and a relu, each reading the one before.
Graph layers(int n) {
  std::string text = "x = input() : f32[B,4]\n";
  std::string last = "x";
  for (int i = 0; i < n; ++i) {
    text += fmt::format(
        "net.layer.{0}.w = state() : f32[4,4]\n"
        "net.layer.{0}.dense = linear({1}, net.layer.{0}.w, none) : f32[B,4]\n"
        "net.layer.{0}.act = relu(net.layer.{0}.dense) : f32[B,4]\n",
        i, last);
    last = fmt::format("net.layer.{}.act", i);
  }
  return parse_graph(text + "output y <- " + last + "\n");
}

TEST(ToDot, DrawsInputsBoxesShapesAndOutputs) {
  const std::string dot = to_dot(parse_graph(kSmall));
  EXPECT_THAT(dot, HasSubstr("\"x\" [label=<<b>x</b>>, shape=oval"));
  EXPECT_THAT(dot, HasSubstr("<b>linear</b>"));
  EXPECT_THAT(dot, HasSubstr("slope 0.1"));
  EXPECT_THAT(dot, has_line_with("\"x\" -> \"fc\" ", "<td>B × 4</td>"));
  EXPECT_THAT(dot, has_line_with("\"y\" -> \"output:0\" ", "<td>B × 8</td>"));
  EXPECT_THAT(dot, HasSubstr("\"output:0\" [label=<<b>scores</b>>, shape=oval"));
}

TEST(ToDot, ListsStatesInTheirReader) {
  const std::string dot = to_dot(parse_graph(kSmall));
  EXPECT_THAT(dot, HasSubstr("weight 8 × 4, bias 8"));
  EXPECT_THAT(dot, Not(HasSubstr("\"fc.weight\"")));
}

TEST(ToDot, DrawsStatesWhenAsked) {
  const std::string dot = to_dot(parse_graph(kSmall), {.show_states = true});
  EXPECT_THAT(dot, HasSubstr("\"fc.weight\" -> \"fc\""));
  EXPECT_THAT(dot, Not(HasSubstr("weight 8 × 4, bias 8")));
}

TEST(ToDot, DrawsAStateThatIsAnOutput) {
  const std::string dot = to_dot(parse_graph(R"(
    w = state() : f32[2]
    output w <- w
  )"));
  EXPECT_THAT(dot, HasSubstr("\"w\" -> \"output:0\""));
}

TEST(ToDot, SaysWhichStateANodeUpdates) {
  const std::string dot = to_dot(parse_graph(R"(
    w = state() : f32[2]
    w1 = relu(w) : f32[2]
    state w <- w1
  )"));
  EXPECT_THAT(dot, HasSubstr("w 2, updates w"));
}

TEST(ToDot, NamesStorageOnEdges) {
  const std::string dot = to_dot(parse_graph(R"(
    x = input() : i32[B,4]
    w = state() : f32[8,4]
    y = linear(x, w, none) : i32[B,8]
    output y <- y
  )"));
  EXPECT_THAT(dot, HasSubstr("i32 B × 4"));
  EXPECT_THAT(dot, HasSubstr("w 8 × 4"));
}

TEST(ToDot, PutsModulesInBoxesWithShortNamesInside) {
  const std::string dot = to_dot(layers(2));
  EXPECT_THAT(dot, HasSubstr("label=<<b>net.layer.0</b>>"));
  EXPECT_THAT(dot, HasSubstr("label=<<b>net.layer.1</b>>"));
  EXPECT_EQ(count(dot, ">dense</font>"), 2u);
}

// Packed weights are listed with their format, activations' quantizers stand on the edges: the
// boxes are those of the float model.
TEST(ToDot, DrawsAQuantizedGraphWithTheBoxesOfTheFloatOne) {
  const std::string dot = to_dot(parse_graph(R"(
    x = input() : f32[B,4]
    w.codes = state() {role="codes"} : u8[8,4]
    w.scale = state() {role="scale"} : f32[8]
    b = state() : f32[8]
    mask = state() {role="mask"} : f32[8]
    xq = quantize(x) {format="int:8,dynamic"} : f32[B,4]
    wq = decode(w.codes, none, w.scale) {columns=4, format="int:4,channel", of="fc.weight"} : f32[8,4]
    bm = mul(b, mask) : f32[8]
    fc = linear(xq, wq, bm) : f32[B,8]
    yq = quantize(fc) {format="mxint:8"} : f32[B,8]
    output y <- yq
  )"));
  for (const char* folded : {"\"xq\"", "\"wq\"", "\"bm\"", "\"yq\"", "\"w.codes\"", "\"w.scale\""})
    EXPECT_THAT(dot, Not(HasSubstr(folded)));
  EXPECT_THAT(dot, HasSubstr("weight 8 × 4, int:4,channel"));
  EXPECT_THAT(dot, HasSubstr("b 8, masked"));
  EXPECT_THAT(dot, has_line_with("\"x\" -> \"fc\" ", ">int:8,dynamic<"));
  EXPECT_THAT(dot, has_line_with("\"fc\" -> \"output:0\" ", ">mxint:8<"));
}

TEST(ToDot, DrawsAQuantizerThatIsHighlighted) {
  const std::string dot = to_dot(parse_graph(R"(
    x = input() : f32[B,4]
    xq = quantize(x) {format="int:8,dynamic"} : f32[B,4]
    y = relu(xq) : f32[B,4]
    output y <- y
  )"),
                                 {.highlights = {"xq"}});
  EXPECT_THAT(dot, HasSubstr("\"x\" -> \"xq\""));
  EXPECT_THAT(dot, HasSubstr("\"xq\" -> \"y\""));
}

TEST(ToDot, FoldsManyLayersThatLookAlike) {
  const std::string dot = to_dot(layers(12));
  EXPECT_EQ(count(dot, "subgraph"), 1u);
  EXPECT_THAT(dot, HasSubstr("net.layer.1 to net.layer.11"));
  EXPECT_THAT(dot, HasSubstr("11 more like net.layer.0"));
  EXPECT_THAT(dot, HasSubstr("\"net.layer.0.act\" -> \"folded:1\""));
  EXPECT_THAT(dot, HasSubstr("\"folded:1\" -> \"output:0\""));
  EXPECT_EQ(count(to_dot(layers(12), {.fold_repeats_above = 0}), "subgraph"), 12u);
}

TEST(ToDot, DoesNotFoldALayerThatIsHighlighted) {
  const std::string dot = to_dot(layers(12), {.highlights = {"net.layer.6.dense"}});
  EXPECT_THAT(dot, HasSubstr("net.layer.1 to net.layer.5"));
  EXPECT_THAT(dot, HasSubstr("net.layer.8 to net.layer.11"));
  EXPECT_EQ(count(dot, "penwidth=3"), 1u);
}

TEST(ToDot, RefusesAHighlightThatIsNoNode) {
  try {
    to_dot(parse_graph(kSmall), {.highlights = {"fd"}});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.message(), HasSubstr("highlight: "));
    EXPECT_THAT(error.message(), HasSubstr("\"fd\""));
  }
}

TEST(ToDot, RepeatsAnInputThatManyNodesRead) {
  const std::string dot = to_dot(parse_graph(R"(
    x = input() : f32[4]
    a = add(x, x) : f32[4]
    b = add(a, x) : f32[4]
    c = add(b, x) : f32[4]
    d = add(c, x) : f32[4]
    output y <- d
  )"));
  EXPECT_EQ(count(dot, ">x</b></font>"), 4u);
}

TEST(ToDot, GivesTheSameTextTwice) {
  EXPECT_EQ(to_dot(layers(6)), to_dot(layers(6)));
}

Graph hostile() {
  Graph graph;
  const Type type{DType::F32, {4}};
  const NodeId x =
      graph.add({.name = "x\"; } <b>&\\", .op = "input", .inputs = {}, .types = {type}});
  const NodeId y = graph.add({.name = "m.<script>\n\xFF\\",
                              .op = "relu",
                              .inputs = {{x, 0}},
                              .attributes = {{"note", std::string("</font>\"]\x01")}}});
  graph.set_output("out\"<i>\\", {y, 0});
  return graph;
}

TEST(ToDot, EscapesNamesFromUntrustedFiles) {
  const std::string dot = to_dot(hostile(), {.title = "<title>\""});
  EXPECT_THAT(dot, Not(HasSubstr("<script>")));
  EXPECT_THAT(dot, Not(HasSubstr("<i>")));
  EXPECT_THAT(dot, Not(HasSubstr("<title>")));
  EXPECT_THAT(dot, Not(HasSubstr("x\"; }")));
  EXPECT_THAT(dot, HasSubstr("\"0:x______b___\" -> \"1:m._script____\""));
}

TEST(ToDot, IsUnderstoodByGraphviz) {
  if (!run_program({"dot", "-V"}, "")) GTEST_SKIP() << "graphviz is not installed";
  EXPECT_THAT(render_svg(to_dot(hostile(), {.title = "<title>\""})), HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(render_svg(to_dot(layers(12))), HasSubstr("11 more like net.layer.0"));
  EXPECT_THAT(render_svg(to_dot(parse_graph(kSmall), {.show_states = true, .show_shapes = false})),
              HasSubstr("fc.weight"));
  EXPECT_THAT(render_svg(to_dot(Graph{})), HasSubstr("<svg"));
}

}  // namespace
}  // namespace lathe::report
