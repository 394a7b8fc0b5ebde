#include "lathe/experiment/hardware/simulate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "lathe/compress/integer/lower_to_integer.h"
#include "lathe/compress/packed_weights.h"
#include "lathe/core/error.h"
#include "lathe/core/select_outputs.h"
#include "lathe/experiment/hardware/wave_picture.h"
#include "lathe/experiment/read_data.h"
#include "lathe/hardware/design_file.h"
#include "lathe/hardware/simulation/gate_level.h"
#include "lathe/hardware/simulation/simulate_groups.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/model.h"
#include "lathe/io/safetensors.h"
#include "lathe/ops/elements.h"
#include "lathe/ops/integer/integer_result.h"
#include "lathe/train/make_source.h"

namespace lathe::experiment {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Rows of the smallest table that an input is looked up in; 2 where it is in none.
std::int64_t num_rows(const Graph& graph, NodeId input) {
  std::int64_t rows = std::numeric_limits<std::int64_t>::max();
  for (const NodeId user : graph.users(input))
    if (graph.is(user, "embedding"))
      rows = std::min(rows, graph.type(graph.input(user, 1)).dims({}).front());
  return rows == std::numeric_limits<std::int64_t>::max() ? 2 : rows;
}

// Numbers that the inputs can hold, each of them as likely as any other; texts of any length.
Feed drawn_examples(const Graph& graph, const hardware::Design& design, std::int64_t examples,
                    std::uint64_t seed) {
  std::mt19937_64 random(seed);
  SymbolValues symbols = design.symbols;
  symbols["B"] = examples;
  const auto port_of = [&](NodeId input) {
    return std::ranges::find(design.inputs, graph.name(input), &hardware::DesignPort::name);
  };
  Feed feed;
  for (const NodeId input : graph.nodes_of("input")) {
    const Type& type = graph.types(input)[0];
    Tensor tensor(type.dtype, type.dims(symbols));
    const auto port = port_of(input);
    if (is_floating(type.dtype) && port != design.inputs.end()) {
      const auto span = static_cast<std::uint64_t>(port->range.high() - port->range.low()) + 1;
      for (float& value : tensor.mutable_data<float>())
        value = static_cast<float>(
            static_cast<double>(port->range.low() + static_cast<std::int64_t>(random() % span)) *
            port->scale.front());
    } else {
      std::vector<std::int64_t> values;
      const std::int64_t size = tensor.num_elements() / examples;
      const auto rows = static_cast<std::uint64_t>(num_rows(graph, input));
      for (std::int64_t example = 0; example < examples; ++example) {
        const auto length =
            static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size)) + 1;
        for (std::int64_t i = 0; i < size; ++i)
          values.push_back(port != design.inputs.end() && port->is_length
                               ? (i < length ? 1 : 0)
                               : static_cast<std::int64_t>(random() % rows));
      }
      ops::write_integers(tensor, values);
    }
    feed[graph.name(input)] = std::move(tensor);
  }
  return feed;
}

Feed examples_of_file(const hardware::Design& design, const std::filesystem::path& path) {
  const io::SafetensorsFile file = io::SafetensorsFile::open(path);
  Feed feed;
  for (const hardware::DesignPort& port : design.inputs) {
    if (!file.has(port.name)) fail("{}: has no tensor \"{}\"", path.string(), port.name);
    Tensor tensor = file.tensor(port.name).converted(DType::F32);
    std::vector<std::int64_t> dims = port.dims;
    if (tensor.rank() == dims.size()) {  // one example, without an axis for it
      dims.insert(dims.begin(), 1);
      tensor = tensor.reshaped(dims);
    } else {
      dims.insert(dims.begin(), tensor.rank() == 0 ? 0 : tensor.dim(0));
    }
    if (tensor.dims() != dims || dims[0] < 1)
      fail("{}: \"{}\" is {}, and expected examples of {}", path.string(), port.name,
           to_text(tensor.dims()), to_text(port.dims));
    feed[port.name] = std::move(tensor);
  }
  return feed;
}

