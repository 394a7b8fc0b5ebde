#include "lathe/experiment/demonstration_page.h"

#include <algorithm>
#include <map>

#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/core/passes/dropout.h"
#include "lathe/report/plot.h"
#include "lathe/report/table.h"

namespace lathe::experiment {
namespace {

// A curve of a few hundred points says as much as one of thousands, and a mean is less ragged.
report::Series loss_curve(const std::vector<double>& losses) {
  constexpr std::size_t kPoints = 150;
  const std::size_t width = std::max<std::size_t>(1, losses.size() / kPoints);
  report::Series series{.name = "loss", .x = {}, .y = {}};
  for (std::size_t begin = 0; begin + width <= losses.size(); begin += width) {
    double sum = 0;
    for (std::size_t i = begin; i < begin + width; ++i) sum += losses[i];
    series.x.push_back(static_cast<double>(begin + width));
    series.y.push_back(sum / static_cast<double>(width));
  }
  return series;
}

}  // namespace

void add_model_section(report::HtmlPage& page, const io::Model& model, const Profile& cost) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : model.state) bytes += tensor.num_bytes();
  page.section("The model");
  page.figures({{"parameters", fmt::format("{}", cost.parameters)},
                {"megabytes", fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6)},
                {"nodes", fmt::format("{}", model.graph.num_nodes())}});
  page.paragraph(fmt::format(
      "{} for the task {}. One execution costs {} floating-point operations, where B is the number "
      "of rows and L their padded length.",
      model.family->summary, model.task, cost.flops.text()));
}

void add_graph_section(report::HtmlPage& page, const Graph& graph, const std::string& svg) {
  Graph lean = graph;
  const DropoutCount before = count_dropout(lean);
  run_pass("remove-dropout", lean);
  const DropoutCount after = count_dropout(lean);
  report::Table table({"graph", "nodes", "dropout nodes", "attention dropout"});
  table.row({"as built", fmt::format("{}", graph.num_nodes()), fmt::format("{}", before.nodes),
             fmt::format("{}", before.attributes)});
  table.row({"after remove-dropout", fmt::format("{}", lean.num_nodes()),
             fmt::format("{}", after.nodes), fmt::format("{}", after.attributes)});
  page.section("The graph");
  page.table(table, "What the pass remove-dropout does");
  page.large_svg(svg, "The graph as built; parameters stand inside the nodes that read them");
  page.details("The graph's text", print(graph));
}

void add_training_section(report::HtmlPage& page, const TrainingStory& story) {
  page.section("Training");
  page.figures({{"accuracy before", fmt::format("{:.3f}", story.before)},
                {"accuracy after", fmt::format("{:.3f}", story.after)},
                {"seconds", fmt::format("{:.1f}", story.seconds)},
                {"tokens per second",
                 fmt::format("{:.0f}", static_cast<double>(story.tokens) / story.seconds)}});
  page.paragraph(fmt::format(
      "The weights began as random numbers. {} epochs over {} examples by the recipe of "
      "lathe train taught the model to read them; accuracies are on {} examples it has not seen. "
      "Who counts words alone and pays no heed to their order gets about two thirds of the "
      "built-in reviews right.",
      story.epochs, story.examples, story.tested));
  page.svg(report::line_chart({.title = "Loss while training",
                               .x = {.label = "step"},
                               .y = {.label = "mean cross-entropy, nats"}},
                              {loss_curve(story.losses)}));
}

void add_speed_section(report::HtmlPage& page, const train::Evaluation& result,
                       const engine::PlanReport& plan, bool is_fresh) {
  page.section("Answers and speed");
  page.figures({{"accuracy", fmt::format("{:.3f}", result.accuracy)},
                {"tokens per second", fmt::format("{:.0f}", static_cast<double>(result.tokens) /
                                                                result.forward_seconds)},
                {"examples", fmt::format("{}", result.examples)}});
  if (is_fresh)
    page.paragraph(
        "The model's weights were drawn at random, so its accuracy is that of guessing. What this "
        "page shows is that it runs, what it computes, and how fast.");
  if (plan.steps.empty()) return;  // this device runs node by node
  std::map<std::string, double> seconds_of_op;
  double total = 0;
  for (const engine::PlannedStep& step : plan.steps) {
    seconds_of_op[step.op] += step.seconds;
    total += step.seconds;
  }
  std::vector<std::string> names;
  std::vector<double> shares;
  for (const auto& [op, seconds] : seconds_of_op) {
    names.push_back(op);
    shares.push_back(100 * seconds / total);
  }
  page.svg(report::bar_chart({.title = "Where the time goes",
                              .x = {.label = "kernel"},
                              .y = {.label = "share of thread time, per cent"}},
                             names, {{"share", shares}}));
  report::Table steps({"stage", "kernel", "computes", "ms"});
  for (const engine::PlannedStep& step : plan.steps)
    steps.row({fmt::format("{}", step.stage), kernel_text(step),
               fmt::format("{}", fmt::join(step.origins, " + ")),
               fmt::format("{:.2f}", step.seconds * 1e3)});
  page.details("Every kernel of the plan", steps);
}

}  // namespace lathe::experiment
