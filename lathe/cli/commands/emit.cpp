#include "lathe/experiment/hardware/emit.h"

#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/print_json.h"
#include "lathe/experiment/hardware/hardware_report.h"

namespace lathe::cli::emit_command {
namespace {

struct Arguments {
  experiment::EmitOptions options;
  std::optional<int> cycles, dsp, bram, lut;
};

void print_result(const experiment::EmitOptions& options, const experiment::EmitResult& result,
                  const Settings& settings) {
  const hardware::Design& design = result.design;
  if (settings.json) {
    nlohmann::ordered_json line;
    line["out"] = options.out.string();
    line["cycles"] = design.frame_interval;
    line["latency"] = design.latency;
    line["dsp"] = design.resources.dsp;
    line["bram18"] = design.resources.bram18;
    line["lut"] = design.resources.lut;
    if (!design.device.empty()) line["device"] = design.device;
    line["switching_bits"] = design.switching;
    for (const auto& [layer, lanes] : design.parallelism)
      line["parallelism"][layer] = {lanes.in, lanes.out};
    for (const hardware::FifoChoice& fifo : design.fifos)
      line["fifos"].push_back(
          {{"stream", fifo.stream}, {"depth", fifo.depth}, {"tight", fifo.is_tight}});
    line["files"] = result.files;
    line["seconds"] = settings.seconds();
    print_json(line);
    return;
  }
  fmt::print("{}", experiment::layer_table(design).to_text());
  if (!design.fifos.empty()) fmt::print("\n{}", experiment::fifo_table(design).to_text());
  fmt::print("\nan example   every {} cycles, {} from its first beat to its last\n",
             design.frame_interval, design.latency);
  fmt::print("takes about  {}{}\n", hardware::to_text(design.resources),
             design.device.empty() ? "" : fmt::format(", of a {}", design.device));
  fmt::print("switches     up to {:.0f} bits a cycle, {:.3g} an example: a proxy of its power\n",
             design.switching, design.switching * static_cast<double>(design.frame_interval));
  fmt::print("written to {}: {}.sv, rtl/, memory/, index.html\n", options.out.string(),
             options.name);
}

int run(Arguments arguments, const Settings& settings) {
  experiment::EmitOptions& options = arguments.options;
  options.cycles = arguments.cycles;
  options.dsp = arguments.dsp;
  options.bram = arguments.bram;
  options.lut = arguments.lut;
  options.seed = settings.seed;
  print_result(options, experiment::emit(options), settings);
  return 0;
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto arguments = std::make_shared<Arguments>();
  experiment::EmitOptions& options = arguments->options;
  flags.add_option("--model", options.model, "a quantized model's directory").required();
  flags.add_option("--out", options.out, "directory to write").required();
  flags.add_option("--cycles", arguments->cycles,
                   "from one example to the next, at most; lanes that take least are chosen");
  flags.add_option("--dsp", arguments->dsp,
                   "multipliers to spend; the fastest lanes within are chosen [without any goal: "
                   "all of a Zynq 7020, or of a larger device]");
  flags.add_option("--bram", arguments->bram, "block RAMs of 18 kbit to spend");
  flags.add_option("--lut", arguments->lut, "lookup tables to spend, by estimate");
  flags
      .add_option("--parallelism", options.parallelism,
                  "lanes of a layer, LAYER=INxOUT, such as layers.0=4x8; several with commas")
      .separated_by(',');
  flags.add_option("--rules", options.rules,
                   "TOML file of [[layer]] with name, parallelism, or a module of your own");
  flags.add_option("--toolchain", options.toolchain,
                   "internal; what is external stands in --rules, and HLS is out of scope");
  flags
      .add_option("--length", options.length,
                  "tokens of an example, for models of texts; longer texts are cut [128]")
      .at_least(1);
  flags.add_option("--name", options.name, "of the top module [top]");
  flags.add_flag("--force", options.replaces, "replace the design in --out");
  return [arguments](const Settings& settings) { return run(*arguments, settings); };
}

const Register registration{Command{
    .name = "emit",
    .summary = "make SystemVerilog of a quantized model",
    .examples = "  lathe emit --model q --out d --parallelism layers.0=4x4\n"
                "  lathe emit --model q --out d --cycles 1000\n"
                "  lathe emit --model q --out d --dsp 64 --bram 40\n"
                "  lathe emit --model q --out d --rules hardware.toml",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::emit_command
