#include "lathe/core/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lathe/core/graph_text.h"
#include "lathe/core/testing/error_text.h"

namespace lathe {
namespace {

// The names of nodes in the order of a walk, with blanks between them.
std::string order_of(const Graph& graph) {
  std::string text;
  for (const NodeId id : graph.topological_order())
    text += (text.empty() ? "" : " ") + graph.name(id);
  return text;
}

const char* const kChain = R"(
  x = input() : f32[B,4]
  a = relu(x)
  b = relu(a)
  output y <- b
)";

TEST(Graph, GivesANewNodeAFreeName) {
  Graph graph = parse_graph(kChain);
  const NodeId second = graph.add({.name = "a", .op = "relu", .inputs = {{graph.at("x"), 0}}});
  const NodeId third = graph.add({.name = "a", .op = "relu", .inputs = {{graph.at("x"), 0}}});
  const NodeId unnamed = graph.add({.name = "", .op = "relu", .inputs = {{graph.at("x"), 0}}});
  EXPECT_EQ(graph.name(second), "a_2");
  EXPECT_EQ(graph.name(third), "a_3");
  EXPECT_EQ(graph.name(unnamed), "relu");
}

TEST(Graph, InsertsWhereItIsTold) {
  Graph graph = parse_graph(kChain);
  const Value x{graph.at("x"), 0};
  graph.insert_before(graph.at("b"), {.name = "before", .op = "relu", .inputs = {x}});
  graph.insert_after(graph.at("x"), {.name = "after", .op = "relu", .inputs = {x}});
  EXPECT_EQ(order_of(graph), "x after a before b");
}

TEST(Graph, KeepsTheWrittenOrderWhereItIsTopological) {
  const Graph graph = parse_graph(R"(
    x = input() : f32[4]
    c = relu(x)
    a = relu(x)
    b = add(c, a)
  )");
  EXPECT_EQ(order_of(graph), "x c a b");
}

TEST(Graph, MovesOnlyWhatMustFollowItsOperands) {
  Graph graph = parse_graph(kChain);
  const NodeId late = graph.add({.name = "late", .op = "relu", .inputs = {{graph.at("x"), 0}}});
  graph.set_input(graph.at("a"), 0, {late, 0});
  EXPECT_EQ(order_of(graph), "x late a b");
}

TEST(Graph, NamesANodeOfACycle) {
  Graph graph = parse_graph(R"(
    x = input() : f32[4]
    reader = relu(x)
    a = relu(x)
    b = relu(a)
  )");
  graph.set_input(graph.at("a"), 0, {graph.at("b"), 0});
  graph.set_input(graph.at("reader"), 0, {graph.at("a"), 0});  // waits for the cycle, is none of it
  const std::string text = error_text([&] { (void)graph.topological_order(); });
  EXPECT_TRUE(text == "node \"a\" depends on itself" || text == "node \"b\" depends on itself")
      << text;
}

TEST(Graph, SuggestsTheNearestNameOfANodeThatIsNotThere) {
  const Graph graph = parse_graph("encoder = input() : f32[4]");
  EXPECT_EQ(error_text([&] { (void)graph.at("encodr"); }),
            "no node is named \"encodr\"\nhint: did you mean \"encoder\"?");
  EXPECT_EQ(error_text([&] { (void)graph.at("classifier"); }), "no node is named \"classifier\"");
}

TEST(Graph, RefusesANodeThatDoesNotFitItsOp) {
  Graph graph = parse_graph("x = input() : f32[B,4]\nw = state() : f32[8,3]");
  const Value x{graph.at("x"), 0}, w{graph.at("w"), 0};
  const auto refusal = [&](NodeSpec spec) {
    return error_text([&] { graph.add(std::move(spec)); });
  };
  EXPECT_EQ(refusal({.name = "h", .op = "linaer", .inputs = {x}}).substr(0, 35),
            "node \"h\": unknown op \"linaer\"; know");
  EXPECT_EQ(refusal({.name = "h", .op = "linear", .inputs = {x}}),
            "node \"h\": linear takes 2 to 3 operands, not 1");
  EXPECT_EQ(refusal({.name = "h", .op = "add", .inputs = {x}}),
            "node \"h\": add takes 2 operands, not 1");
  EXPECT_EQ(refusal({.name = "h", .op = "join", .inputs = {}}),
            "node \"h\": join takes at least 1 operands, not 0");
  EXPECT_EQ(refusal({.name = "h", .op = "linear", .inputs = {x, kNone}}),
            "node \"h\": linear needs its operand 1 (w), not none");
  EXPECT_EQ(refusal({.name = "h", .op = "linear", .inputs = {x, w}}),
            "node \"h\": cannot multiply f32[B,4] by f32[8,3]");
  EXPECT_EQ(refusal({.name = "h", .op = "pad", .inputs = {x}}),
            "node \"h\": attribute width is missing: expected an integer");
  // None of them left anything behind.
  EXPECT_EQ(graph.num_nodes(), 2u);
  EXPECT_TRUE(graph.uses(graph.at("x")).empty());
  EXPECT_FALSE(graph.find("h"));
}

TEST(Graph, NamesEverybodyWhoUsesANodeThatIsErased) {
  Graph graph = parse_graph(R"(
    w = state() : f32[4]
    h = relu(w)
    a = relu(h)
    b = add(h, h)
    output first <- h
    output second <- h
    state w <- h
  )");
  EXPECT_EQ(error_text([&] { graph.erase(graph.at("h")); }),
            "cannot erase node \"h\": it is used by \"a\", \"b\", output \"first\", "
            "output \"second\", the update of state \"w\"\nhint: replace its uses first");
}

TEST(Graph, ForgetsEverythingAboutAnErasedNode) {
  Graph graph = parse_graph(kChain);
  const NodeId a = graph.at("a"), b = graph.at("b");
  graph.remove_output("y");
  graph.erase(b);
  EXPECT_FALSE(graph.has(b));
  EXPECT_FALSE(graph.find("b"));
  EXPECT_TRUE(graph.uses(a).empty());
  EXPECT_EQ(graph.num_nodes(), 2u);
  EXPECT_THROW((void)graph.name(b), InternalError);
  const NodeId fresh = graph.add({.name = "b", .op = "relu", .inputs = {{a, 0}}});
  EXPECT_NE(fresh, b);  // a number is never given twice
}

TEST(Graph, ReplacesOperandsOutputsAndStateUpdates) {
  Graph graph = parse_graph(R"(
    w = state() : f32[4]
    old = relu(w)
    sum = add(old, old)
    output first <- old
    output last <- sum
    state w <- old
  )");
  const NodeId fresh = graph.insert_before(
      graph.at("old"), {.name = "new", .op = "scale", .inputs = {{graph.at("w"), 0}}});

  EXPECT_EQ(graph.replace_all_uses({graph.at("old"), 0}, {fresh, 0}), 4);

  EXPECT_EQ(print(graph), R"(lathe-ir 2
w = state() : f32[4]
new = scale(w) : f32[4]
old = relu(w) : f32[4]
sum = add(new, new) : f32[4]
output first <- new
output last <- sum
state w <- new
)");
  EXPECT_EQ(graph.replace_all_uses({fresh, 0}, {fresh, 0}), 0);
}

TEST(Graph, ReplacesOneOfSeveralResultsAlone) {
  Graph graph = parse_graph(R"(
    x = input() : f32[4]
    s = halves(x)
    y = add(s#0, s#1)
  )");
  EXPECT_TRUE(graph.has_uses({graph.at("s"), 1}));
  EXPECT_EQ(graph.replace_all_uses({graph.at("s"), 1}, {graph.at("x"), 0}), 1);
  EXPECT_EQ(print(graph, "y"), "y = add(s#0, x) : f32[4]");
  EXPECT_FALSE(graph.has_uses({graph.at("s"), 1}));
  EXPECT_TRUE(graph.has_uses({graph.at("s"), 0}));
  EXPECT_EQ(graph.name({graph.at("s"), 1}), "s#1");
}

TEST(Graph, CountsAUserOnceHoweverOftenItReads) {
  const Graph graph = parse_graph("x = input() : f32[4]\ny = add(x, x)");
  EXPECT_EQ(graph.uses(graph.at("x")).size(), 2u);
  EXPECT_EQ(graph.users(graph.at("x")), std::vector<NodeId>{graph.at("y")});
}

TEST(Graph, RenamesANodeUnlessTheNameIsTaken) {
  Graph graph = parse_graph(kChain);
  graph.rename(graph.at("a"), "hidden");
  EXPECT_EQ(print(graph, "b"), "b = relu(hidden) : f32[B,4]");
  EXPECT_FALSE(graph.find("a"));
  EXPECT_EQ(error_text([&] { graph.rename(graph.at("hidden"), "b"); }),
            "node \"hidden\": the name \"b\" is taken");
  graph.rename(graph.at("b"), "b");
}

TEST(Graph, ReplacesAnOutputOfTheSameName) {
  Graph graph = parse_graph(kChain);
  graph.set_output("y", {graph.at("a"), 0});
  EXPECT_EQ(graph.outputs().size(), 1u);
  EXPECT_EQ(graph.output("y"), (Value{graph.at("a"), 0}));
  EXPECT_TRUE(graph.uses(graph.at("b")).empty());
  EXPECT_FALSE(graph.output("z"));
  graph.remove_output("z");
}

TEST(Graph, BindsAStateOnlyToAValueOfItsType) {
  Graph graph = parse_graph(R"(
    w = state() : f32[4]
    v = state() : f32[5]
    h = relu(w)
  )");
  EXPECT_EQ(error_text([&] {
              graph.bind_state(graph.at("v"), {graph.at("h"), 0});
            }),
            "state \"v\" is f32[5] and cannot take h, which is f32[4]");
  EXPECT_EQ(error_text([&] {
              graph.bind_state(graph.at("h"), {graph.at("w"), 0});
            }),
            "node \"h\" is not a state");
  graph.bind_state(graph.at("w"), {graph.at("h"), 0});
  graph.bind_state(graph.at("w"), {graph.at("w"), 0});  // takes the place of the first
  EXPECT_TRUE(graph.uses(graph.at("h")).empty());
  graph.clear_state_updates();
  EXPECT_TRUE(graph.uses(graph.at("w")).size() == 1 && graph.state_updates().empty());
}

TEST(Graph, ChecksAttributesThatAreSetLater) {
  Graph graph = parse_graph("x = input() : f32[4]\ny = scale(x)");
  graph.set_attribute(graph.at("y"), "by", 2.0);
  EXPECT_EQ(print(graph, "y"), "y = scale(x) {by=2.0} : f32[4]");
  EXPECT_EQ(error_text([&] { graph.set_attribute(graph.at("y"), "mode", 3.0); }),
            "attribute mode=3.0: expected a text");
  graph.remove_attribute(graph.at("y"), "by");
  EXPECT_EQ(graph.attribute(graph.at("y")).real("by"), 1.0);
}

TEST(Graph, IsACopyAllTheWayDown) {
  const Graph original = parse_graph(kChain);
  const std::string text = print(original);
  Graph copy = original;
  copy.remove_output("y");
  copy.erase(copy.at("b"));
  copy.rename(copy.at("a"), "z");
  copy.declare_symbol("Q");
  EXPECT_EQ(print(original), text);
  verify(original);
}

struct Note {
  static constexpr const char* kAnnotation = "note";
  std::string text;
};
std::string to_text(const Note& note) {
  return note.text;
}

struct Mark {
  static constexpr const char* kAnnotation = "mark";
  int value = 0;
};
std::string to_text(const Mark& mark) {
  return fmt::format("{}", mark.value);
}

TEST(Annotations, BelongToANodeOfOneGraph) {
  Graph graph = parse_graph(kChain);
  graph.annotation<Note>(graph.at("a")).text = "seen";
  graph.annotation<Mark>(graph.at("a")).value = 3;
  Graph copy = graph;
  copy.annotation<Note>(copy.at("a")).text = "changed";

  EXPECT_EQ(graph.find_annotation<Note>(graph.at("a"))->text, "seen");
  EXPECT_EQ(copy.find_annotation<Mark>(copy.at("a"))->value, 3);
  EXPECT_EQ(graph.find_annotation<Note>(graph.at("b")), nullptr);
  using Found = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(graph.annotations().describe(graph.at("a").index),
            (Found{{"mark", "3"}, {"note", "seen"}}));
}

TEST(Annotations, GoWithTheirNodeAndByKind) {
  Graph graph = parse_graph(kChain);
  const NodeId b = graph.at("b");
  graph.annotation<Note>(b).text = "seen";
  graph.annotation<Note>(graph.at("a")).text = "kept?";
  graph.annotation<Mark>(graph.at("a")).value = 1;
  graph.remove_output("y");
  graph.erase(b);
  EXPECT_EQ(graph.annotations().find<Note>(b.index), nullptr);
  graph.annotations().keep_only({"mark"});
  EXPECT_EQ(graph.find_annotation<Note>(graph.at("a")), nullptr);
  EXPECT_EQ(graph.find_annotation<Mark>(graph.at("a"))->value, 1);
}

// Every use of every node, found by looking at all readers, as sorted lines.
std::vector<std::string> recomputed_uses(const Graph& graph) {
  std::vector<std::string> lines;
  for (const NodeId id : graph.topological_order())
    for (std::size_t i = 0; i < graph.inputs(id).size(); ++i)
      if (const Value value = graph.input(id, i); !value.is_none())
        lines.push_back(fmt::format("{} by {} at {}", graph.name(value.node), graph.name(id), i));
  for (const auto& [name, value] : graph.outputs())
    lines.push_back(fmt::format("{} by output {}", graph.name(value.node), name));
  for (const auto& [state, value] : graph.state_updates())
    lines.push_back(fmt::format("{} by update {}", graph.name(value.node), graph.name(state)));
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<std::string> listed_uses(const Graph& graph) {
  std::vector<std::string> lines;
  for (const NodeId id : graph.topological_order()) {
    for (const Use& use : graph.uses(id)) {
      const std::string& name = graph.name(id);
      if (use.kind == Use::Kind::Operand)
        lines.push_back(fmt::format("{} by {} at {}", name, graph.name(use.user), use.operand));
      if (use.kind == Use::Kind::Output)
        lines.push_back(fmt::format("{} by output {}", name, use.output));
      if (use.kind == Use::Kind::StateUpdate)
        lines.push_back(fmt::format("{} by update {}", name, graph.name(use.user)));
    }
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(Graph, KeepsListsOfUsesTrueUnderRandomEdits) {
  std::mt19937 random(3);
  const auto pick = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  for (int round = 0; round < 20; ++round) {
    Graph graph = parse_graph("x = input() : f32[4]\nw = state() : f32[4]\nv = state() : f32[4]");
    for (int edit = 0; edit < 120; ++edit) {
      const std::vector<NodeId> order = graph.topological_order();
      const auto value_below = [&](std::size_t end) {
        const NodeId node = order[pick(end)];
        return Value{node, static_cast<std::int32_t>(pick(graph.types(node).size()))};
      };
      const std::size_t place = pick(order.size());
      const Value value = value_below(order.size());
      switch (random() % 9) {
        case 0:
          graph.add({.name = "n", .op = "add", .inputs = {value, value_below(order.size())}});
          break;
        case 1:
          graph.add({.name = "s", .op = "halves", .inputs = {value}});
          break;
        case 2:
          graph.insert_after(order[place],
                             {.name = "j", .op = "join", .inputs = {value, value, value}});
          break;
        case 3:
          if (!graph.inputs(order[place]).empty())
            graph.set_input(order[place], 0, value_below(place));  // earlier: no cycle
          break;
        case 4: {
          // Only an earlier value may take the place of a later one.
          const Value later{order[place], 0};
          graph.replace_all_uses(later, place == 0 ? later : value_below(place));
          break;
        }
        case 5:
          graph.set_output(fmt::format("o{}", pick(3)), value);
          break;
        case 6:
          graph.bind_state(graph.at(pick(2) == 0 ? "w" : "v"), value);
          break;
        case 7:
          graph.remove_output(fmt::format("o{}", pick(3)));
          break;
        default:
          if (graph.uses(order[place]).empty() && !graph.op(order[place]).is_source)
            graph.erase(order[place]);
      }
      ASSERT_EQ(listed_uses(graph), recomputed_uses(graph))
          << "round " << round << " edit " << edit;
    }
    const std::string text = print(graph);
    EXPECT_EQ(print(Graph(graph)), text);
  }
}

}  // namespace
}  // namespace lathe