// A batch of texts is as long as its longest; a design has one length for all.
Tensor padded(const Tensor& tensor, std::int64_t length) {
  if (tensor.rank() != 2 || tensor.dim(1) >= length) return tensor;
  Tensor result(tensor.dtype(), {tensor.dim(0), length});
  const auto row = static_cast<std::size_t>(tensor.num_bytes() / tensor.dim(0));
  const auto longer = static_cast<std::size_t>(result.num_bytes() / tensor.dim(0));
  std::byte* const to = result.mutable_bytes();
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.dim(0)); ++i)
    std::memcpy(to + i * longer, tensor.bytes() + i * row, row);
  return result;
}

struct LabelledFeed {
  Feed feed;
  std::vector<std::int32_t> labels = {};
};

LabelledFeed examples_of_data(const hardware::Design& design, const io::Model& model,
                              const SimulateOptions& options,
                              const engine::ExecutionOptions& execution,
                              const Callbacks& callbacks) {
  const auto length = design.symbols.find("L");
  const std::int64_t most = length == design.symbols.end() ? 0 : length->second;
  const data::Dataset dataset =
      read_examples(model, options.data, options.split, options.examples, callbacks.should_stop);
  const auto source = train::make_evaluation_source(
      model, dataset, {.objective = train::objective_of(model), .length = most, .is_padded = true},
      execution.pool, callbacks.should_stop);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < std::min(source->size(), options.examples); ++i) rows.push_back(i);
  if (rows.empty()) fail("{}: has no examples", options.data);
  LabelledFeed result{.feed = source->evaluation_batch(rows).feed};
  if (most > 0)
    for (auto& [name, tensor] : result.feed) tensor = padded(tensor, most);
  for (const std::int64_t row : rows) result.labels.push_back(source->label(row));
  return result;
}

// The inputs that a graph has, of those that are there.
Feed feed_of(const Graph& graph, const Feed& all) {
  Feed feed;
  for (const NodeId node : graph.nodes_of("input")) {
    const auto found = all.find(graph.name(node));
    if (found == all.end()) fail("there are no values for input \"{}\"", graph.name(node));
    feed.insert(*found);
  }
  return feed;
}

// What passes at the ports of a design, by node, as the integer model says.
std::map<std::string, std::vector<std::int64_t>, std::less<>> port_integers(
    Graph graph, State state, const hardware::Design& design, const Feed& feed,
    const engine::ExecutionOptions& execution) {
  std::vector<std::string> names;
  for (const auto* ports : {&design.inputs, &design.outputs})
    for (const hardware::DesignPort& port : *ports)
      if (std::ranges::find(names, port.node) == names.end()) names.push_back(port.node);
  for (const auto& [name, value] : std::vector(graph.outputs())) graph.remove_output(name);
  std::map<std::string, std::vector<std::int64_t>, std::less<>> result;
  for (const std::string& name : names) {
    const Value value{graph.at(name), 0};
    if (graph.is(value.node, "input"))
      result[name] = ops::read_integers(feed.at(name));
    else
      graph.set_output(name, value);
  }
  std::erase_if(names, [&](const std::string& name) { return result.contains(name); });
  graph = select_outputs(std::move(graph), names);
  for (const auto& [name, tensor] :
       engine::make_executor(graph, std::move(state), execution)->run(feed_of(graph, feed)))
    result[name] = ops::read_integers(tensor);
  return result;
}

std::vector<std::string> output_names(const hardware::Design& design) {
  std::vector<std::string> names;
  for (const hardware::DesignPort& port : design.outputs) names.push_back(port.name);
  return names;
}

// The model as it was before anything was rounded, as far as its floats were kept.
Feed run_float(const io::Model& model, const std::vector<std::string>& outputs, const Feed& feed,
               const engine::ExecutionOptions& execution) {
  Graph graph = select_outputs(model.graph, outputs);
  State state = model.state;
  compress::unpack_weights(graph, state, model.masters);
  for (const NodeId node : graph.nodes_of("quantize"))
    graph.replace_all_uses({node, 0}, graph.input(node, 0));
  graph = select_outputs(std::move(graph), outputs);
  return engine::make_executor(graph, std::move(state), execution)->run(feed_of(graph, feed));
}

