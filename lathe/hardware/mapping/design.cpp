#include "lathe/hardware/mapping/design.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "lathe/core/error.h"
#include "lathe/core/pass.h"
#include "lathe/core/registry.h"
#include "lathe/hardware/lut_model.h"
#include "lathe/hardware/passes/insert_forks.h"
#include "lathe/hardware/schedule.h"
#include "lathe/hardware/switching.h"

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

// Blocks that wait for each other may take longer than the slowest of them: layers then get less
// time.
Design fold_for_pace(const FoldingProblem& problem, const FoldingGoal& wanted,
                     const std::function<Design(Parallelism)>& attempt) {
  FoldingGoal goal = wanted;
  for (;;) {
    Design design = attempt(problem.lanes(choose_folding(problem.layers, goal, problem.edges)));
    const std::int64_t excess = design.frame_interval - *wanted.cycles;
    if (excess <= 0) return design;
    if (bottleneck_cycles(design.netlist) > *wanted.cycles || *goal.cycles <= excess)
      fail("cycles {}: an example takes {} in {}, which has no lanes of its own", *wanted.cycles,
           design.frame_interval, slowest_block(design.netlist));
    *goal.cycles -= excess;
  }
}

// By how much of itself a budget is broken, all resources together.
double broken_share(const FoldingGoal& goal, const Resources& used) {
  const std::optional<Resources> excess = goal.excess(used);
  if (!excess) return 0;
  const auto share = [](std::int64_t over, const std::optional<std::int64_t>& limit) {
    return static_cast<double>(over) /
           static_cast<double>(std::max<std::int64_t>(1, limit.value_or(1)));
  };
  return share(excess->dsp, goal.dsp) + share(excess->bram18, goal.bram18) +
         share(excess->lut, goal.lut);
}

// Makes a design of lanes, and what it takes at least: without FIFOs, which takes no time.
struct Maker {
  std::function<Design(Parallelism)> make;
  std::function<Resources(Parallelism)> least;
};

// Lanes that need no more cycles than `goal.cycles` and break the budget least: the thriftiest by
// what layers and converters take. FIFOs, forks and what is read twice come on top of that; where a
// design is small enough to make many of, other lanes of one layer at a time are tried too. Nothing
// where it is not, and the budget is broken without FIFOs.
std::optional<Design> thriftiest_design(const FoldingProblem& problem, const FoldingGoal& goal,
                                        const Maker& maker) {
  constexpr std::int64_t kSmall = 50'000;  // steps of blocks to schedule an example
  std::optional<std::vector<std::size_t>> choice =
      choose_thriftiest(problem.layers, goal, problem.edges);
  if (!choice) return {};
  if (*goal.cycles > kSmall && goal.excess(maker.least(problem.lanes(*choice)))) return {};
  Design best = maker.make(problem.lanes(*choice));
  const auto is_small = [](const Design& design) {
    return design.frame_interval * std::ssize(design.netlist.instances()) <= kSmall;
  };
  for (bool changed = is_small(best); changed && goal.excess(best.resources);) {
    changed = false;
    for (std::size_t i = 0; i < problem.layers.size(); ++i)
      for (std::size_t o = 0; o < problem.layers[i].size(); ++o) {
        if (o == (*choice)[i] || problem.layers[i][o].cycles > *goal.cycles) continue;
        std::vector<std::size_t> other = *choice;
        other[i] = o;
        Design design = maker.make(problem.lanes(other));
        if (broken_share(goal, design.resources) >= broken_share(goal, best.resources)) continue;
        best = std::move(design);
        choice = std::move(other);
        changed = true;
      }
  }
  return best;
}

