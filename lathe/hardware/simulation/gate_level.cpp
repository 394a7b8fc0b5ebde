#include "lathe/hardware/simulation/gate_level.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "lathe/core/child_process.h"
#include "lathe/core/error.h"
#include "lathe/hardware/simulation/temporary_folder.h"

namespace lathe::hardware {

GateLevelDesign synthesize_gates(const Netlist& netlist) {
  return synthesize_gates(emit(netlist));
}

GateLevelDesign synthesize_gates(const Emission& emission, const ShouldStop& should_stop) {
  const TemporaryFolder folder;
  write(emission, folder.path());
  std::string script = "read_verilog -sv -defer";
  for (const std::string& source : emission.sources()) script += " " + source;
  script += fmt::format(
      "; synth -top {}; check -assert; tee -o stat.txt stat; write_verilog -noattr gates.v",
      emission.top);
  const auto result =
      run_program({"env", "-C", folder.path(), "yosys", "-q", "-p", script}, "", should_stop);
  if (!result || result->exit_status == 127)
    throw UserError("designs are synthesized by Yosys, which is not installed",
                    "apt-get install yosys");
  if (result->exit_status != 0) fail("yosys failed:\n{}{}", result->errors, result->output);

  const auto read = [&](const char* name) {
    std::ifstream stream(folder.path() / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  GateLevelDesign design{.verilog = read("gates.v"), .visible = {}, .cells = 0};
  const std::string stat = read("stat.txt");
  const std::string label = "Number of cells:";
  if (const std::size_t at = stat.rfind(label); at != stat.npos)
    design.cells = std::atoll(stat.c_str() + at + label.size());
  for (const std::string& name : emission.stream_names) {
    bool is_there = true;
    for (const char* suffix : {"_data;", "_valid;", "_ready;"})
      is_there = is_there && design.verilog.find(" " + name + suffix) != std::string::npos;
    design.visible.push_back(is_there);
  }
  return design;
}

Simulator gate_level_simulator(const Netlist& netlist, const GateLevelDesign& design,
                               const ShouldStop& should_stop) {
  return Simulator(netlist, design.verilog, design.visible, should_stop);
}

}  // namespace lathe::hardware
