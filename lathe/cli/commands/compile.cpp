#include <algorithm>
#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/execution.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/progress_line.h"
#include "lathe/experiment/compilation.h"
#include "lathe/report/table.h"

namespace lathe::cli::compile_command {
namespace {

struct Arguments {
  experiment::CompilationOptions options;
  bool is_shown = false;
};

std::string megabytes(double bytes) {
  return fmt::format("{:.2f} MB", bytes / 1e6);
}

nlohmann::ordered_json to_json(const experiment::Compilation& compiled, bool is_measured) {
  nlohmann::ordered_json line = {{"nodes", compiled.nodes},
                                 {"node_bytes", compiled.node_bytes},
                                 {"kernels", compiled.kernels.size()},
                                 {"kernel_bytes", compiled.kernel_bytes()},
                                 {"arena_bytes", compiled.arena_bytes},
                                 {"arena_bytes_unshared", compiled.unshared_bytes},
                                 {"seconds", compiled.seconds},
                                 {"plan_seconds", compiled.plan_seconds}};
  if (is_measured) {
    line["run_seconds"] = compiled.run_seconds;
    line["peak_flops"] = compiled.peak_flops;
    line["bandwidth"] = compiled.bandwidth;
  }
  for (const experiment::CompiledKernel& kernel : compiled.kernels) {
    nlohmann::ordered_json one = {{"stage", kernel.stage},   {"kernel", kernel.kernel},
                                  {"name", kernel.name},     {"origins", kernel.origins},
                                  {"layout", kernel.layout}, {"stage_reason", kernel.stage_reason},
                                  {"flops", kernel.flops},   {"bytes", kernel.bytes}};
    if (!kernel.choice_reason.empty()) one["why"] = kernel.choice_reason;
    if (is_measured) {
      one["seconds"] = kernel.seconds;
      one["share_of_roofline"] = compiled.share_of_roofline(kernel);
    }
    line["plan"].push_back(one);
  }
  for (const engine::FusionNote& note : compiled.unfused)
    line["unfused"].push_back(
        {{"first", note.first}, {"second", note.second}, {"reason", note.reason}});
  return line;
}

void print_plan(const experiment::Compilation& compiled, bool is_measured) {
  std::vector<std::string> headers = {"stage", "kernel", "computes", "layout", "MFLOP", "MB"};
  const bool has_choices = std::ranges::any_of(
      compiled.kernels,
      [](const experiment::CompiledKernel& kernel) { return !kernel.choice_reason.empty(); });
  if (has_choices) headers.insert(headers.begin() + 2, "why");
  if (is_measured) headers.insert(headers.end(), {"thread ms", "GFLOP/s", "of roofline"});
  report::Table table(headers);
  int last = -1;
  for (const experiment::CompiledKernel& kernel : compiled.kernels) {
    std::vector<std::string> cells = {
        kernel.stage == last ? "" : fmt::format("{}: {}", kernel.stage, kernel.stage_reason),
        kernel.kernel,
        fmt::format("{}", fmt::join(kernel.origins, " + ")),
        kernel.layout,
        fmt::format("{:.1f}", kernel.flops / 1e6),
        fmt::format("{:.2f}", kernel.bytes / 1e6)};
    last = kernel.stage;
    if (has_choices) cells.insert(cells.begin() + 2, kernel.choice_reason);
    if (is_measured) {
      cells.push_back(fmt::format("{:.3f}", kernel.seconds * 1e3));
      cells.push_back(fmt::format(
          "{:.1f}",
          kernel.seconds > 0 ? kernel.flops / (kernel.seconds / compiled.threads) / 1e9 : 0.0));
      cells.push_back(fmt::format("{:.0f} %", 100 * compiled.share_of_roofline(kernel)));
    }
    table.row(cells);
  }
  fmt::print("\n{}", table.to_text());
  if (!compiled.unfused.empty()) {
    report::Table notes({"not fused", "with", "because"});
    for (const engine::FusionNote& note : compiled.unfused)
      notes.row({note.first, note.second, note.reason});
    fmt::print("\n{}", notes.to_text());
  }
}

int run(Arguments arguments, const Settings& settings) {
  arguments.options.seed = settings.seed;
  Execution execution(settings);
  ProgressLine line(settings);
  const experiment::Compilation compiled = experiment::compile(
      arguments.options, execution.answering(arguments.options.simulates), line.callbacks());
  line.finish();
  const bool is_measured = arguments.options.is_measured;
  if (settings.json) {
    print_json(to_json(compiled, is_measured));
    return 0;
  }
  int stages = 0;
  for (const experiment::CompiledKernel& kernel : compiled.kernels)
    stages = std::max(stages, kernel.stage + 1);
  fmt::print("before      {} nodes that read and write {}\n", compiled.nodes,
             megabytes(compiled.node_bytes));
  fmt::print("after       {} kernels in {} stages that read and write {}\n",
             compiled.kernels.size(), stages, megabytes(compiled.kernel_bytes()));
  fmt::print("arena       {} for values that take {}\n",
             megabytes(static_cast<double>(compiled.arena_bytes)),
             megabytes(static_cast<double>(compiled.unshared_bytes)));
  if (is_measured) {
    double flops = 0;
    for (const experiment::CompiledKernel& kernel : compiled.kernels) flops += kernel.flops;
    fmt::print("compiled    in {:.1f} ms with its weights, planned in {:.1f} ms without\n",
               compiled.seconds * 1e3, compiled.plan_seconds * 1e3);
    fmt::print(
        "run         {:.3f} ms on {} threads: {:.1f} of {:.1f} GFLOP/s, memory {:.1f} GB/s\n",
        compiled.run_seconds * 1e3, compiled.threads, flops / compiled.run_seconds / 1e9,
        compiled.peak_flops / 1e9, compiled.bandwidth / 1e9);
  }
  if (arguments.is_shown) print_plan(compiled, is_measured);
  return 0;
}

const Register registration{Command{
    .name = "compile",
    .summary = "what a model becomes before it runs: kernels, layouts, memory, and why",
    .examples = "  lathe compile --model bert-base --task classify --rows 16 --show\n"
                "  lathe compile --model DIR --training --show --measure",
    .setup =
        [](Flags flags) {
          auto arguments = std::make_shared<Arguments>();
          experiment::CompilationOptions& options = arguments->options;
          flags.add_option("--model", options.model, "model directory or a builder's name")
              .required();
          flags.add_option("--task", options.task, "what the model is for [its own]");
          flags.add_option("--rows", options.rows, "sequences or examples of a batch [8]")
              .range(1, 1 << 20);
          flags
              .add_option("--length", options.length,
                          "tokens of a sequence [128, or the model's most]")
              .range(1, 1 << 20);
          flags.add_flag("--training", options.is_training, "a step of training, not the model");
          flags.add_flag("--simulate", options.simulates, kSimulateHelp);
          flags.add_flag("--show", arguments->is_shown, "every kernel, and what was not fused");
          flags.add_flag("--measure", options.is_measured,
                         "run it: the time of each kernel and its share of the roofline");
          return [arguments](const Settings& settings) { return run(*arguments, settings); };
        },
}};

}  // namespace
}  // namespace lathe::cli::compile_command