// The fastest design within a budget. What the layers take is a lower bound, so a design of the
// fewest cycles by that bound is the answer where it fits. Where it does not, slower paces are
// tried; the first that fits is found by halving. Nothing where none was found.
std::optional<Design> find_design(const FoldingProblem& problem, const FoldingGoal& goal,
                                  const Maker& maker) {
  if (goal.cycles) {
    Design design = fold_for_pace(problem, goal, maker.make);
    if (!goal.excess(design.resources)) return design;
  } else {
    const auto choice = find_folding(problem.layers, goal, problem.edges);
    if (!choice) return {};
    if (const Parallelism lanes = problem.lanes(*choice); !goal.excess(maker.least(lanes))) {
      Design design = maker.make(lanes);
      if (!goal.excess(design.resources)) return design;
    }
  }
  std::vector<std::int64_t> paces = problem.paces();
  if (goal.cycles) std::erase_if(paces, [&](std::int64_t pace) { return pace > *goal.cycles; });
  std::optional<Design> best;
  std::size_t low = 0, high = paces.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    FoldingGoal slower = goal;
    slower.cycles = paces[middle];
    std::optional<Design> found = thriftiest_design(problem, slower, maker);
    const bool fits = found && !goal.excess(found->resources) &&
                      (!goal.cycles || found->frame_interval <= *goal.cycles);
    if (fits) {
      if (!best || found->frame_interval < best->frame_interval) best = std::move(found);
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return best;
}

// Says what the thriftiest lanes would take, and which device has that.
[[noreturn]] void fail_to_fit(const FoldingProblem& problem, const FoldingGoal& goal,
                              const Maker& maker) {
  choose_folding(problem.layers, goal, problem.edges);  // fails where the layers alone do not fit
  FoldingGoal slowest = goal;
  if (!slowest.cycles) slowest.cycles = problem.paces().back();
  const auto choice = choose_thriftiest(problem.layers, slowest, problem.edges);
  check(choice.has_value(), "a choice of the slowest lanes");
  const Resources least = maker.least(problem.lanes(*choice));
  for (const Device& device : known_devices())
    if (!device.goal().excess(least))
      fail("no lanes fit the budget: the thriftiest take {} and FIFOs; a {} has {}", to_text(least),
           device.name, to_text(device.resources));
  fail("no lanes fit the budget: the thriftiest take {} and FIFOs", to_text(least));
}

}  // namespace

Design design_hardware(const Graph& integer_graph, const State& state,
                       const DesignOptions& options) {
  const MappingOptions mapping{.name = options.name,
                               .parallelism = options.parallelism,
                               .symbols = options.symbols,
                               .external = options.external};
  GraphMapper first(integer_graph, state, mapping);
  first.run();
  const bool has_goal = options.goal.cycles || options.goal.has_budget() || options.devices.empty();
  const FoldingProblem problem = folding_problem(
      first, has_goal ? options.goal : options.devices.front().goal(), options.parallelism);
  const auto mapped = [&](Parallelism lanes) {
    MappingOptions chosen = mapping;
    chosen.parallelism = std::move(lanes);
    GraphMapper mapper(integer_graph, state, chosen);
    mapper.run();
    return mapper;
  };
  const Maker maker{.make =
                        [&](Parallelism lanes) {
                          GraphMapper mapper = mapped(lanes);
                          SizedNetlist sized = size_fifos(insert_forks(mapper.netlist));
                          const Resources used = resources(sized.netlist);
                          return Design{.netlist = std::move(sized.netlist),
                                        .inputs = std::move(mapper.inputs),
                                        .outputs = std::move(mapper.outputs),
                                        .parallelism = std::move(lanes),
                                        .fifos = std::move(sized.fifos),
                                        .layers = describe_layers(mapper),
                                        .resources = used,
                                        .frame_interval = sized.frame_interval,
                                        .external = options.external,
                                        .symbols = options.symbols};
                        },
                    .least =
                        [&](Parallelism lanes) {
                          return resources(insert_forks(mapped(std::move(lanes)).netlist));
                        }};
  std::optional<Design> found;
  if (has_goal) {
    found = find_design(problem, options.goal, maker);
    if (!found) fail_to_fit(problem, options.goal, maker);
  }
  for (std::size_t i = 0; !found; ++i) {
    const Device& device = options.devices.at(i);
    found = find_design(problem, device.goal(), maker);
    if (found)
      found->device = device.name;
    else if (i + 1 == options.devices.size())
      fail_to_fit(problem, device.goal(), maker);
  }
  Design design = std::move(*found);
  design.latency = schedule(design.netlist).cycles;
  design.switching = switching_bits(design.netlist, design.frame_interval);
  return design;
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
