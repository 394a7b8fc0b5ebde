#include "lathe/io/graph_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/json_reader.h"
#include "lathe/io/testing/refusal.h"
#include "lathe/ops/example.h"

namespace lathe::io {
namespace {

using nlohmann::json;

std::string there_and_back(const Graph& graph) {
  return print(parse_graph_json(to_json(graph), "graph.json"));
}

class EveryOpAsJson : public testing::TestWithParam<std::string> {};

TEST_P(EveryOpAsJson, ComesBackAsTheSameGraph) {
  for (const std::string& text : OpRegistry::instance().at(GetParam(), "op").examples) {
    const Graph graph = ops::parse_example(text).graph;
    EXPECT_EQ(there_and_back(graph), print(graph)) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryOpAsJson, testing::ValuesIn(OpRegistry::instance().names()),
                         [](const auto& test) { return test.param; });

// A state that is updated, a second result, a missing operand, a name in quotes.
constexpr std::string_view kGraph = R"(lathe-ir 2
symbols B
x = input() : f32[B,4]
w = state() : f32[8,4]
"odd name" = linear(x, w, none) : f32[B,8]
s = split("odd name") {axis=1, sizes=[3,5]} : f32[B,3], f32[B,5]
w1 = neg(w) : f32[8,4]
output y <- s#1
state w <- w1
)";

TEST(GraphJson, KeepsStateUpdatesResultsAndMissingOperands) {
  const Graph graph = parse_graph(kGraph);
  EXPECT_EQ(there_and_back(graph), print(graph));
}

TEST(GraphJson, KeepsNumbersThatJsonLacks) {
  for (const char* node :
       {"y = full_like(x) {value=-inf} : f32[2]", "y = full_like(x) {value=nan} : f32[2]",
        "y = constant() {values=[inf,1.5]} : f32[2]",
        "y = constant() {values=[-inf,nan]} : f32[2]"}) {
    const Graph graph = parse_graph(fmt::format("x = input() : f32[2]\n{}\noutput y <- y", node));
    EXPECT_EQ(there_and_back(graph), print(graph));
  }
}

TEST(GraphJson, KeepsEveryCharacterOfAText) {
  Graph graph = parse_graph("x = input() : f32[2]\ny = relu(x)\noutput y <- y");
  const std::string odd = "quote\" slash\\ tab\t newline\n bell\a caf\xc3\xa9";
  graph.rename(graph.at("y"), odd);
  graph.set_output(odd, {graph.at(odd), 0});
  const Graph copy = parse_graph_json(to_json(graph), "graph.json");
  EXPECT_TRUE(copy.find(odd));
  EXPECT_EQ(print(copy), print(graph));

  Graph state = parse_graph("w = state() {init=\"normal\"} : f32[2]\noutput w <- w");
  state.set_attribute(state.at("w"), "init", Attribute(odd));
  const Graph state_copy = parse_graph_json(to_json(state), "graph.json");
  EXPECT_EQ(std::get<std::string>(state_copy.attributes(state_copy.at("w")).at("init")), odd);
}

TEST(GraphJson, RefusesToWriteNamesThatAreNotUtf8) {
  const Graph graph = parse_graph("\"a\xff\" = input() : f32[2]");
  EXPECT_EQ(refusal("", [&] { to_json(graph); }),
            "a name or text in the graph is not UTF-8, which JSON cannot hold");
}

std::string refusal_of(std::string_view text) {
  return refusal("g.json", [&] { parse_graph_json(text, "g.json"); });
}

json small() {
  return parse_json(R"({"format": "lathe-ir", "version": 2, "symbols": [], "nodes": [
      {"name": "x", "op": "input", "inputs": [], "attributes": {}, "types": ["f32[4]"]},
      {"name": "y", "op": "relu", "inputs": [{"node": "x", "result": 0}], "attributes": {},
       "types": ["f32[4]"]}],
    "outputs": [{"name": "y", "value": {"node": "y", "result": 0}}], "state_updates": []})");
}

