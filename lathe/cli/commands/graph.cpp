#include <cstdio>

#include "lathe/cli/command.h"
#include "lathe/cli/execution.h"
#include "lathe/cli/graph_source.h"
#include "lathe/cli/print_json.h"
#include "lathe/core/graph_text.h"
#include "lathe/core/pass.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/graph_json.h"
#include "lathe/report/graph_drawing.h"
#include "lathe/report/graph_page.h"
#include "lathe/report/render.h"
#include "lathe/report/table.h"

namespace lathe::cli::graph_command {
namespace {

// The graph's text with what is known of each node on lines of its own: what its op is, its
// operands' and results' types, and every annotation.
std::string metadata_text(const Graph& graph) {
  std::string text;
  for (const NodeId id : graph.topological_order()) {
    text += print(graph, id) + "\n";
    text += fmt::format("    op          {}: {}\n", graph.op(id).name, graph.op(id).summary);
    for (std::size_t i = 0; i < graph.inputs(id).size(); ++i) {
      const Value value = graph.inputs(id)[i];
      const std::size_t spec = std::min(i, graph.op(id).operands.size() - 1);
      text += fmt::format(
          "    operand {:<3} {} = {}\n", i, graph.op(id).operands[spec].name,
          value.is_none() ? "none" : graph.name(value) + " : " + to_text(graph.type(value)));
    }
    for (std::size_t i = 0; i < graph.types(id).size(); ++i)
      text += fmt::format("    result {:<4} {}\n", i, to_text(graph.types(id)[i]));
    for (const auto& [kind, description] : graph.annotations().describe(id.index))
      text += fmt::format("    {:<11} {}\n", kind, description);
  }
  return text;
}

void print_graph(const Graph& graph, const Settings& settings, bool with_metadata) {
  if (settings.json)
    fmt::print("{}\n", io::to_json(graph));
  else
    fmt::print("{}", with_metadata ? metadata_text(graph) : print(graph));
}

std::function<int(const Settings&)> setup_print(Flags flags) {
  auto source = std::make_shared<GraphSource>();
  auto metadata = std::make_shared<bool>(false);
  add_graph_options(flags, *source);
  flags.add_flag("--metadata", *metadata, "show operators, operands, results and annotations");
  return [source, metadata](const Settings& settings) {
    GraphWithState loaded = load_graph(*source, settings);
    // Costs are known without running anything, so metadata always has them.
    if (*metadata) run_pass("profile", loaded.graph);
    run_passes(loaded, *source, stderr);
    print_graph(loaded.graph, settings, *metadata);
    return 0;
  };
}

std::function<int(const Settings&)> setup_run(Flags flags) {
  auto source = std::make_shared<GraphSource>();
  auto out = std::make_shared<std::string>();
  add_graph_options(flags, *source);
  flags.add_option("--out", *out, "write the graph's text (or .json) to this file");
  return [source, out](const Settings& settings) {
    if (source->passes.empty()) fail("lathe graph run: --passes is missing");
    GraphWithState loaded = load_graph(*source, settings);
    run_passes(loaded, *source, settings.json ? stderr : stdout);
    if (settings.json) fmt::print("{}\n", io::to_json(loaded.graph));
    if (!out->empty())
      io::write_atomically(
          *out, out->ends_with(".json") ? io::to_json(loaded.graph) + "\n" : print(loaded.graph));
    return 0;
  };
}

std::function<int(const Settings&)> setup_draw(Flags flags) {
  auto source = std::make_shared<GraphSource>();
  auto out = std::make_shared<std::string>("graph.svg");
  auto options = std::make_shared<report::DrawOptions>();
  add_graph_options(flags, *source);
  flags.add_option("--out", *out,
                   "the picture: .svg, .html with zoom and search, .png or .dot [graph.svg]");
  flags.add_flag("--states", options->show_states, "draw parameters as nodes of their own");
  flags.add_option("--fold", options->fold_repeats_above,
                   "fold more than this many like layers into one box, 0 for none [4]");
  return [source, out, options](const Settings& settings) {
    GraphWithState loaded = load_graph(*source, settings);
    run_passes(loaded, *source, stderr);
    if (!out->ends_with(".dot") && !out->ends_with(".svg") && !out->ends_with(".png") &&
        !out->ends_with(".html"))
      fail("--out {}: expected a name that ends in .svg, .html, .png or .dot", *out);
    const std::string dot = report::to_dot(loaded.graph, *options);
    if (out->ends_with(".dot"))
      io::write_atomically(*out, dot);
    else if (out->ends_with(".svg"))
      io::write_atomically(*out, report::render_svg(dot));
    else if (out->ends_with(".png"))
      io::write_atomically(*out, report::svg_to_png(report::render_svg(dot)));
    else
      io::write_atomically(
          *out,
          report::graph_page(source->model.model.empty() ? source->graph_file : source->model.model,
                             report::render_svg(dot)));
    if (settings.json)
      print_json({{"out", *out}, {"nodes", loaded.graph.num_nodes()}});
    else
      fmt::print("wrote {}\n", *out);
    return 0;
  };
}

std::function<int(const Settings&)> setup_steps(Flags flags) {
  auto source = std::make_shared<GraphSource>();
  add_graph_options(flags, *source);
  return [source](const Settings& settings) {
    GraphWithState loaded = load_graph(*source, settings);
    run_passes(loaded, *source, stderr);
    Execution execution(settings);
    const engine::PlanReport report =
        engine::make_executor(loaded.graph, std::move(loaded.state), execution.options())->report();
    if (report.steps.empty())
      fail("--device {}: plans no steps, it runs node by node", settings.device);
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    report::Table table({"stage", "kernel", "why", "computes"});
    for (const engine::PlannedStep& step : report.steps) {
      list.push_back({{"stage", step.stage},
                      {"kernel", step.op},
                      {"reference", step.is_reference},
                      {"computes", step.origins},
                      {"choice", step.choice.kernel},
                      {"why", step.choice.reason},
                      {"for_states", step.is_for_states}});
      table.row({step.is_for_states ? "states" : fmt::format("{}", step.stage), kernel_text(step),
                 step.choice.reason, fmt::format("{}", fmt::join(step.origins, " + "))});
    }
    if (settings.json)
      print_json(list);
    else
      fmt::print("{}", table.to_text());
    return 0;
  };
}

std::function<int(const Settings&)> setup_passes(Flags) {
  return [](const Settings& settings) {
    bool is_first = true;
    if (settings.json) fmt::print("[");
    for (const auto& [name, pass] : PassRegistry::instance().all()) {
      if (settings.json) {
        fmt::print("{}{{\"name\": \"{}\", \"summary\": \"{}\"}}", is_first ? "" : ", ", name,
                   pass.summary);
        is_first = false;
        continue;
      }
      fmt::print("{:<34} {}\n", name, pass.summary);
      for (const AttributeSpec& option : pass.options)
        fmt::print("{:<34}   {}={}: {}\n", "", option.name, to_text(option.default_value),
                   option.summary);
    }
    if (settings.json) fmt::print("]\n");
    return 0;
  };
}

const Register print_command{Command{
    .name = "graph print",
    .summary = "print a model's graph",
    .examples = "  lathe graph print --model bert-tiny --task classify\n"
                "  lathe graph print --model DIR --inputs input_ids,labels --metadata\n"
                "  lathe graph print --model mlp:4,8 --json",
    .setup = setup_print,
}};
const Register run_command{Command{
    .name = "graph run",
    .summary = "run passes and say what each found or changed",
    .examples =
        "  lathe graph run --model bert-tiny --passes count-dropout,remove-dropout,count-dropout\n"
        "  lathe graph run --model DIR --passes \"profile{B=8, L=128}\"\n"
        "  lathe graph run --model DIR --data D --passes measure-statistics",
    .setup = setup_run,
}};
const Register draw_command{Command{
    .name = "graph draw",
    .summary = "draw a graph as SVG, PNG or a page with zoom and search",
    .examples = "  lathe graph draw --model bert-tiny --out bert.svg\n"
                "  lathe graph draw --model q8 --out q8.html\n"
                "  lathe graph draw --model DIR --passes remove-dropout --out bert.png\n"
                "  lathe graph draw --graph graph.txt --states",
    .setup = setup_draw,
}};
const Register steps_command{Command{
    .name = "graph steps",
    .summary = "list the kernels that a graph is planned as, and where zeros are left out",
    .examples = "  lathe graph steps --model DIR\n"
                "  lathe graph steps --model DIR --passes pack-sequences --json",
    .setup = setup_steps,
}};
const Register passes_command{Command{
    .name = "graph passes",
    .summary = "list the passes and their options",
    .examples = "  lathe graph passes\n  lathe graph passes --json",
    .setup = setup_passes,
}};

}  // namespace
}  // namespace lathe::cli::graph_command