// The elements of all examples in the order of the stream.
hardware::Values to_stream(const hardware::DesignPort& port,
                           const std::vector<std::int64_t>& elements, std::int64_t examples) {
  const auto size = static_cast<std::int64_t>(elements.size()) / examples;
  hardware::Values stream;
  for (std::int64_t example = 0; example < examples; ++example) {
    const auto begin = elements.begin() + example * size;
    const hardware::Values frame = hardware::to_frame(port, {begin, begin + size});
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  return stream;
}

void compare_output(SimulatedOutput& output, const hardware::DesignPort& port,
                    const Tensor& quantized, const Tensor& floats, std::int64_t examples) {
  const auto size = static_cast<std::int64_t>(output.got.size()) / examples;
  double sum = 0;
  for (std::int64_t example = 0; example < examples; ++example) {
    const auto begin = output.got.begin() + example * size;
    const std::vector<std::int64_t> got = hardware::from_frame(port, {begin, begin + size});
    for (std::int64_t i = 0; i < size; ++i) {
      const double scale = port.scale[static_cast<std::size_t>(i) % port.scale.size()];
      const double value = static_cast<double>(got[static_cast<std::size_t>(i)]) * scale;
      const std::int64_t at = example * size + i;
      if (static_cast<float>(value) != static_cast<float>(quantized.at(at)))
        ++output.quantized_differences;
      const double steps = std::fabs(value - floats.at(at)) / scale;
      sum += steps;
      output.largest_deviation = std::max(output.largest_deviation, steps);
    }
  }
  output.mean_deviation = sum / static_cast<double>(output.got.size());
}

// The place of the first of the largest of so many numbers.
template <typename At>
std::int64_t largest_of(std::int64_t count, const At& at) {
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < count; ++i)
    if (at(i) > at(best)) best = i;
  return best;
}

// Classes are the largest of a row of logits, all of one scale.
std::optional<SimulatedClasses> compare_classes(const hardware::Design& design,
                                                const std::vector<SimulatedOutput>& outputs,
                                                const Feed& quantized,
                                                const std::vector<std::int32_t>& labels) {
  const auto is_classified = [&](std::int32_t label) { return label != data::kNoLabel; };
  if (outputs.size() != 1 || design.outputs[0].dims.size() != 1 || labels.empty()) return {};
  const hardware::DesignPort& port = design.outputs[0];
  const std::int64_t size = port.dims[0];
  if (size < 2 || port.scale.size() != 1 || !port.order.empty()) return {};
  if (!std::ranges::all_of(labels, is_classified) ||
      std::ssize(outputs[0].got) != size * std::ssize(labels))
    return {};
  const Tensor& logits = quantized.at(port.name);
  SimulatedClasses result;
  for (std::int64_t example = 0; example < std::ssize(labels); ++example) {
    const std::int64_t begin = example * size;
    const std::int64_t got = largest_of(
        size, [&](std::int64_t i) { return outputs[0].got[static_cast<std::size_t>(begin + i)]; });
    const std::int64_t expected =
        largest_of(size, [&](std::int64_t i) { return logits.at(begin + i); });
    if (got == expected) ++result.as_quantized;
    if (got == labels[static_cast<std::size_t>(example)]) ++result.right;
  }
  return result;
}

}  // namespace

std::int64_t SimulateResult::num_wrong() const {
  std::int64_t count = simulation.num_differences;
  for (const SimulatedOutput& output : outputs)
    for (std::size_t i = 0; i < output.expected.size(); ++i)
      if (i >= output.got.size() || output.got[i] != output.expected[i]) ++count;
  return count;
}

