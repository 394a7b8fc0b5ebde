#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "lathe/hardware/netlist.h"
#include "lathe/hardware/schedule.h"
#include "lathe/hardware/simulation/simulate.h"

namespace lathe::hardware::testing {

using Random = std::mt19937_64;

/// A number from low to high, both included.
inline std::int64_t draw(Random& random, std::int64_t low, std::int64_t high) {
  const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
  const std::uint64_t step = span == 0 ? random() : random() % span;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + step);
}

/// An element of 2 to `widest` bits, signed or not.
inline Element draw_element(Random& random, int widest) {
  return {.width = static_cast<int>(draw(random, 2, widest)), .is_signed = draw(random, 0, 1) != 0};
}

/// That many numbers an element can hold, its ends more often than others.
inline Values draw_values(Random& random, const Element& element, std::int64_t count) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t kind = draw(random, 0, 9);
    values.push_back(kind == 0   ? element.lowest()
                     : kind == 1 ? element.highest()
                                 : draw(random, element.lowest(), element.highest()));
  }
  return values;
}

/// Values for every input of a netlist.
inline std::vector<Values> draw_inputs(Random& random, const Netlist& netlist,
                                       std::int64_t frames) {
  std::vector<Values> inputs;
  for (const StreamId stream : netlist.inputs()) {
    const Stream& type = netlist.type(stream);
    inputs.push_back(draw_values(random, type.element, frames * type.num_elements()));
  }
  return inputs;
}

/// Expects that each stream's first and last beat moved in the cycle that the schedule says.
inline void expect_on_time(const Netlist& netlist, const Simulation& simulation,
                           std::int64_t frames) {
  const Schedule expected = schedule(netlist, {.frames = frames});
  EXPECT_EQ(simulation.cycles, expected.cycles);
  for (StreamId stream = 0; stream < netlist.streams().size(); ++stream) {
    EXPECT_EQ(simulation.streams[stream].first, expected.streams[stream].first)
        << "first beat of " << netlist.stream_name(stream);
    EXPECT_EQ(simulation.streams[stream].last, expected.streams[stream].last)
        << "last beat of " << netlist.stream_name(stream);
  }
}

/// Simulates a netlist with stalls at 0, 25 and 50 % and expects every beat of every stream as the
/// blocks' definitions say, a handshake that is kept and, without stalls, the schedule's cycles.
inline void expect_exact(const Netlist& netlist, Random& random, std::int64_t frames = 3) {
  const Simulator simulator(netlist);
  for (const double stall : {0.0, 0.25, 0.5}) {
    SCOPED_TRACE(fmt::format("stalls {} %", 100 * stall));
    const Simulation simulation =
        simulator.run(draw_inputs(random, netlist, frames), {.stall = stall, .seed = random()});
    EXPECT_TRUE(simulation.is_exact()) << simulation.text(netlist);
    EXPECT_GT(simulation.num_compared, 0);
    if (stall == 0) expect_on_time(netlist, simulation, frames);
  }
}

}  // namespace lathe::hardware::testing
