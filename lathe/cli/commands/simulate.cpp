#include "lathe/experiment/hardware/simulate.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "lathe/cli/command.h"
#include "lathe/cli/execution.h"
#include "lathe/cli/print_json.h"
#include "lathe/cli/progress_line.h"

namespace lathe::cli::simulate_command {
namespace {

using experiment::SimulatedOutput;
using experiment::SimulateResult;

constexpr std::int64_t kShownBeats = 8;

// The elements of a beat that mean something.
std::vector<std::int64_t> beat_of(const hardware::Values& values, const hardware::Stream& stream,
                                  std::int64_t beat) {
  const std::int64_t vector = beat / stream.beats_per_vector();
  const std::int64_t first = beat % stream.beats_per_vector() * stream.lanes;
  const std::int64_t last = std::min(first + stream.lanes, stream.size);
  std::vector<std::int64_t> result;
  for (std::int64_t i = first; i < last; ++i)
    if (const auto at = static_cast<std::size_t>(vector * stream.size + i); at < values.size())
      result.push_back(values[at]);
  return result;
}

std::int64_t num_beats(const SimulatedOutput& output) {
  return std::ssize(output.expected) / output.stream.size * output.stream.beats_per_vector();
}

void print_json_result(const SimulateResult& result, const Settings& settings) {
  nlohmann::ordered_json line;
  line["exact"] = result.is_exact();
  line["examples"] = result.examples;
  line["runs"] = result.runs;
  line["cycles"] = result.simulation.cycles;
  line["predicted_cycles"] = result.predicted_cycles;
  line["simulated_ns"] = result.simulated_nanoseconds();
  line["compared"] = result.simulation.num_compared;
  line["different"] = result.num_wrong();
  line["build_seconds"] = result.build_seconds;
  line["test_seconds"] = result.test_seconds;
  line["cached"] = result.was_cached;
  if (result.gates > 0) line["gates"] = result.gates;
  for (const SimulatedOutput& output : result.outputs) {
    nlohmann::ordered_json row{{"name", output.name},
                               {"differs_from_quantized", output.quantized_differences},
                               {"mean_deviation_from_float", output.mean_deviation},
                               {"largest_deviation_from_float", output.largest_deviation}};
    row["beats"] = nlohmann::ordered_json::array();
    for (std::int64_t beat = 0; beat < num_beats(output); ++beat)
      row["beats"].push_back({{"got", beat_of(output.got, output.stream, beat)},
                              {"expected", beat_of(output.expected, output.stream, beat)}});
    line["outputs"].push_back(std::move(row));
  }
  if (result.classes)
    line["classes"] = {{"as_quantized", result.classes->as_quantized},
                       {"right", result.classes->right}};
  line["own_layers"] = result.own_layers;
  line["problems"] = result.problems;
  line["seconds"] = settings.seconds();
  print_json(line);
}

void print_output(const SimulatedOutput& output, bool has_own_layers) {
  fmt::print("\n{}: {}\n", output.name, output.stream.text());
  const std::int64_t beats = num_beats(output);
  for (std::int64_t beat = 0; beat < beats; ++beat) {
    const std::vector<std::int64_t> got = beat_of(output.got, output.stream, beat);
    const std::vector<std::int64_t> expected = beat_of(output.expected, output.stream, beat);
    if (beat >= kShownBeats && got == expected) continue;
    fmt::print("  beat {}: got [{}], expected [{}]{}\n", beat, fmt::join(got, ", "),
               fmt::join(expected, ", "), got == expected ? "" : "  <- differs");
  }
  if (beats > kShownBeats) fmt::print("  {} beats in all\n", beats);
  if (!has_own_layers)
    fmt::print("  {} of {} elements differ from the quantized model's\n",
               output.quantized_differences, output.expected.size());
  fmt::print("  from the float model {:.2f} steps of the last bit on average, {:.2f} at most\n",
             output.mean_deviation, output.largest_deviation);
}

void print_result(const SimulateResult& result, const Settings& settings) {
  fmt::print("examples     {}{}\n", result.examples,
             result.runs > 1 ? fmt::format(" in {} runs", result.runs) : "");
  fmt::print("simulated    {:.0f} ns, {} cycles, {} predicted without stalls\n",
             result.simulated_nanoseconds(), result.simulation.cycles, result.predicted_cycles);
  const double seconds = settings.seconds();
  fmt::print("wall time    {:.3f} s: build {:.3f} s{}, test {:.4f} s\n", seconds,
             result.build_seconds, result.was_cached ? " (cached)" : "", result.test_seconds);
  if (result.gates > 0) fmt::print("gates        {} cells by Yosys\n", result.gates);
  fmt::print("speed        {:.0f} simulated ns a second\n",
             result.simulated_nanoseconds() / result.test_seconds);
  fmt::print("compared     {} elements on {} streams, {} differ\n", result.simulation.num_compared,
             result.simulation.streams.size(), result.num_wrong());
  if (!result.own_layers.empty())
    fmt::print("own layers   {}: by their definitions\n", fmt::join(result.own_layers, ", "));
  for (const SimulatedOutput& output : result.outputs)
    print_output(output, !result.own_layers.empty());
  if (result.classes)
    fmt::print(
        "\nclasses      {} of {} are the quantized model's, {} are right ({:.2f} %)\n",
        result.classes->as_quantized, result.examples, result.classes->right,
        100.0 * static_cast<double>(result.classes->right) / static_cast<double>(result.examples));
  if (!result.waves.empty()) fmt::print("\nwaves in {}", result.waves.string());
  if (!result.picture.empty()) fmt::print(", the first cycles in {}", result.picture.string());
  if (!result.waves.empty()) fmt::print("\n");
}

int run(experiment::SimulateOptions options, const Settings& settings) {
  options.seed = settings.seed;
  Execution execution(settings);
  ProgressLine line(settings);
  const SimulateResult result =
      experiment::simulate(options, execution.options(), line.callbacks());
  line.finish();
  if (settings.json)
    print_json_result(result, settings);
  else
    print_result(result, settings);
  if (result.is_exact()) return 0;
  if (!settings.json) fmt::print("\n{}", result.problems);
  fail("the hardware differs from its definition in {} elements", result.num_wrong());
}

std::function<int(const Settings&)> setup(Flags flags) {
  auto options = std::make_shared<experiment::SimulateOptions>();
  flags.add_option("design", options->design, "the directory that lathe emit wrote").required();
  flags.add_option("--data", options->data, "data to feed the design with [numbers drawn]");
  flags.add_option("--split", options->split, "of the data [test]");
  flags.add_option("--inputs", options->inputs, "safetensors file with a tensor for each input");
  flags.add_option("--examples", options->examples, "how many to run [1]")
      .range(1, std::int64_t{1} << 40);
  flags.add_option("--stalls", options->stalls,
                   "share of cycles in which streams at the edge pause, 0 to 0.99 [0]");
  flags.add_flag("--gates", options->gates, "run the netlist that Yosys makes of the design");
  flags.add_flag("--waves", options->waves, "write waves beside the design, and a picture of them");
  flags.add_option("--wave-format", options->wave_format, "vcd, or fst for GTKWave alone [vcd]");
  return [options](const Settings& settings) { return run(*options, settings); };
}

const Register registration{Command{
    .name = "simulate",
    .summary = "run a design in Verilator and compare every beat with the model",
    .examples = "  lathe simulate d\n"
                "  lathe simulate d --examples 100 --stalls 0.25\n"
                "  lathe simulate d --data D --examples 1000\n"
                "  lathe simulate d --inputs x.safetensors --waves",
    .setup = setup,
}};

}  // namespace
}  // namespace lathe::cli::simulate_command
