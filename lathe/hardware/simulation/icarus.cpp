#include "lathe/hardware/simulation/icarus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "lathe/core/child_process.h"
#include "lathe/core/error.h"
#include "lathe/hardware/emission.h"
#include "lathe/hardware/schedule.h"
#include "lathe/hardware/simulation/temporary_folder.h"

namespace lathe::hardware {
namespace {

bool contains(const std::vector<StreamId>& list, StreamId stream) {
  return std::find(list.begin(), list.end(), stream) != list.end();
}

// The beats of a stream, empty lanes filled with zeros; or which bits of them mean something.
MemoryImage beat_image(const Stream& type, const Values& values, bool is_mask) {
  MemoryImage image{.width = type.element.width, .per_word = type.lanes};
  const std::int64_t lanes = type.beats_per_vector() * type.lanes;
  for (std::size_t at = 0; at < values.size(); at += static_cast<std::size_t>(type.size))
    for (std::int64_t i = 0; i < lanes; ++i)
      image.elements.push_back(i >= type.size ? 0
                               : is_mask      ? -1
                                              : values[at + static_cast<std::size_t>(i)]);
  return image;
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  if (!stream.flush()) fail("{}: cannot be written", path.string());
}

std::string run_in(const std::filesystem::path& folder, std::vector<std::string> words) {
  const std::string tool = words[0];
  words.insert(words.begin(), {"env", "-C", folder});
  const auto result = run_program(words, "");
  if (!result || result->exit_status == 127) fail("{} is not installed (Debian: iverilog)", tool);
  if (result->exit_status != 0) fail("{} failed:\n{}{}", tool, result->errors, result->output);
  return result->output;
}

}  // namespace

std::string icarus_bench(const Netlist& netlist, std::int64_t frames, int stall) {
  const Emission emission = emit(netlist);
  std::string text =
      R"(// Feeds recorded beats to the design and compares every beat of every stream.
`timescale 1ns / 1ns
module bench;
  reg clk = 0, rst = 1;
  always #5 clk = !clk;
  integer cycle = 0, beats = 0, differences = 0;
)";
  std::string ports = "    .clk(clk),\n    .rst(rst)", steps, done = "1";
  for (StreamId stream = 0; stream < netlist.streams().size(); ++stream) {
    const std::string& name = emission.stream_names[stream];
    const Stream& type = netlist.type(stream);
    const bool is_input = contains(netlist.inputs(), stream);
    const bool is_output = contains(netlist.outputs(), stream);
    const std::int64_t count = frames * type.beats();
    text += fmt::format(
        "\n  // {0}: {1}\n  reg [{2}:0] {0}_beats[0:{3}], {0}_masks[0:{3}];\n"
        "  integer {0}_at = 0;\n"
        "  initial $readmemh(\"vectors/{0}.mem\", {0}_beats);\n"
        "  initial $readmemh(\"vectors/{0}_mask.mem\", {0}_masks);\n",
        name, type.text(), type.bits() - 1, count - 1);
    if (is_input)
      text += fmt::format("  reg [{1}:0] {0}_data;\n  reg {0}_valid = 0;\n  wire {0}_ready;\n",
                          name, type.bits() - 1);
    else if (is_output)
      text += fmt::format("  wire [{1}:0] {0}_data;\n  wire {0}_valid;\n  reg {0}_ready = 0;\n",
                          name, type.bits() - 1);
    if (is_input || is_output)
      for (const char* suffix : {"data", "valid", "ready"})
        ports += fmt::format(",\n    .{0}_{1}({0}_{1})", name, suffix);
    const std::string net = (is_input || is_output ? "" : "design_.") + name;
    steps += fmt::format(
        "    if ({1}_valid && {1}_ready) begin\n"
        "      beats = beats + 1;\n"
        "      if ({0}_at >= {2} || (({1}_data ^ {0}_beats[{0}_at]) & {0}_masks[{0}_at]) !== 0)\n"
        "        differences = differences + 1;\n"
        "      {0}_at = {0}_at + 1;\n"
        "    end\n",
        name, net, count);
    if (is_input)
      steps += fmt::format(
          "    if (!{0}_valid || {0}_ready) begin\n"
          "      {0}_valid <= {0}_at < {1} && ($random & 255) >= {2};\n"
          "      {0}_data  <= {0}_beats[{0}_at];\n"
          "    end\n",
          name, count, stall);
    if (is_output) {
      steps += fmt::format("    {}_ready <= ($random & 255) >= {};\n", name, stall);
      done += fmt::format(" && {}_at >= {}", name, count);
    }
  }
  const std::int64_t limit = 4000 + 16 * frames * bottleneck_cycles(netlist) +
                             16 * schedule(netlist, {.frames = frames}).cycles;
  text += fmt::format(R"(
  {} design_ (
{}
  );

  always @(posedge clk) if (!rst) begin
    cycle = cycle + 1;
{}    if ({} || cycle > {}) begin
      $display("cycles %0d beats %0d differences %0d finished %0d", cycle, beats, differences,
               cycle <= {});
      $finish;
    end
  end
  initial begin
    repeat (2) @(posedge clk);
    #1 rst = 0;
  end
endmodule
)",
                      emission.top, ports, steps, done, limit, limit);
  return text;
}

IcarusResult run_icarus(const Netlist& netlist, const std::vector<Values>& inputs, int stall) {
  const TemporaryFolder folder;
  const Emission emission = emit(netlist);
  const std::vector<Values> values = evaluate(netlist, inputs);
  write(emission, folder.path());
  for (StreamId stream = 0; stream < values.size(); ++stream) {
    const std::filesystem::path vectors = folder.path() / "vectors";
    const std::string& name = emission.stream_names[stream];
    write_text(vectors / (name + ".mem"),
               beat_image(netlist.type(stream), values[stream], false).text());
    write_text(vectors / (name + "_mask.mem"),
               beat_image(netlist.type(stream), values[stream], true).text());
  }
  const StreamId first = netlist.inputs().at(0);
  const std::int64_t frames =
      static_cast<std::int64_t>(values[first].size()) / netlist.type(first).num_elements();
  write_text(folder.path() / "bench.sv", icarus_bench(netlist, frames, stall));
  std::vector<std::string> words = {"iverilog", "-g2012", "-s", "bench", "-o", "bench.vvp"};
  for (const std::string& source : emission.sources()) words.push_back(source);
  words.push_back("bench.sv");
  run_in(folder.path(), words);
  const std::string said = run_in(folder.path(), {"vvp", "-n", "bench.vvp"});

  long long cycles = 0, beats = 0, differences = 0;
  int finished = 0;
  const std::size_t line = said.find("cycles ");
  if (line == said.npos ||
      std::sscanf(said.c_str() + line, "cycles %lld beats %lld differences %lld finished %d",
                  &cycles, &beats, &differences, &finished) != 4)
    fail("vvp did not finish:\n{}", said);
  return {
      .beats = beats, .differences = differences, .cycles = cycles, .is_finished = finished != 0};
}

}  // namespace lathe::hardware
