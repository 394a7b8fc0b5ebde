#include "lathe/hardware/schedule.h"

#include <algorithm>

#include "lathe/core/error.h"
#include "lathe/hardware/controller.h"

namespace lathe::hardware {

std::int64_t period_cycles(const Timing& timing) {
  if (const auto* sequence = std::get_if<SequenceTiming>(&timing)) {
    std::int64_t cycles = 0;
    for (const SequenceTiming::Phase& phase : sequence->period) cycles += phase.count;
    return cycles;
  }
  if (const auto* buffer = std::get_if<BufferTiming>(&timing))
    return static_cast<std::int64_t>(std::max(buffer->need.size(), buffer->free.size()));
  return 1;
}

std::int64_t bottleneck_cycles(const Netlist& netlist) {
  std::int64_t most = 1;
  for (const Netlist::NamedStream& stream : netlist.streams())
    most = std::max(most, stream.type.beats());
  for (std::size_t i = 0; i < netlist.instances().size(); ++i) {
    const BlockCall call = netlist.call(i);
    const Timing timing = call.block.timing(call);
    const auto* sequence = std::get_if<SequenceTiming>(&timing);
    if (sequence == nullptr) continue;
    std::int64_t given = 0;  // a period
    for (const SequenceTiming::Phase& phase : sequence->period)
      if (phase.gives) given += phase.count;
    check(given > 0 && call.outputs[0].beats() % given == 0, "a frame to be whole periods");
    most = std::max(most, call.outputs[0].beats() / given * period_cycles(timing));
  }
  return most;
}

std::int64_t Schedule::frame_interval() const {
  if (frame_ends.empty()) return 0;
  if (frame_ends.size() == 1) return frame_ends[0] + 1;
  return frame_ends.back() - frame_ends[frame_ends.size() - 2];
}

Schedule schedule(const Netlist& netlist, const ScheduleOptions& options) {
  const std::vector<std::size_t> order = topological_order(netlist);
  std::vector<std::unique_ptr<Controller>> controllers;
  for (std::size_t i = 0; i < netlist.instances().size(); ++i)
    controllers.push_back(make_controller(
        netlist.call(i), options.capacities.empty() ? 0 : options.capacities.at(i)));

  const std::size_t num_streams = netlist.streams().size();
  Wires wires{.valid = std::vector<char>(num_streams), .ready = std::vector<char>(num_streams)};
  Schedule result;
  result.streams.resize(num_streams);
  result.most_held.resize(controllers.size());
  std::vector<std::int64_t> left(num_streams);  // beats still to come through an input or output
  std::int64_t to_come = 0;
  for (const StreamId stream : netlist.inputs())
    left[stream] = options.frames * netlist.type(stream).beats();
  for (const StreamId stream : netlist.outputs()) {
    left[stream] = options.frames * netlist.type(stream).beats();
    to_come += left[stream];
    wires.ready[stream] = true;
  }
  std::vector<std::size_t> frames_done(num_streams);
  result.frame_ends.assign(static_cast<std::size_t>(options.frames), -1);

  for (std::int64_t cycle = 0; to_come > 0; ++cycle) {
    bool waits_for_time = false;
    for (const StreamId stream : netlist.inputs()) {
      const std::int64_t beats = netlist.type(stream).beats();
      const std::int64_t due = result.streams[stream].count * options.frame_interval / beats;
      wires.valid[stream] = left[stream] > 0 && due <= cycle;
      waits_for_time = waits_for_time || (left[stream] > 0 && due > cycle);
    }
    for (const std::size_t i : order) controllers[i]->offer(wires);
    for (auto i = order.rbegin(); i != order.rend(); ++i) controllers[*i]->accept(wires);
    bool moved = waits_for_time;
    for (StreamId stream = 0; stream < num_streams; ++stream) {
      if (!wires.valid[stream] || !wires.ready[stream]) continue;
      Schedule::Beats& beats = result.streams[stream];
      if (beats.count++ == 0) beats.first = cycle;
      beats.last = cycle;
    }
    for (const StreamId stream : netlist.inputs())
      if (wires.valid[stream] && wires.ready[stream]) --left[stream], moved = true;
    for (const StreamId stream : netlist.outputs()) {
      if (!wires.valid[stream]) continue;
      --left[stream], --to_come;
      if (result.streams[stream].count % netlist.type(stream).beats() != 0) continue;
      std::int64_t& end = result.frame_ends[frames_done[stream]++];
      end = std::max(end, cycle);
    }
    for (std::size_t i = 0; i < controllers.size(); ++i) {
      moved = controllers[i]->clock(wires) || moved;
      result.most_held[i] = std::max(result.most_held[i], controllers[i]->held());
    }
    result.cycles = cycle + 1;
    if (moved) continue;
    for (StreamId stream = 0; stream < num_streams; ++stream)
      if (wires.valid[stream]) result.stuck.push_back(stream);
    check(!result.stuck.empty(), "a design that stopped to have a beat waiting");
    break;
  }
  return result;
}

}  // namespace lathe::hardware
