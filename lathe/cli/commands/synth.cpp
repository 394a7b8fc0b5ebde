#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/progress_line.h"
#include "lathe/experiment/hardware/synthesize.h"
#include "lathe/report/table.h"

namespace lathe::cli::synth_command {
namespace {

using experiment::SynthesizeOptions;
using experiment::SynthesizeResult;

void print_result(const SynthesizeOptions& options, const SynthesizeResult& result,
                  const Settings& settings) {
  const hardware::Resources &estimate = result.estimate, &found = result.synthesis.resources;
  if (settings.json) {
    nlohmann::ordered_json line;
    line["target"] = options.target;
    line["estimate"] = {{"dsp", estimate.dsp}, {"bram18", estimate.bram18}, {"lut", estimate.lut}};
    line["yosys"] = {{"dsp", found.dsp}, {"bram18", found.bram18}, {"lut", found.lut}};
    line["registers"] = result.synthesis.registers;
    line["switching_bits"] = result.switching;
    if (result.synthesis.placement)
      line["nextpnr"] = {{"logic_cells", result.synthesis.placement->logic_cells},
                         {"megahertz", result.synthesis.placement->megahertz}};
    if (!result.synthesis.not_placed.empty()) line["not_placed"] = result.synthesis.not_placed;
    line["cells"] = result.synthesis.cells;
    line["seconds"] = settings.seconds();
    print_json(line);
    return;
  }
  // The estimate is of Xilinx 7: nothing is estimated for another target.
  const bool is_estimated = options.target == "xilinx7";
  report::Table table({"resource", "estimate", "Yosys"});
  const auto row = [&](const char* name, std::int64_t expected, std::int64_t got) {
    table.row({name, is_estimated ? fmt::format("{}", expected) : "-", fmt::format("{}", got)});
  };
  row(is_estimated ? "DSP48E1" : "SB_MAC16", estimate.dsp, found.dsp);
  row(is_estimated ? "RAMB18E1" : "SB_RAM40", estimate.bram18, found.bram18);
  row(is_estimated ? "LUT" : "SB_LUT4", estimate.lut, found.lut);
  table.row({"register", "-", fmt::format("{}", result.synthesis.registers)});
  fmt::print("{}", table.to_text());
  if (is_estimated)
    fmt::print("\nup to {:.0f} bits switch in a cycle, by estimate: a proxy of power\n",
               result.switching);
  if (const auto& placement = result.synthesis.placement)
    fmt::print("\nplaced and routed in an HX8K: {} of 7680 logic cells, {:.1f} MHz\n",
               placement->logic_cells, placement->megahertz);
  if (!result.synthesis.not_placed.empty())
    fmt::print("\nnot placed: {}\n", result.synthesis.not_placed);
}

int run(const SynthesizeOptions& options, const Settings& settings) {
  ProgressLine line(settings);
  const SynthesizeResult result = experiment::synthesize(options, line.callbacks());
  line.finish();
  print_result(options, result, settings);
  return 0;
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto options = std::make_shared<SynthesizeOptions>();
  flags.add_option("design", options->design, "the directory that lathe emit wrote").required();
  flags.add_option("--target", options->target, "xilinx7 or ice40 [xilinx7]");
  return [options](const Settings& settings) { return run(*options, settings); };
}

const Register registration{Command{
    .name = "synth",
    .summary = "synthesize a design with Yosys and show it beside the estimate",
    .examples = "  lathe synth d\n"
                "  lathe synth d --target ice40 --json",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::synth_command
