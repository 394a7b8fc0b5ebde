#include "lathe/core/pass.h"

#include <gtest/gtest.h>

#include "lathe/core/graph_text.h"
#include "lathe/core/passes/profile.h"
#include "lathe/core/testing/error_text.h"

namespace lathe {
namespace {

// Passes for these tests alone: one that keeps no annotation, and one that breaks the graph.
const Register rename_all{Pass{
    .name = "test-rename",
    .summary = "puts a prefix before every name",
    .run = [](Graph& graph, PassContext& context) -> PassResult {
      const std::string prefix = std::get<std::string>(context.options.at("prefix"));
      int changed = 0;
      for (const NodeId id : graph.topological_order()) {
        graph.rename(id, prefix + graph.name(id));
        ++changed;
      }
      return {changed, "renamed"};
    },
    .options = {{"prefix", std::string(), "what to put", true}},
    .is_idempotent = false,
}};

const Register break_graph{Pass{
    .name = "test-break",
    .summary = "writes a wrong type",
    .run =
        [](Graph& graph) {
          graph.set_types(graph.at("y"), {parse_type("f32[99]")});
          return 1;
        },
    .is_idempotent = false,
}};

Graph small() {
  return parse_graph("x = input() : f32[4]\ny = relu(x)\noutput z <- y");
}

TEST(RunPass, SuggestsTheNearestPass) {
  Graph graph = small();
  const std::string text = error_text([&] { run_pass("infer-type", graph); });
  EXPECT_TRUE(text.starts_with("unknown pass \"infer-type\"; known: count-dropout, ")) << text;
  EXPECT_EQ(text.substr(text.find('\n')), "\nhint: did you mean \"infer-types\"?");
}

TEST(RunPass, ChecksOptionsBeforeThePassRuns) {
  Graph graph = small();
  const auto refusal = [&](Attributes options) {
    PassContext context{.options = std::move(options)};
    return error_text([&] { run_pass("test-rename", graph, context); });
  };
  EXPECT_EQ(refusal({}), "pass test-rename: attribute prefix is missing: expected a text");
  EXPECT_EQ(refusal({{"prefix", 1.5}}), "pass test-rename: attribute prefix=1.5: expected a text");
  EXPECT_EQ(refusal({{"prefix", std::string("p")}, {"prefxi", true}}),
            "pass test-rename: unknown attribute \"prefxi\"; known: prefix\n"
            "hint: did you mean \"prefix\"?");
}

TEST(RunPass, BlamesItselfForAnInvalidGraph) {
  Graph graph = small();
  try {
    run_pass("test-break", graph);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("expected a valid graph after pass test-break: node "
                        "\"y\": relu gives f32[4], but f32[99] is written"),
              std::string::npos)
        << error.what();
  }
}

TEST(RunPass, DropsAnnotationsThatThePassDoesNotKeep) {
  Graph graph = small();
  profile(graph);
  ASSERT_NE(graph.find_annotation<Profile>(graph.at("y")), nullptr);
  run_pass("remove-dead-nodes", graph);  // changes nothing and keeps profiles
  EXPECT_NE(graph.find_annotation<Profile>(graph.at("y")), nullptr);
  PassContext context{.options = {{"prefix", std::string("p.")}}};
  EXPECT_EQ(run_pass("test-rename", graph, context).changed, 2);
  EXPECT_EQ(graph.find_annotation<Profile>(graph.at("p.y")), nullptr);
}

TEST(RunPass, AsksForWhatThePassNeeds) {
  static const Register needs{Pass{.name = "test-needs",
                                   .summary = "needs both",
                                   .run = [](Graph&) { return 0; },
                                   .needs_state = true,
                                   .needs_feeds = true}};
  Graph graph = small();
  State state;
  PassContext context;
  EXPECT_EQ(error_text([&] { run_pass("test-needs", graph, context); }),
            "pass test-needs: needs the values of the states, and only a graph was given");
  context.state = &state;
  EXPECT_EQ(error_text([&] { run_pass("test-needs", graph, context); }),
            "pass test-needs: needs data to run the graph on");
  context.feeds.emplace_back();
  EXPECT_EQ(run_pass("test-needs", graph, context).changed, 0);
}

TEST(Pipeline, ReadsBackWhatItPrints) {
  const char* const text = "infer-types, test-rename{prefix=\"p, q\"}, profile{B=8, L=128}";
  EXPECT_EQ(to_text(parse_pipeline(text)), text);
  EXPECT_EQ(to_text(parse_pipeline(" infer-types ,\n  profile {B=8} ")),
            "infer-types, profile{B=8}");
  EXPECT_EQ(to_text(parse_pipeline("")), "");
}

TEST(Pipeline, SaysWhatCannotBeRead) {
  EXPECT_EQ(error_text([] { parse_pipeline("infer-types profile"); }),
            "expected \",\" between passes before \"profile\"");
  EXPECT_EQ(error_text([] { parse_pipeline("infer-types, ,"); }), "expected a name before \",\"");
  EXPECT_EQ(error_text([] { parse_pipeline("infer"); }).substr(0, 21), "unknown pass \"infer\";");
}

TEST(Pipeline, RunsPassesInOrderAndReportsEach) {
  Graph graph = small();
  PassContext context;
  std::string heard;
  run_pipeline(graph,
               parse_pipeline("test-rename{prefix=\"a.\"}, infer-types, "
                              "test-rename{prefix=\"b.\"}"),
               context, [&](const PassInvocation& invocation, const PassResult& result) {
                 heard += fmt::format("{} {} {}; ", invocation.name, result.changed, result.report);
               });
  EXPECT_EQ(heard, "test-rename 2 renamed; infer-types 0 ; test-rename 2 renamed; ");
  EXPECT_TRUE(graph.find("b.a.x"));
}

}  // namespace
}  // namespace lathe
