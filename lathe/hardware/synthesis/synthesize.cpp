#include "lathe/hardware/synthesis/synthesize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <set>
#include <sstream>

#include "lathe/core/child_process.h"
#include "lathe/core/error.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/block.h"
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

// Reads a design. -defer: a module's memories are opened once their names are known.
std::string reading(const Emission& emission) {
  return fmt::format("read_verilog -sv -defer {}\nhierarchy -top {}\n",
                     fmt::join(emission.sources(), " "), emission.top);
}

std::string script(const Emission& emission, SynthesisTarget target) {
  return target == SynthesisTarget::Xilinx7
             ? fmt::format("{}synth_xilinx -noiopad -top {} -flatten\ntee -o statistics.txt stat\n",
                           reading(emission), emission.top)
             : fmt::format(
                   "{}synth_ice40 -top {} -flatten -json design.json\n"
                   "tee -o statistics.txt stat\n",
                   reading(emission), emission.top);
}

// What stands inside a block is flattened, the blocks are not. Lists which module each became.
std::string script_of_blocks(const Emission& emission) {
  std::set<std::string> flattened{emission.top};
  for (const auto& [name, block] : Registry<Block>::instance().all())
    flattened.insert(block.parts.begin(), block.parts.end());
  std::string kept;
  for (const std::string& source : emission.sources()) {
    const std::string module = std::filesystem::path(source).stem().string();
    if (!flattened.contains(module)) kept += fmt::format(" ={0} =*\\{0}", module);
  }
  return fmt::format(
      "{}setattr -mod -set keep_hierarchy 1{}\nsynth_xilinx -noiopad -top {} -flatten\n"
      "tee -o statistics.txt stat\ndump -o cells.txt {}\n",
      reading(emission), kept, emission.top, emission.top);
}

// Runs a script in a folder that holds the design, once for all: the folder, whose files stay.
std::filesystem::path run_yosys(const Emission& emission, const std::string& suffix,
                                const std::string& script, const ShouldStop& should_stop = {}) {
  if (program_path("yosys").empty())
    throw UserError("designs are synthesized by Yosys, which is not installed",
                    "apt-get install yosys");
  CacheEntry entry(simulator_cache() / "synthesis", emission.digest() + suffix);
  if (!entry.exists()) {
    const std::filesystem::path folder = entry.begin();
    write(emission, folder);
    io::write_atomically(folder / "synthesis.ys", script);
    const auto result = run_program(
        {"sh", "-c", "cd \"$1\" && exec yosys -q -s synthesis.ys", "sh", folder.string()}, "",
        should_stop);
    if (!result) fail("yosys cannot be started");
    if (result->exit_status != 0) fail("yosys: {}{}", result->output, result->errors);
    entry.commit();
  }
  return entry.folder();
}

std::string text_of(const std::filesystem::path& path) {
  return std::string(io::MappedFile::open(path.string())->text());
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

namespace {

// Places and routes what Yosys left in a folder, once for all.
void place(Synthesis& synthesis, const std::filesystem::path& folder,
           const ShouldStop& should_stop) {
  if (program_path("nextpnr-ice40").empty()) {
    synthesis.not_placed = "nextpnr-ice40 is not installed (apt-get install nextpnr-ice40)";
    return;
  }
  const std::filesystem::path report = folder / "placement.txt";
  if (!std::filesystem::exists(report)) {
    const auto result =
        run_program({"nextpnr-ice40", "--hx8k", "--package", "ct256", "--timing-allow-fail",
                     "--json", (folder / "design.json").string()},
                    "", should_stop);
    if (!result) fail("nextpnr-ice40 cannot be started");
    io::write_atomically(report, result->output + result->errors);
  }
  const std::string text = text_of(report);
  synthesis.placement = parse_placement(text);
  if (synthesis.placement) return;
  const std::size_t error = text.find("ERROR: ");
  synthesis.not_placed =
      error == text.npos
          ? "nextpnr-ice40 came to no end"
          : "nextpnr-ice40: " + text.substr(error + 7, text.find('\n', error) - error - 7);
}

}  // namespace

std::optional<Placement> parse_placement(const std::string& text) {
  // "ICESTORM_LC:  1352/ 7680"; the last of the frequencies is that of the routed design.
  constexpr std::string_view kCells = "ICESTORM_LC:", kClock = "Max frequency for clock",
                             kFinished = "Program finished normally";
  const std::size_t cells = text.find(kCells), clock = text.rfind(kClock);
  if (cells == text.npos || clock == text.npos || text.find(kFinished) == text.npos) return {};
  const std::size_t number = text.find("': ", clock);
  if (number == text.npos) return {};
  return Placement{.logic_cells = std::atoll(text.c_str() + cells + kCells.size()),
                   .megahertz = std::atof(text.c_str() + number + 3)};
}

Synthesis synthesize(const Emission& emission, SynthesisTarget target,
                     const ShouldStop& should_stop) {
  const bool is_ice40 = target == SynthesisTarget::Ice40;
  const std::filesystem::path folder =
      run_yosys(emission, is_ice40 ? "-ice40-json" : "", script(emission, target), should_stop);
  Synthesis result = parse_statistics(text_of(folder / "statistics.txt"), target);
  if (is_ice40) place(result, folder, should_stop);
  return result;
}

std::map<std::string, Resources> synthesize_blocks(const Emission& emission) {
  const std::filesystem::path folder = run_yosys(emission, "-blocks", script_of_blocks(emission));
  // "=== MODULE ===" stands above the cells of each.
  std::map<std::string, Resources> modules;
  const std::string text = text_of(folder / "statistics.txt");
  constexpr std::string_view kHead = "\n=== ";
  for (std::size_t at = text.find(kHead); at != text.npos;) {
    const std::size_t next = text.find(kHead, at + 1);
    const std::string part = text.substr(at + kHead.size(), next - at - kHead.size());
    modules[part.substr(0, part.find(' '))] =
        parse_statistics(part, SynthesisTarget::Xilinx7).resources;
    at = next;
  }
  std::map<std::string, Resources> result;
  std::istringstream lines(text_of(folder / "cells.txt"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, module, name;
    words >> kind >> module >> name;
    if (kind != "cell") continue;
    if (module.starts_with('\\')) module.erase(0, 1);
    if (name.starts_with('\\')) name.erase(0, 1);
    if (const auto found = modules.find(module); found != modules.end())
      result[name] = found->second;
  }
  return result;
}

}  // namespace lathe::hardware