SimulateResult simulate(const SimulateOptions& options, const engine::ExecutionOptions& execution,
                        const Callbacks& callbacks) {
  if (options.wave_format != "vcd" && options.wave_format != "fst")
    throw unknown_name("wave format", options.wave_format, {"fst", "vcd"});
  if (!options.data.empty() && !options.inputs.empty()) fail("give either data or inputs");
  if (options.gates && options.waves) fail("waves are those of the files, not of gates");
  if (options.stalls < 0 || options.stalls >= 1) fail("stalls {}: expected 0 to 1", options.stalls);
  const hardware::VerilatorTools tools = hardware::find_verilator();
  if (!tools.are_there()) throw UserError("designs are simulated by Verilator", tools.hint);
  const hardware::Design design = hardware::read_design(options.design);
  const io::Model model =
      io::load_model((options.design / "model").string(), {.with_masters = true});
  // The integer model, which says what every stream carries.
  Graph graph = model.graph;
  State state = model.state;
  compress::lower_to_integer(graph, state);
  const LabelledFeed examples =
      !options.inputs.empty() ? LabelledFeed{examples_of_file(design, options.inputs)}
      : !options.data.empty()
          ? examples_of_data(design, model, options, execution, callbacks)
          : LabelledFeed{drawn_examples(graph, design, options.examples, options.seed)};
  const Feed& all = examples.feed;
  SimulateResult result{.examples = feed_of(graph, all).begin()->second.dim(0), .simulation = {}};
  const auto integers = port_integers(std::move(graph), std::move(state), design, all, execution);
  std::vector<hardware::Values> frames;
  for (const hardware::DesignPort& port : design.inputs)
    frames.push_back(to_stream(port, integers.at(port.node), result.examples));
  for (const hardware::ExternalLayer& layer : design.external)
    result.own_layers.push_back(layer.layer);

  const Clock::time_point build_start = Clock::now();
  const hardware::Waves waves = !options.waves                 ? hardware::Waves::None
                                : options.wave_format == "fst" ? hardware::Waves::Fst
                                                               : hardware::Waves::Vcd;
  const hardware::Emission files = hardware::read_emission(design, options.design);
  const hardware::Simulator simulator = [&] {
    if (!options.gates)
      return hardware::Simulator(design.netlist, files, waves, callbacks.should_stop);
    const hardware::GateLevelDesign gates =
        hardware::synthesize_gates(files, callbacks.should_stop);
    result.gates = gates.cells;
    return hardware::gate_level_simulator(design.netlist, gates, callbacks.should_stop);
  }();
  result.build_seconds = seconds_since(build_start);
  result.was_cached = simulator.was_cached();
  if (options.waves) result.waves = options.design / ("waves." + options.wave_format);
  const Clock::time_point test_start = Clock::now();
  hardware::GroupedSimulation runs = hardware::simulate_groups(
      simulator, frames, options.waves ? result.examples : hardware::frames_at_once(design.netlist),
      {.stall = options.stalls, .seed = options.seed + 1, .waves = result.waves}, execution.pool,
      callbacks.should_stop);
  result.test_seconds = seconds_since(test_start);
  result.simulation = std::move(runs.all);
  result.predicted_cycles = runs.predicted_cycles;
  result.runs = runs.groups;
  result.problems = result.simulation.text(design.netlist);

  const std::vector<std::string> names = output_names(design);
  const Graph quantized = select_outputs(model.graph, names);
  const Feed rounded =
      engine::make_executor(quantized, model.state, execution)->run(feed_of(quantized, all));
  const Feed floats = run_float(model, names, all, execution);
  for (std::size_t i = 0; i < design.outputs.size(); ++i) {
    const hardware::DesignPort& port = design.outputs[i];
    SimulatedOutput output{.name = port.name,
                           .stream = design.netlist.type(design.netlist.outputs()[i]),
                           .got = result.simulation.outputs[i],
                           .expected = {},
                           .scale = port.scale.front()};
    // What a layer of the user's own computes is in its definition, not in the model.
    output.expected = result.own_layers.empty()
                          ? to_stream(port, integers.at(port.node), result.examples)
                          : result.simulation.expected[i];
    if (output.got.size() == output.expected.size())
      compare_output(output, port, rounded.at(port.name), floats.at(port.name), result.examples);
    result.outputs.push_back(std::move(output));
  }
  result.classes = compare_classes(design, result.outputs, rounded, examples.labels);
  if (waves == hardware::Waves::Vcd) {
    result.picture = options.design / "waves.svg";
    io::write_atomically(result.picture, wave_picture(design, result.waves));
  }
  return result;
}

}  // namespace lathe::experiment