TEST(MalformedGraphJson, IsRefusedWithItsPlace) {
  ASSERT_EQ(refusal_of(small().dump()), "accepted");
  struct Case {
    const char* place;  // a JSON pointer into the small graph
    const char* value;  // what to put there
    const char* message;
  };
  for (const auto& [place, value, message] : std::initializer_list<Case>{
           {"/format", "\"onnx\"", "\"format\" is not \"lathe-ir\""},
           {"/format", "1", "\"format\": expected a text"},
           {"/version", "3", "version 3 cannot be read: this program reads versions 1 and 2"},
           {"/symbols", "7", "\"symbols\": expected a list"},
           {"/symbols", "[7]", "\"symbols\": expected texts"},
           {"/nodes", "{}", "\"nodes\": expected a list"},
           {"/nodes/0", "5", "\"name\" is missing"},
           {"/nodes/1/name", "\"x\"", "node \"x\" is defined twice"},
           {"/nodes/1/inputs", "5", "node \"y\": \"inputs\": expected a list"},
           {"/nodes/1/inputs/0/node", "\"z\"", "node \"y\": no node is named \"z\""},
           {"/nodes/1/inputs/0/result", "1", "node \"y\": node \"x\" has no result 1"},
           {"/nodes/1/inputs/0/result", "-1", "node \"y\": node \"x\" has no result -1"},
           {"/nodes/1/inputs/0/result", "18446744073709551615",
            "node \"y\": node \"x\" has no result 18446744073709551615"},
           {"/nodes/1/types", "[5]", "node \"y\": \"types\": expected texts such as f32[B,4]"},
           {"/nodes/1/attributes", "[]", "node \"y\": \"attributes\": expected an object"},
           {"/nodes/1/attributes", "{\"a\": null}",
            "node \"y\": attribute a: expected a value before \"null\""},
           {"/outputs/0/value", "null",
            "output \"y\": \"value\" is null: expected a node's result"},
           {"/outputs", "[5]", "\"name\" is missing"},
           {"/state_updates", "[{\"state\": \"x\", \"value\": {\"node\": \"y\", \"result\": 0}}]",
            "node \"x\" is not a state"}}) {
    json graph = small();
    graph[json::json_pointer(place)] = parse_json(value);
    EXPECT_EQ(refusal_of(graph.dump()), message) << place << " = " << value;
  }
}

TEST(MalformedGraphJson, SuggestsTheNearestOp) {
  json graph = small();
  graph["nodes"][1]["op"] = "rleu";
  try {
    parse_graph_json(graph.dump(), "g.json");
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("unknown op \"rleu\""));
    EXPECT_EQ(error.hint(), "did you mean \"relu\"?");
  }
}

// Nothing in a file may reach our own checks: whatever is written, the worst is a refusal.
TEST(MalformedGraphJson, IsNeverMoreThanRefused) {
  const std::vector<json> values{
      nullptr, true, 0, -1, 1e300, "", "x", json::array(), {1, 2}, json::object(), "f32[B]"};
  const json flat = parse_json(to_json(parse_graph(kGraph))).flatten();
  for (const auto& [place, original] : flat.items()) {
    for (const json& value : values) {
      json graph = parse_json(to_json(parse_graph(kGraph)));
      graph[json::json_pointer(place)] = value;
      EXPECT_NO_THROW(refusal_of(graph.dump())) << place << " = " << value;
    }
  }
}

TEST(MalformedGraphJson, IsNeverMoreThanRefusedWhenAnyByteIsAltered) {
  const std::string original = to_json(parse_graph(kGraph));
  for (std::size_t i = 0; i < original.size(); ++i) {
    for (const char mask : {'\x01', '\x02', '\x10', '\x7f'}) {
      std::string altered = original;
      altered[i] = static_cast<char>(altered[i] ^ mask);
      EXPECT_NO_THROW(refusal_of(altered)) << "byte " << i;
    }
    EXPECT_NO_THROW(refusal_of(original.substr(0, i)));
  }
}

TEST(MalformedGraphText, IsRefusedForListsInLists) {
  const std::string deep(1'000'000, '[');
  EXPECT_THAT(refusal("", [&] { parse_graph("y = constant() {values=" + deep + "} : f32[2]"); }),
              testing::HasSubstr("a list holds numbers only"));
}

}  // namespace
}  // namespace lathe::io
