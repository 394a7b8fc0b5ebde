#include "lathe/hardware/mapping/design.h"

#include <fmt/format.h>

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/core/pass.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/lut_model.h"
#include "lathe/hardware/passes/insert_forks.h"
#include "lathe/hardware/schedule.h"

namespace lathe::hardware {
namespace {

void describe_instance(HardwareMetadata& metadata, const Netlist& netlist, std::size_t index) {
  const BlockCall call = netlist.call(index);
  const auto add_file = [&](const std::string& module) {
    const std::string path = "rtl/" + module + ".sv";
    if (std::ranges::find(metadata.files, path) == metadata.files.end())
      metadata.files.push_back(path);
  };
  metadata.modules.push_back(call.block.name);
  if (!call.block.source.empty()) metadata.toolchain = "external";
  add_file(call.block.name);
  for (const std::string& part : call.block.parts) add_file(part);
  if (metadata.inputs.empty()) metadata.inputs = call.inputs;
  metadata.outputs = call.outputs;
  const ModuleParameters parameters = call.block.module_parameters(call);
  for (const auto& [name, image] : parameters.memories)
    metadata.memories.push_back(
        fmt::format("{} ({} x {} bits)",
                    is_block_memory(image.word_bits(), image.depth()) ? "block RAM" : "LUTs",
                    image.depth(), image.word_bits()));
  metadata.cycles = std::max(metadata.cycles, frame_cycles(call));
  metadata.resources += resources_of(call);
}

std::map<std::string, HardwareMetadata, std::less<>> describe_layers(const GraphMapper& mapper) {
  std::map<std::string, HardwareMetadata, std::less<>> result;
  for (std::size_t i = 0; i < mapper.origins.size(); ++i)
    describe_instance(result[mapper.graph().name(mapper.origins[i])], mapper.netlist, i);
  for (const NodeId node : mapper.graph().topological_order()) {
    const MappedValue* value = mapper.find({node, 0});
    if (value != nullptr) {
      HardwareMetadata& metadata = result[mapper.graph().name(node)];
      if (metadata.modules.empty()) metadata.outputs = {mapper.type(*value)};
    }
  }
  return result;
}

std::string slowest_block(const Netlist& netlist) {
  std::int64_t most = 0;
  std::string name;
  for (std::size_t i = 0; i < netlist.instances().size(); ++i) {
    const BlockCall call = netlist.call(i);
    if (frame_cycles(call) <= most) continue;
    most = frame_cycles(call);
    name = call.instance.name;
  }
  return name;
}

// Annotates every node with what it became.
PassResult map_to_hardware(Graph& graph, PassContext& context) {
  DesignOptions options;
  const auto text = [&](const char* name) {
    const auto found = context.options.find(name);
    return found == context.options.end() ? std::string() : std::get<std::string>(found->second);
  };
  std::string list = text("parallelism");
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    add_parallelism(options.parallelism, list.substr(0, end));
    list.erase(0, end + 1);
  }
  const Design design = design_hardware(graph, *context.state, options);
  for (const auto& [name, metadata] : design.layers)
    graph.annotation<HardwareMetadata>(graph.at(name)) = metadata;
  return {0, fmt::format("{} blocks, {} cycles an example, {}", design.netlist.instances().size(),
                         design.frame_interval, to_text(design.resources))};
}

const Register registration{Pass{
    .name = "map-to-hardware",
    .summary = "say of each node of an integer graph what it is in hardware",
    .run = map_to_hardware,
    .options = {{.name = "parallelism",
                 .default_value = std::string(),
                 .summary = "lanes of layers, \"layers.0=4x8,layers.1=2x2\""}},
    .needs_state = true,
}};

}  // namespace

Design design_hardware(const Graph& integer_graph, const State& state,
                       const DesignOptions& options) {
  const MappingOptions mapping{.name = options.name,
                               .parallelism = options.parallelism,
                               .symbols = options.symbols,
                               .external = options.external};
  GraphMapper first(integer_graph, state, mapping);
  first.run();
  FoldingGoal goal = options.goal;
  // FIFOs and converters come on top of what the layers take: where they break the budget, the
  // layers get that much less.
  for (;;) {
    MappingOptions chosen = mapping;
    chosen.parallelism = solve_folding(first, goal, options.parallelism);
    GraphMapper mapper(integer_graph, state, chosen);
    mapper.run();
    SizedNetlist sized = size_fifos(insert_forks(mapper.netlist));
    if (options.goal.cycles && sized.frame_interval > *options.goal.cycles)
      fail("cycles {}: an example takes {} in {}, which has no lanes of its own",
           *options.goal.cycles, sized.frame_interval, slowest_block(sized.netlist));
    const Resources used = resources(sized.netlist);
    if (const std::optional<Resources> excess = options.goal.excess(used)) {
      goal = goal.reduced_by(*excess);
      continue;
    }
    const Schedule once = schedule(sized.netlist);
    return {.netlist = std::move(sized.netlist),
            .inputs = std::move(mapper.inputs),
            .outputs = std::move(mapper.outputs),
            .parallelism = chosen.parallelism,
            .fifos = std::move(sized.fifos),
            .layers = describe_layers(mapper),
            .resources = used,
            .frame_interval = sized.frame_interval,
            .external = options.external,
            .symbols = options.symbols,
            .latency = once.cycles};
  }
}

Values to_frame(const DesignPort& port, const std::vector<std::int64_t>& elements) {
  if (port.is_length) {
    const auto end = std::ranges::find(elements, 0);
    if (end == elements.begin() || std::any_of(end, elements.end(), [](auto e) { return e != 0; }))
      fail("{}: a mask that is not some ones and then zeros", port.name);
    return {end - elements.begin()};
  }
  if (port.order.empty()) return elements;
  Values frame;
  frame.reserve(port.order.size());
  for (const std::int64_t element : port.order)
    frame.push_back(elements.at(static_cast<std::size_t>(element)));
  return frame;
}

std::vector<std::int64_t> from_frame(const DesignPort& port, const Values& frame) {
  if (port.order.empty()) return frame;
  std::vector<std::int64_t> elements(frame.size());
  for (std::size_t i = 0; i < frame.size(); ++i)
    elements.at(static_cast<std::size_t>(port.order[i])) = frame[i];
  return elements;
}

}  // namespace lathe::hardware
