#include "lathe/hardware/synthesis/synthesize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "lathe/core/child_process.h"
#include "lathe/core/error.h"
#include "lathe/hardware/simulation/simulator_cache.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/mapped_file.h"

namespace lathe::hardware {
namespace {

// LUTs that a cell takes besides plain LUTs: memories made of them.
const std::map<std::string, std::int64_t, std::less<>> kMemoryLuts = {
    {"RAM16X1D", 2},  {"RAM32M", 4},   {"RAM32X1D", 2}, {"RAM64M", 4},    {"RAM64X1D", 2},
    {"RAM128X1D", 4}, {"RAM32X1S", 1}, {"RAM64X1S", 1}, {"RAM128X1S", 2}, {"RAM256X1S", 4},
    {"SRL16E", 1},    {"SRLC16E", 1},  {"SRLC32E", 1}};

std::string script(const Emission& emission, SynthesisTarget target) {
  // -defer: a module's memories are opened once their names are known. Only the report's last part
  // is wanted.
  return fmt::format(
      "read_verilog -sv -defer {}\nhierarchy -top {}\n{} -top {} -flatten\ntee -o statistics.txt "
      "stat\n",
      fmt::join(emission.sources(), " "), emission.top,
      target == SynthesisTarget::Xilinx7 ? "synth_xilinx -noiopad" : "synth_ice40", emission.top);
}

}  // namespace

SynthesisTarget parse_target(const std::string& name) {
  if (name == "xilinx7") return SynthesisTarget::Xilinx7;
  if (name == "ice40") return SynthesisTarget::Ice40;
  throw unknown_name("target", name, {"ice40", "xilinx7"});
}

Synthesis parse_statistics(const std::string& text, SynthesisTarget target) {
  Synthesis result;
  std::istringstream lines(text);
  bool is_list = false;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, second, third;
    words >> first >> second >> third;
    if (first == "Number" && second == "of" && third == "cells:") {
      result.cells.clear();  // the last part counts
      is_list = true;
      continue;
    }
    if (!is_list || second.empty() || !third.empty()) {
      if (line.empty()) is_list = false;
      continue;
    }
    if (second.find_first_not_of("0123456789") == std::string::npos)
      result.cells[first] = std::stoll(second);
  }
  for (const auto& [cell, count] : result.cells) {
    if (target == SynthesisTarget::Ice40) {
      if (cell == "SB_LUT4") result.resources.lut += count;
      if (cell == "SB_MAC16") result.resources.dsp += count;
      if (cell.starts_with("SB_RAM40")) result.resources.bram18 += count;
      if (cell.starts_with("SB_DFF")) result.registers += count;
      continue;
    }
    if (cell.starts_with("LUT") && cell.size() == 4) result.resources.lut += count;
    if (const auto memory = kMemoryLuts.find(cell); memory != kMemoryLuts.end())
      result.resources.lut += count * memory->second;
    if (cell == "DSP48E1") result.resources.dsp += count;
    if (cell == "RAMB18E1") result.resources.bram18 += count;
    if (cell == "RAMB36E1") result.resources.bram18 += 2 * count;
    if (cell.starts_with("FD")) result.registers += count;
  }
  return result;
}

Synthesis synthesize(const Emission& emission, SynthesisTarget target) {
  if (program_path("yosys").empty())
    throw UserError("designs are synthesized by Yosys, which is not installed",
                    "apt-get install yosys");
  // A name that nobody else has: what is written is gone when we are done.
  CacheEntry entry(simulator_cache() / "synthesis",
                   emission.digest() + (target == SynthesisTarget::Ice40 ? "-ice40" : ""));
  if (!entry.exists()) {
    const std::filesystem::path folder = entry.begin();
    write(emission, folder);
    io::write_atomically(folder / "synthesis.ys", script(emission, target));
    const auto result = run_program(
        {"sh", "-c", "cd \"$1\" && exec yosys -q -s synthesis.ys", "sh", folder.string()}, "");
    if (!result) fail("yosys cannot be started");
    if (result->exit_status != 0) fail("yosys: {}{}", result->output, result->errors);
    entry.commit();
  }
  const auto file = io::MappedFile::open((entry.folder() / "statistics.txt").string());
  return parse_statistics(std::string(file->text()), target);
}

}  // namespace lathe::hardware
