#include "lathe/hardware/simulation/simulate_groups.h"

#include <algorithm>
#include <limits>
#include <map>

#include "lathe/core/error.h"

namespace lathe::hardware {
namespace {

constexpr std::int64_t kBytesAtOnce = std::int64_t{1} << 28;
constexpr std::size_t kMostShown = 20;

// Appends what a later run showed; its beats are counted on.
void append(Simulation& all, Simulation next) {
  all.cycles += next.cycles;
  all.num_compared += next.num_compared;
  all.num_differences += next.num_differences;
  for (Simulation::Difference& difference : next.differences) {
    difference.beat += all.streams[difference.stream].count;
    all.differences.push_back(difference);
  }
  all.violations.insert(all.violations.end(), next.violations.begin(), next.violations.end());
  if (all.differences.size() > kMostShown) all.differences.resize(kMostShown);
  if (all.violations.size() > kMostShown) all.violations.resize(kMostShown);
  if (all.stuck.empty()) all.stuck = next.stuck;
  for (std::size_t i = 0; i < all.streams.size(); ++i) {
    all.streams[i].count += next.streams[i].count;
    all.streams[i].last = next.streams[i].last;
  }
  for (std::size_t i = 0; i < all.outputs.size(); ++i) {
    all.outputs[i].insert(all.outputs[i].end(), next.outputs[i].begin(), next.outputs[i].end());
    all.expected[i].insert(all.expected[i].end(), next.expected[i].begin(), next.expected[i].end());
  }
}

}  // namespace

std::int64_t frames_at_once(const Netlist& netlist) {
  for (const Instance& instance : netlist.instances())
    if (netlist.block(instance.block).has_memory) return std::numeric_limits<std::int64_t>::max();
  std::int64_t bytes = 1;
  for (const Netlist::NamedStream& stream : netlist.streams())
    bytes += stream.type.num_elements() * static_cast<std::int64_t>(sizeof(std::int64_t));
  return std::max<std::int64_t>(1, kBytesAtOnce / bytes);
}

GroupedSimulation simulate_groups(const Simulator& simulator, const std::vector<Values>& inputs,
                                  std::int64_t frames_in_group, const SimulationOptions& options,
                                  ThreadPool* pool, const ShouldStop& should_stop) {
  const Netlist& netlist = simulator.netlist();
  const auto size_of = [&](std::size_t input) {
    return netlist.type(netlist.inputs()[input]).num_elements();
  };
  check(!inputs.empty() && frames_in_group >= 1, "frames to be simulated");
  const std::int64_t frames = std::ssize(inputs[0]) / size_of(0);
  frames_in_group = std::min(frames_in_group, std::max<std::int64_t>(1, frames));
  const std::int64_t groups =
      std::max<std::int64_t>(1, (frames + frames_in_group - 1) / frames_in_group);
  check(groups == 1 || options.waves.empty(), "waves of one run");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    check(std::ssize(inputs[i]) == frames * size_of(i), "as many frames on every input");
  const auto frames_of = [&](std::int64_t group) {
    return std::min(frames_in_group, frames - group * frames_in_group);
  };

  std::vector<Simulation> runs(static_cast<std::size_t>(groups));
  const auto run = [&](std::int64_t group, int) {
    if (should_stop && should_stop()) throw Interrupted();
    std::vector<Values> part;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto begin = inputs[i].begin() + group * frames_in_group * size_of(i);
      part.emplace_back(begin, begin + frames_of(group) * size_of(i));
    }
    SimulationOptions own = options;
    own.seed += static_cast<std::uint64_t>(group);
    runs[static_cast<std::size_t>(group)] = simulator.run(part, own);
  };
  if (pool != nullptr)
    pool->run(groups, run);
  else
    for (std::int64_t group = 0; group < groups; ++group) run(group, 0);

  GroupedSimulation result{.all = std::move(runs[0]), .groups = groups};
  for (std::size_t group = 1; group < runs.size(); ++group)
    append(result.all, std::move(runs[group]));
  std::map<std::int64_t, std::int64_t> predicted;  // by the number of frames
  for (std::int64_t group = 0; group < groups; ++group) {
    const auto [entry, is_new] = predicted.try_emplace(frames_of(group), 0);
    if (is_new) entry->second = schedule(netlist, {.frames = entry->first}).cycles;
    result.predicted_cycles += entry->second;
  }
  return result;
}

}  // namespace lathe::hardware
